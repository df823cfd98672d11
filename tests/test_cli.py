"""The command lines: the stages', the judge's, and the run records it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from equivalence import record
from equivalence.cli import main
from equivalence.hints import hint
from equivalence.implementations import LADDER, load
from equivalence.observe import observe
from equivalence.questions import read_questions
from equivalence.record import Run, Step
from gateway import Gateway, OfflineModel, Script
from gateway.upstreams import Reply
from tools import TOOLS

ROOT = Path(__file__).parent.parent
PUBLISHED = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
STAGES = list(dict.fromkeys(i.target.partition(".")[0] for i in LADDER))
LIGHT = "stage4_mini_framework"  # starts in half the time: no LangChain

implementations = pytest.mark.parametrize(
    "implementation", LADDER, ids=[entry.name for entry in LADDER]
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    path, known = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).resolve().is_relative_to(tmp_path.resolve()):
            del sys.modules[name]


def environment(**more: str) -> dict[str, str]:
    dropped = ("LLM_", "PYTHONIOENCODING", "PYTHONUTF8")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    usual = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "LLM_RETRIES": "0"}
    return {**kept, **usual, **more}


def python(
    *arguments: str, stdin: str = "", encoding: str = "utf-8", **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(PYTHONIOENCODING=encoding, **more),
        input=stdin,
        capture_output=True,
        encoding=encoding,
        timeout=60,
        check=False,
    )


def in_order(text: str, *parts: str) -> bool:
    position = 0
    for part in parts:
        position = text.find(part, position) + len(part)
        if position < len(part):
            return False
    return True


# ------------------------------------------------------------------ python -m stageN


@pytest.mark.parametrize("stage", STAGES)
def test_one_question_prints_its_trace(stage: str) -> None:
    done = python("-m", stage, PUBLISHED)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert in_order(
        done.stdout,
        "turn 1  get_current_time({})\n        → ",
        'turn 2  get_stock_price({"symbol": "腾讯"})\n',
        "        → 腾讯 Tencent 0700.HK: 385.6 HKD (+1.2 % today)\n",
        'turn 3  calculate({"expression": "100 * 385.6"})\n',
        "        → 38560.0\n",
        "385.6 HKD",
        "38,560 港元",
    ), done.stdout
    assert done.stdout.count("turn ") == 3
    assert done.stdout.count("\n") == 7  # however long, the answer is one line


def test_the_successor_of_stage_1() -> None:
    done = python("-m", "stage1_prebuilt", "--successor", "17 * 23")
    assert done.returncode == 0, done.stderr
    assert in_order(done.stdout, "turn 1  calculate(", "→ 391", "391")


CONVERSATION = """What is the weather in Beijing?

And in Fahrenheit?
/new
And in Fahrenheit?
"""


@pytest.mark.parametrize(
    ("stage", "end"),
    [(STAGES[0], ""), (LIGHT, " quit \n17 * 23\n"), (STAGES[-1], "exit\n17 * 23\n")],
)
def test_a_conversation_remembers_until_it_is_new(stage: str, end: str) -> None:
    done = python("-m", stage, stdin=CONVERSATION + end)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert in_order(
        done.stdout,
        'turn 1  get_weather({"city": "Beijing"})',
        "25 °C",
        'turn 1  unit_convert({"value": 25',
        "77 fahrenheit",
        "A new conversation.",
        "I cannot answer that",
    ), done.stdout
    assert done.stdout.count("unit_convert") == 1
    assert "391" not in done.stdout


class Waits:
    """An upstream that never answers; `asked` is set when a request has arrived."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.answers = OfflineModel()

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        import asyncio

        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def models(self, authorization: str | None) -> Reply:
        return await self.answers.models()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("question", [["hi"], []], ids=["question", "conversation"])
def test_ctrl_c_ends_it_without_a_traceback(
    gateway: Gateway, question: list[str]
) -> None:
    waits = Waits()
    gateway.open_run("waits", waits)
    process = subprocess.Popen(
        [sys.executable, "-m", LIGHT, *question],
        env=environment(LLM_BASE_URL=gateway.url("waits"), LLM_MODEL="m"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdin
    assert process.stdout
    if question:
        assert waits.asked.wait(20)
    else:
        assert process.stdout.read(2) == "st"  # stage4, …: it waits for a question
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode in (0, 130)
    assert "Traceback" not in out + err
    assert err == ""


# ------------------------------------------------------------------------- encodings

SHOWN = {"content": "晴 ☀️ ✅ sunny"}
ASKS = {
    "content": None,
    "tool_calls": [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city": "☀️ 某地"}'},
        }
    ],
}


@pytest.mark.parametrize("encoding", ["gbk", "cp1252", "ascii"])
def test_no_console_is_too_poor_for_an_answer(
    gateway: Gateway, folder: Path, encoding: str
) -> None:
    """R115, with the output redirected to a file, where it shows most."""
    gateway.open_run("emoji", Script([{"message": ASKS}, {"message": SHOWN}] * 2))
    place = ["--base-url", gateway.url("emoji"), "--model", "✅"]
    question = "天气 ☀️ ✅?"
    lines: dict[str, list[str]] = {
        "one question": ["-m", LIGHT, *place, question],
        "the judge": [
            *("-m", "equivalence", "run", *place, question),
            *("--implementation", "stage4", "--out", "runs.jsonl"),
        ],
    }
    more = {
        "diff": ["-m", "equivalence", "diff", "runs.jsonl", "runs.jsonl"],
        "stage help": ["-m", LIGHT, "--help"],
        "help": ["-m", "equivalence", "run", "--help"],
        "list": ["-m", "equivalence", "list"],
        "wrong usage": ["-m", "equivalence", "run", "--implementation", "☀️ 某"],
    }
    if encoding == "ascii":  # the poorest stands for all
        lines |= more
    for name, line in lines.items():
        with (folder / "out.txt").open("wb") as out:
            done = subprocess.run(
                [sys.executable, *line],
                env=environment(PYTHONIOENCODING=encoding),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
            )
        text = (folder / "out.txt").read_bytes().decode(encoding)
        assert "Traceback" not in text, (name, text)
        assert "UnicodeEncodeError" not in text, (name, text)
        assert done.returncode == (2 if name == "wrong usage" else 0), (name, text)
        assert text.strip()
    (run,) = record.read(folder / "runs.jsonl")
    assert run.answer == SHOWN["content"]


@pytest.mark.parametrize("encoding", ["gbk", "ascii"])
def test_no_console_is_too_poor_for_a_conversation(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", LIGHT],
        env=environment(PYTHONIOENCODING=encoding),
        input="17 * 23 ☀️\n北京 ✅\n".encode(),  # whatever the console is set to
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"391" in done.stdout


# -------------------------------------------------------------- endpoints that fail


VLLM = (
    '"auto" tool choice requires --enable-auto-tool-choice and'
    " --tool-call-parser to be set"
)
FAILURES = [
    (404, 'model "qwen9" not found', "Check LLM_MODEL"),
    (400, VLLM, "vLLM refuses tools until"),
    (422, "bad\nrequest", ""),
]


@pytest.mark.parametrize(("status", "said", "advice"), FAILURES)
def test_a_refusal_is_one_line_and_a_hint_after_one_request(
    gateway: Gateway, status: int, said: str, advice: str
) -> None:
    """R109, R112, at the command line."""
    item = {"status": status, "body": {"error": {"message": said}}}
    log = gateway.open_run("refuses", Script([item]))
    place = ("--base-url", gateway.url("refuses"), "--model", "qwen9")
    done = python("-m", LIGHT, *place, "hi", LLM_RETRIES="2")
    assert done.returncode == 1
    assert done.stderr == ""
    shown = f"the endpoint answered {status}: {' '.join(said.split())}"
    assert done.stdout.startswith(
        f"[model_error] the endpoint failed\n{shown}\n{advice}"
    )
    assert done.stdout.count("\n") == (3 if advice else 2)
    assert len(log.exchanges) == 1


@implementations
@pytest.mark.parametrize(("status", "said", "advice"), FAILURES)
def test_a_refusal_is_the_same_in_all(
    implementation: Any,
    gateway: Gateway,
    offline_settings: Settings,
    status: int,
    said: str,
    advice: str,
) -> None:
    item = {"status": status, "body": {"error": {"message": said}}}
    seen = observe(
        implementation.name,
        load(implementation.target),
        "hi",
        offline_settings.model_copy(update={"retries": 2}),
        gateway,
        TOOLS,
        upstream=Script([item]),
    )
    assert seen.run.status == "model_error"
    words = " ".join(said.split())
    assert seen.run.error == f"the endpoint answered {status}: {words}"
    assert len(seen.exchanges) == 1
    assert (hint(seen.run.error) or "").startswith(advice)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (f"the endpoint answered 400: {VLLM}", "vLLM"),
        ("the endpoint answered 400: enable_thinking must be false", "LLM_EXTRA_BODY"),
        ("the endpoint answered 400: missing reasoning_content", "LLM_ECHO_REASONING"),
        ("the endpoint answered 400: no such field max_tokens", "LLM_MAX_TOKENS_FIELD"),
        ("the endpoint answered 401: no", "LLM_API_KEY"),
        ("the endpoint answered 404: no", "LLM_BASE_URL"),
        ("the endpoint answered 502: cannot reach http://x", "Is the server running"),
        ("the endpoint answered 504: no reply from http://x within", "LLM_TIMEOUT"),
        ("the endpoint failed: Request timed out.", "LLM_TIMEOUT"),
    ],
)
def test_the_commonest_failures_have_a_hint(error: str, advice: str) -> None:
    assert advice in (hint(error) or "")
    assert hint("RuntimeError: something else") is None
    assert hint(None) is None


def test_an_endpoint_that_is_down_is_one_line_and_a_hint() -> None:
    place = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    done = python("-m", LIGHT, *place, "hi")
    assert done.returncode == 1
    assert done.stderr == ""
    assert in_order(
        done.stdout,
        "the endpoint answered 502: cannot reach http://127.0.0.1:9/v1: ",
        "\nIs the server running? Check LLM_BASE_URL",
    ), done.stdout


@pytest.mark.parametrize(
    ("arguments", "variables", "words"),
    [
        (["--max-steps", "0", "hi"], {}, "LLM_MAX_STEPS"),
        (["--base-url", "127.0.0.1:1", "hi"], {}, "LLM_BASE_URL"),
        (["hi"], {"LLM_EXTRA_BODY": "{"}, "LLM_EXTRA_BODY"),
        (["--temperature", "hot", "hi"], {}, "--temperature"),
        (["--frobnicate"], {}, "--frobnicate"),
    ],
)
def test_a_stage_refuses_wrong_usage(
    arguments: list[str], variables: dict[str, str], words: str
) -> None:
    done = python("-m", LIGHT, *arguments, **variables)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert words in done.stderr.splitlines()[-1]
    assert "error: " in done.stderr.splitlines()[-1]


def test_a_run_without_an_answer_is_told_and_exits_with_1(gateway: Gateway) -> None:
    gateway.open_run("silent", Script([{"message": {"content": ""}}]))
    place = ("--base-url", gateway.url("silent"), "--model", "m")
    done = python("-m", LIGHT, *place, "hi")
    assert done.returncode == 1
    assert in_order(done.stdout, "[empty]", "ask again"), done.stdout


# --------------------------------------------------------- python -m equivalence run

RUN_KEYS = {
    *("schema", "implementation", "question", "repeat", "settings", "versions"),
    *("status", "answer", "steps", "exchanges", "error", "warnings"),
}
STEP_KEYS = {"turn", "tool", "arguments", "arguments_text", "result", "ok"}
EXCHANGE_KEYS = {"request", "reply", "status", "repairs", "ms"}
VERDICT_KEYS = {
    *("left", "right", "question", "verdict", "cause", "model_call", "path"),
    *("left_value", "right_value"),
}


def test_run_compares_all_implementations_on_the_demo_questions() -> None:
    done = python("-m", "equivalence", "run", "--json")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    document = json.loads(done.stdout)
    assert set(document) == {"runs", "verdicts"}
    assert {run["implementation"] for run in document["runs"]} == {
        implementation.name for implementation in LADDER
    }
    for run in document["runs"]:
        assert set(run) >= RUN_KEYS
        assert (run["schema"], run["status"]) == ("agent-run/1", "completed")
        assert all(set(step) >= STEP_KEYS for step in run["steps"])
        assert all(set(exchange) >= EXCHANGE_KEYS for exchange in run["exchanges"])
    assert len(document["verdicts"]) == len(document["runs"]) * (len(LADDER) - 1) / len(
        LADDER
    )
    for verdict in document["verdicts"]:
        assert set(verdict) >= VERDICT_KEYS
        assert verdict["verdict"] == "equivalent", verdict
    assert in_order(done.stderr, "Question: ", "What is looked past:", "equivalent")
    assert "Traceback" not in done.stderr


def test_run_draws_a_table_and_says_what_is_looked_past(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "17 * 23", *ONE, "--implementation", "stage2"]) == 0
    out, err = capsys.readouterr()
    assert in_order(out, "Question: 17 * 23", 'calculate(expression="17 * 23")', "391")
    assert in_order(out, "stage3 vs stage2: equivalent", "What is looked past:")
    assert "1 comparison: 1 equivalent" in out
    assert err == ""


ONE = ["--implementation", "stage3"]


def judged(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    """The exit code and the one JSON document on standard output."""
    code = main(["run", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_one_implementation_may_stand_beside_itself(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """The second must not see the conversation of the first."""
    (folder / "q.jsonl").write_text(
        '["What is the weather in Beijing?", "And in Fahrenheit?"]\n', encoding="utf-8"
    )
    code, document = judged(capsys, *ONE, *ONE, "--questions", "q.jsonl")
    assert code == 0, document["verdicts"]
    assert [v["verdict"] for v in document["verdicts"]] == ["equivalent"] * 2
    requests = [run["exchanges"][0]["request"] for run in document["runs"]]
    assert [len(request["messages"]) for request in requests] == [2, 2, 6, 6]


def test_questions_come_from_a_file(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    text = (
        "# a comment\n\n北京天气怎么样？\n"
        '"a JSON string"\n["17 * 23", "and doubled?"]\r\n'
    )
    (folder / "q.jsonl").write_text(text, encoding="utf-8-sig")
    assert read_questions(folder / "q.jsonl") == [
        ["北京天气怎么样？"],
        ["a JSON string"],
        ["17 * 23", "and doubled?"],
    ]
    _, document = judged(capsys, *ONE, "--questions", "q.jsonl", "1 + 1")
    assert [(run["history"], run["question"]) for run in document["runs"]] == [
        ([], "1 + 1"),
        ([], "北京天气怎么样？"),
        ([], "a JSON string"),
        ([], "17 * 23"),
        (["17 * 23"], "and doubled?"),
    ]


OWN = '''
def same(question, **given):
    """Exactly stage 3."""
    from stage3_pure_loop.agent import run_agent
    return run_agent(question, **given)

def shouts(question, **given):
    from stage3_pure_loop.agent import run_agent
    return run_agent(question.upper(), **given)

def breaks(question, **given):
    raise RuntimeError("it\\nbroke")

def lazy(question, **given):
    return []

NOT_A_FUNCTION = 5

def roll(sides: int) -> int:
    "Roll ONE die."
    return 4

TOOLS = [roll]
TWICE = [roll, roll]

async def later() -> str:
    "Answer later."

LATER = [later]
'''


@pytest.fixture
def own(folder: Path) -> Path:
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("function", "code", "verdict", "cause"),
    [
        ("same", 0, "equivalent", None),
        ("shouts", 1, "different", "request"),
    ],
)
def test_an_implementation_of_ones_own(
    own: Path,
    capsys: pytest.CaptureFixture[str],
    function: str,
    code: int,
    verdict: str,
    cause: str | None,
) -> None:
    found = judged(capsys, "hello", *ONE, "--implementation", f"own:{function}")
    assert found[0] == code
    (judgement,) = found[1]["verdicts"]
    assert (judgement["left"], judgement["right"]) == ("stage3", f"own:{function}")
    assert (judgement["verdict"], judgement["cause"]) == (verdict, cause)
    if cause:
        assert judgement["path"] == "$.messages[1].content"
        assert (judgement["left_value"], judgement["right_value"]) == ("hello", "HELLO")


@pytest.mark.parametrize("function", ["breaks", "lazy", "NOT_A_FUNCTION"])
def test_an_implementation_that_fails_is_told_in_one_line(
    own: Path, capsys: pytest.CaptureFixture[str], function: str
) -> None:
    code, document = judged(capsys, "hello", "--implementation", f"own:{function}")
    assert code == 3
    (run,) = document["runs"]
    assert run["status"] == "failed"
    assert run["exchanges"] == run["steps"] == []
    if function == "breaks":
        assert run["error"] == "RuntimeError: it broke"


def test_a_failure_beside_a_success_is_no_verdict_on_the_code_alone(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = judged(capsys, "hello", *ONE, "--implementation", "own:breaks")
    assert code in (1, 3)
    assert document["verdicts"][0]["verdict"] in ("different", "inconclusive")


def test_tools_of_ones_own(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = judged(capsys, "hello", *ONE, "--tools", "own:TOOLS")
    sent = document["runs"][0]["exchanges"][0]["request"]["tools"]
    assert [entry["function"]["name"] for entry in sent] == ["roll"]


CLIENT = """
import json, os, sys, urllib.request

body = {"model": os.environ["LLM_MODEL"], "temperature": 0.0, "stream": False,
        "messages": [{"role": "user", "content": sys.argv[1]}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
    {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as reply:
    print(json.load(reply)["choices"][0]["message"]["content"])
if sys.argv[1] == "crash":
    sys.exit("it crashed")
"""


def test_a_command_in_another_process(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "client.py").write_text(CLIENT, encoding="utf-8")
    command = f"{sys.executable} client.py {{question}}"
    code, document = judged(capsys, "你好，world", "--command", command)
    assert code == 0
    (run,) = document["runs"]
    assert (run["implementation"], run["status"]) == (command, "completed")
    assert run["exchanges"][0]["request"]["messages"][0]["content"] == "你好，world"
    assert run["answer"].startswith("你好")
    code, document = judged(capsys, "hi", *ONE, "--command", command)
    (verdict,) = document["verdicts"]
    assert (code, verdict["cause"]) == (1, "request")


@pytest.mark.parametrize(
    ("command", "question", "words"),
    [
        ("no-such-command {question}", "hi", "no-such-command"),
        (f"{sys.executable} client.py {{question}}", "crash", "it crashed"),
    ],
)
def test_a_command_that_fails_is_told_in_one_line(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    question: str,
    words: str,
) -> None:
    (folder / "client.py").write_text(CLIENT, encoding="utf-8")
    code, document = judged(capsys, question, "--command", command)
    (run,) = document["runs"]
    assert (code, run["status"]) == (3, "failed")
    assert words in run["error"]
    assert "\n" not in run["error"]


def test_raw_switches_the_repairs_off(
    gateway: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    with Gateway(OfflineModel(), repair=False) as server:
        thinks = Script([{"message": {"content": "<think>a</think>b"}}])
        server.open_run("thinks", thinks)
        place = ("--base-url", server.url("thinks"), "--model", "m", "hi", *ONE)
        for arguments, answer in (
            (place, "b"),
            ((*place, "--raw"), "<think>a</think>b"),
        ):
            _, document = judged(capsys, *arguments)
            (run,) = document["runs"]
            assert run["answer"] == answer
            assert run["settings"]["repair"] is (answer == "b")
            assert run["exchanges"][0]["repairs"] == ["think_block"] * (answer == "b")


def test_settings_on_the_command_line_reach_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("--model", "q", "--temperature", "0.5", "--max-steps", "1")
    code, document = judged(capsys, "北京天气", *ONE, *arguments, "--repeats", "2")
    assert [run["repeat"] for run in document["runs"]] == [0, 1]
    for run in document["runs"]:
        assert run["status"] == "step_limit"
        sent = run["exchanges"][0]["request"]
        assert (sent["model"], sent["temperature"]) == ("q", 0.5)
        assert run["settings"]["max_steps"] == 1
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--implementation", "stage9"], "no implementation is named 'stage9'"),
        (["--implementation", "broken:f"], "cannot import broken:f: SyntaxError"),
        (["--implementation", "needy:f"], "No module named 'not_installed'"),
        (["--implementation", "own:nothing"], "own has no 'nothing'"),
        (["--implementation", "nowhere:f"], "No module named 'nowhere'"),
        (["--implementation", ".own:same"], "cannot import .own:same"),
        (["--implementation", ":f"], "cannot import :f"),
        ([*ONE, "--tools", "own:nothing"], "own has no 'nothing'"),
        ([*ONE, "--tools", "own:NOT_A_FUNCTION"], "not a list of functions"),
        ([*ONE, "--tools", "own:roll"], "not a list of functions"),
        ([*ONE, "--tools", "own:TWICE"], "two tools are named 'roll'"),
        ([*ONE, "--tools", "own:LATER"], "'later' is async"),
        ([*ONE, "--questions", "nowhere.jsonl"], "nowhere.jsonl"),
        ([*ONE, "--questions", "."], "error: "),
        ([*ONE, "--questions", "bad.jsonl"], "bad.jsonl, line 2"),
        ([*ONE, "--questions", "empty.jsonl"], "empty.jsonl holds no question"),
        ([*ONE, "--questions", "gbk.jsonl"], "gbk.jsonl is not UTF-8"),
        (["--command", "no place for it"], "{question}"),
        ([*ONE, "--repeats", "0"], "--repeats"),
        ([*ONE, "--repeats", "-1"], "--repeats"),
        ([*ONE, "--max-steps", "0"], "LLM_MAX_STEPS"),
        ([*ONE, "--base-url", "localhost:1", "--model", "m"], "LLM_BASE_URL"),
        ([*ONE, "--base-url", "http://localhost:1"], "LLM_MODEL"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    own: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    (own / "broken.py").write_text("def f(:\n", encoding="utf-8")
    (own / "needy.py").write_text("import not_installed\n", encoding="utf-8")
    (own / "bad.jsonl").write_text('fine\n["not", closed\n', encoding="utf-8")
    (own / "empty.jsonl").write_text("# nothing\n\n", encoding="utf-8")
    (own / "gbk.jsonl").write_bytes("北京天气".encode("gbk"))
    assert main(["run", "hi", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["run", "--fly"], ["diff", "one.jsonl"], ["run", "--out"]],
)
def test_what_argparse_refuses_is_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err.splitlines()[-1]


# -------------------------------------------------------- python -m equivalence diff


def test_two_recordings_of_one_agent_are_equivalent(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        assert main(["run", "北京天气", "17 * 23", *ONE, "--out", name]) == 0
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 0
    assert "stage3 in a.jsonl vs stage3 in b.jsonl: equivalent" in _flat(capsys)
    assert main(["diff", "a.jsonl", "b.jsonl", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [v["verdict"] for v in document["verdicts"]] == ["equivalent"] * 2
    assert set(document["verdicts"][0]) >= VERDICT_KEYS


def _flat(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_two_recordings_that_differ(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, function in (("a.jsonl", "same"), ("b.jsonl", "shouts")):
        implementation = f"own:{function}"
        main(["run", "hello", "--implementation", implementation, "--out", name])
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 1
    assert "cause: request, model call 1, $.messages[1].content" in _flat(capsys)


def test_what_is_in_one_recording_only_leaves_a_doubt(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", "1 + 1", "2 + 2", *ONE, "--out", "a.jsonl"])
    main(["run", "1 + 1", *ONE, "--out", "b.jsonl"])
    main(["run", "3 + 3", *ONE, "--out", "c.jsonl"])
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 3
    assert "in one file only: 2 + 2" in capsys.readouterr().err
    assert main(["diff", "a.jsonl", "c.jsonl"]) == 2
    assert "no question in common" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n{}\n", "record 1"),
        ('{"schema": "agent-run/2"}\n', "agent-run/1"),
        ('{"schema": "agent-run/1", "surprise": 1}\n', "surprise"),
        ("[]\n", "no run record"),
        ("", "no question in common"),
    ],
)
def test_a_file_that_is_no_recording(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (folder / "a.jsonl").write_text(text, encoding="utf-8")
    assert main(["diff", "a.jsonl", "a.jsonl"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


LOADED = """
import sys
from equivalence.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
heavy = ("langchain", "langchain_core", "langgraph", "langchain_openai", "openai",
         "pydantic", "pydantic_settings", "rich")
print(code, *[name for name in heavy if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["--help"], ""),
        (["run", "--help"], ""),
        (["diff", "--help"], ""),
        (["list"], ""),
        (["diff", "a.jsonl", "a.jsonl"], " rich"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_only_what_a_command_needs_is_imported(
    folder: Path, arguments: list[str], loaded: str
) -> None:
    run = Run("stage3", "hi", status="completed", answer="x")
    record.append(folder / "a.jsonl", run)
    done = python("-c", LOADED, *arguments)
    assert done.stderr.splitlines()[-1] == f"0{loaded}"


# ------------------------------------------------------------------- the run record


def a_run(question: str = "问", **more: Any) -> Run:
    step = Step(1, "get_weather", {"city": "北京"}, '{"city": "北京"}', "晴", True, 0)
    return Run("stage3", question, steps=[step], answer="答", **more)


def test_a_record_is_one_line_of_utf8_and_comes_back(folder: Path) -> None:
    path = folder / "new" / "runs.jsonl"
    runs = [a_run("一\n二"), a_run("half \ud83d"), a_run("a\u2028b\x85c\x1cd")]
    for run in runs:
        record.append(path, run)
    text = path.read_bytes().decode("utf-8")
    assert text.count("\n") == 3
    assert text.endswith("}\n")
    assert "北京" in text
    assert "\\u" not in text.replace("\\u001c", "").replace("\\u0085", "")
    back = record.read(path)
    assert [run.question for run in back] == ["一\n二", "half ?", "a\u2028b\x85c\x1cd"]
    assert back[0] == runs[0]
    first = json.loads(text.split("\n")[0])
    assert set(first) >= RUN_KEYS
    assert first["schema"] == "agent-run/1"


@pytest.mark.parametrize("cut", [1, 2, 3, 20, 100, -2, -9, -10, -11])
def test_a_last_line_that_was_cut_off_is_passed_over(folder: Path, cut: int) -> None:
    path = folder / "runs.jsonl"
    for _ in range(2):
        record.append(path, a_run())
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes(whole[:half] + whole[half:][:cut])
    assert record.read(path) == [a_run()]
    record.append(path, a_run("next"))
    assert record.read(path) == [a_run(), a_run("next")]


def test_a_last_line_that_only_lacks_its_end_is_kept(folder: Path) -> None:
    path = folder / "runs.jsonl"
    record.append(path, a_run())
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert record.read(path) == [a_run()]
    record.append(path, a_run("next"))
    assert record.read(path) == [a_run(), a_run("next")]


def test_a_line_cut_off_in_the_middle_is_named(folder: Path) -> None:
    path = folder / "runs.jsonl"
    record.append(path, a_run())
    path.write_bytes(b'{"schema"\n' + path.read_bytes())
    with pytest.raises(ValueError, match=r"runs\.jsonl, record 1: "):
        record.read(path)


def test_out_appends(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for question in ("1 + 1", "2 + 2"):
        assert main(["run", question, *ONE, "--out", "deep/er/runs.jsonl"]) == 0
    runs = record.read(folder / "deep" / "er" / "runs.jsonl")
    assert [run.question for run in runs] == ["1 + 1", "2 + 2"]


def test_a_record_holds_no_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-very-secret")
    with Gateway(OfflineModel()) as server:
        place = ("--base-url", server.url(), "--model", "m")
        assert main(["run", "17 * 23", *ONE, *place, "--out", "runs.jsonl"]) == 0
    assert b"sk-very-secret" not in (folder / "runs.jsonl").read_bytes()


def test_run_without_exchanges_has_no_model_calls() -> None:
    assert a_run().model_calls == []
    exchanges = [{"attempt": n, "status": n} for n in (0, 1, 2, 0)]
    assert [e["status"] for e in a_run(exchanges=exchanges).model_calls] == [2, 0]
