"""The same work for two readers: what is printed differs, what the model reads and what
is written does not.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_lines import python

pytestmark = pytest.mark.usefixtures("own")

QUESTIONS = ("北京和上海今天哪个更暖和？", "17 * 23")
ALL = [
    word
    for name in ("stage1", "successor", "stage2", "stage3", "stage4", "stage5")
    for word in ("--implementation", name)
]
TIMES = ("ms", "began", "recorded", "thread_id")


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def recorded(folder: Path, language: str, *options: str) -> list[Any]:
    file = folder / f"{language}.jsonl"
    command = ("-m", "equivalence", "run", *QUESTIONS, *options, "--out", str(file))
    python(*command, LLM_LANG=language)
    lines = file.read_text(encoding="utf-8").splitlines()
    return [without_times(json.loads(line)) for line in lines]


def test_a_record_and_its_requests_are_the_same_for_both(own: Path) -> None:
    runs = [recorded(own, language, *ALL) for language in ("en", "zh")]
    assert len(runs[0]) == 12
    assert runs[0] == runs[1]


def test_the_record_of_a_failure_is_the_same_for_both(own: Path) -> None:
    options = ("--implementation", "own:breaks", "--implementation", "own:lazy")
    runs = [recorded(own, language, *options) for language in ("en", "zh")]
    assert {run["status"] for run in runs[0]} == {"failed"}
    assert runs[0] == runs[1]


def test_the_record_of_an_endpoint_that_is_down_is_the_same_for_both(own: Path) -> None:
    options = ("--implementation", "stage3", "--base-url", "http://127.0.0.1:9/v1")
    options += ("--model", "m")
    runs = [recorded(own, language, *options) for language in ("en", "zh")]
    assert {run["status"] for run in runs[0]} == {"model_error"}
    assert runs[0] == runs[1]


PROMPTS = """
import ast
import json
from pathlib import Path
from config import Settings, SYSTEM_PROMPT
from equivalence.gateway import Gateway
from equivalence.runs.observe import observe
from equivalence.table import read_table
from offline_model import OfflineModel
from tools import TOOLS
table = read_table(Path.cwd())
settings = Settings(_env_file=None)
seen = {}
with Gateway(OfflineModel()) as gateway:
    for name, one in {**table.implementations, **table.variants}.items():
        run = observe(one, "17 * 23", settings, gateway, TOOLS).run
        system = run.exchanges[0].request["messages"][0]["content"]
        seen[name] = [run.answer, system.startswith(SYSTEM_PROMPT), system]
print(json.dumps(seen))
"""


@pytest.mark.slow
def test_the_prompt_in_chinese_is_the_same_in_all_implementations() -> None:
    done = python("-c", PROMPTS, LLM_PROMPT_LANG="zh")
    seen = json.loads(done.stdout)
    assert len(seen) > 8
    for name, (answer, begins_with_it, system) in seen.items():
        assert "391" in answer, name
        assert begins_with_it, name
        assert system.startswith("你是一个严谨的助手"), name
        instructions = "\n".join(  # the tools' own descriptions are what they are
            line for line in system.splitlines() if not line.startswith("{")
        )
        assert not re.search(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", instructions), name


# ------------------------------------------------------------------------- what is read

ENGLISH = re.compile(r"(?<![\w.:/{-])[A-Za-z]{2,}(?: [a-z]{2,}){3,}")
"""Four words in a row that are written as a sentence is."""

OF_OTHERS = (
    "conversation that remembers",
    *("Sat, Sun", "sunny, humidity"),  # the tools' own words
)


def english(text: str) -> list[str]:
    """Sentences in English; what a tool said and what is a command is no sentence."""
    lines = [
        line
        for line in text.splitlines()
        if not re.match(r"\s*(?:│|┃|[→✗]|\$|\{|python)", line)
    ]
    return [found for line in lines for found in ENGLISH.findall(line)]


NOWHERE = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")

COMMANDS: list[tuple[str, ...]] = [
    ("-m", "equivalence", "--help"),
    *(
        ("-m", "equivalence", command, "--help")
        for command in (
            *("run", "record", "replay", "drift", "diff", "matrix", "self", "report"),
            *("step", "score", "export", "probe", "gateway", "list"),
        )
    ),
    ("-m", "equivalence", "run", "17 * 23", "--implementation", "nobody"),
    ("-m", "equivalence", "run", "--no-such-option"),
    ("-m", "equivalence", "run", "17 * 23", "--rules"),
    ("-m", "equivalence", "run", "17 * 23", "--implementation", "stage3", *NOWHERE),
    ("-m", "equivalence", "probe", *NOWHERE),
    ("-m", "equivalence", "probe"),
    ("-m", "equivalence", "diff", "no.jsonl", "none.jsonl"),
    ("-m", "equivalence", "drift", "17 * 23", "--repeats", "3"),
    ("-m", "exercises", "--help"),
    ("-m", "exercises", "list"),
    ("-m", "exercises", "start", "3a"),
    ("-m", "exercises", "hint", "3a"),
    ("-m", "exercises", "check", "4a"),
    ("-m", "stage3_pure_loop", "--help"),
    ("-m", "stage3_pure_loop", "17 * 23"),
    ("-m", "stage3_pure_loop", "17 * 23", *NOWHERE),
    ("-m", "stage5_text_react", "北京天气怎么样？"),
]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[1:]))
def test_nothing_is_left_in_english_for_a_chinese_reader(
    command: tuple[str, ...],
) -> None:
    done = python(*command, LLM_LANG="zh")
    printed = done.stdout + done.stderr
    assert re.search(r"[\u4e00-\u9fff]", printed), printed
    assert english(printed) == [], printed


@pytest.mark.slow
def test_a_planted_fault_is_explained_in_chinese(own: Path) -> None:
    names = ("--implementation", "stage3", "--implementation", "own:shouts")
    command = ("-m", "equivalence", "run", "how warm is Beijing?", *names)
    done = python(*command, "--out", "runs.jsonl", LLM_LANG="zh")
    assert done.returncode == 1
    assert "stage3 与 own:shouts：不同，原因：request" in done.stdout
    assert "两个实现发出的请求不同：差异在代码里。" in done.stdout
    done = python(
        *("-m", "equivalence", "report", "runs.jsonl", "-o", "r.html"), LLM_LANG="zh"
    )
    assert "1 次比较中有 1 次不同" in done.stdout
    page = (own / "r.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in page
    assert "两个实现发出的请求不同：差异在代码里。" in page


@pytest.mark.slow
def test_a_conversation_is_led_in_chinese() -> None:
    done = python("-m", "stage3_pure_loop", stdin="/new\nquit\n", LLM_LANG="zh")
    assert "例如：现在几点了？" in done.stdout
    assert "新的对话开始。" in done.stdout
    assert english(done.stdout) == []


@pytest.mark.parametrize("number", ["0", "3a", "7"])
def test_an_exercise_starts_in_the_readers_language(own: Path, number: str) -> None:
    texts = {}
    for language in ("en", "zh"):
        file = own / f"{language}.py"
        command = ("-m", "exercises", "start", number, "--file", str(file))
        assert python(*command, LLM_LANG=language).returncode == 0
        texts[language] = ast.parse(file.read_text(encoding="utf-8"))
    chinese, english = (ast.get_docstring(texts[name]) or "" for name in ("zh", "en"))
    assert chinese.startswith(f"练习 {number} 的起点：")
    assert english.startswith(f"Exercise {number}, where it starts")
    codes = [ast.dump(ast.Module(tree.body[1:], [])) for tree in texts.values()]
    assert codes[0] == codes[1]
