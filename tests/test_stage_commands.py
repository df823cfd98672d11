"""The stages' command lines: an answer, a conversation, an endpoint that fails."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_lines import at_terminal, environment, in_order, python
from wire import LADDER, Waits, implementations

from chat import main
from config import Settings
from equivalence.gateway import Gateway, Script
from equivalence.runs.files import read_runs
from equivalence.runs.hints import hint
from equivalence.runs.observe import observe
from equivalence.runs.output import columns as columns_of
from tools import TOOLS

pytestmark = pytest.mark.usefixtures("folder")

PUBLISHED = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
STAGES = list(dict.fromkeys(i.target.partition(".")[0] for i in LADDER))
LIGHT = "stage4_mini_framework"  # starts in half the time: no LangChain


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


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["stage3_pure_loop", "stage5_text_react"])
def test_wire_shows_what_each_request_adds_and_each_reply(stage: str) -> None:
    done = python("-m", stage, "--wire", "How warm is it in Beijing?")
    assert done.returncode == 0, done.stderr
    text = stage == "stage5_text_react"
    asks = 'Action Input: {"city": "Beijing"}' if text else 'calls get_weather({"city"'
    assert in_order(
        done.stdout,
        "request with 2 messages, tools: " + ("none" if text else "get_weather, "),
        "  system: You are a careful assistant.",
        "  user: How warm is it in Beijing?\nreply\n  assistant: ",
        asks,
        "turn 1  get_weather(",
        "request with 4 messages",
        "  (the first 2 as before)\n",
        asks,
        f"  {'user: Observation' if text else 'tool'}: 北京 Beijing: 25 °C",
        "reply\n  assistant: ",
    ), done.stdout
    assert done.stdout.count("You are a careful assistant.") == 1


@pytest.mark.slow
def test_the_successor_of_stage_1() -> None:
    done = python("-m", "stage1_prebuilt", "--successor", "17 * 23")
    assert done.returncode == 0, done.stderr
    assert in_order(done.stdout, "turn 1  calculate(", "→ 391", "391")


CONVERSATION = """What is the weather in Beijing?

And in Fahrenheit?
/new
And in Fahrenheit?
"""


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "goodbye"),
    [
        ("q", "Goodbye."),
        ("QUIT", "Goodbye."),
        ("17 * 23\nexit", "Goodbye."),
        ("退出", "再见！"),
        ("再见", "再见！"),
        ("现在几点了？\nq", "再见！"),
    ],
)
def test_a_word_of_leaving_ends_it_with_a_goodbye_in_the_language_of_the_talk(
    words: str, goodbye: str
) -> None:
    done = python("-m", LIGHT, stdin=f"{words}\n2 * 3\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"> {goodbye}\n")
    assert done.stdout.count("turn ") == words.count("\n")


# ------------------------------------------------------------- odd streams and devices


def shell(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a stage with redirections: {stage} stands for its command."""
    command = line.replace("{stage}", f"{sys.executable} -m {LIGHT}")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment(**more),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell's redirections")
@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("{stage} '17 * 23' <&-", 0, "17 × 23 = 391.\n", ""),
        ("{stage} '17 * 23' >&-", 0, "", ""),
        ("{stage} '17 * 23' <&- >&- 2>&-", 0, "", ""),
        ("{stage} '17 * 23' | true", 0, "", ""),
        ("{stage} '17 * 23' | head -n 1", 0, "})\n", ""),
        ("{stage} <&-", 2, "", "give the question as an argument\n"),
        ("{stage} </dev/null", 0, "> \n", ""),
        ("{stage} '17 * 23' >/dev/full", 2, "", "error: No space left on device\n"),
        ("echo '17 * 23' | {stage} >/dev/full", 2, "", "No space left on device\n"),
    ],
)
def test_closed_full_and_left_streams(line: str, code: int, out: str, err: str) -> None:
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("this system has no device that is full")
    done = shell(line)
    assert (done.returncode, done.stdout[-len(out) :] if out else "") == (code, out)
    assert done.stderr.endswith(err)
    assert done.stderr.count("\n") == err.count("\n")


def test_a_replaced_stdin_is_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under a test runner: its stdin cannot be read, a StringIO has no encoding."""
    monkeypatch.setattr("sys.argv", [LIGHT, "17 * 23"])
    assert main("stage4") == 0
    assert "17 × 23 = 391." in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [LIGHT])
    assert main("stage4") == 2
    assert "give the question as an argument" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("17 * 23\n"))
    assert main("stage4") == 0
    assert "17 × 23 = 391." in capsys.readouterr().out


ESCAPES = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\x9bd\u202ee\rf\x00g"
SEEN = "a\\x1b]52;c;aGk=\\x07b\\x1b[2Jc\\x9bd\\u202ee\\rf\\x00g"


@pytest.mark.slow
def test_nothing_that_is_printed_steers_the_terminal(gateway: Gateway) -> None:
    """An answer, a call, a tool's result, a model's name, an endpoint's words."""
    arguments = json.dumps({"city": ESCAPES}, ensure_ascii=False)
    function = {"name": f"get_{ESCAPES}", "arguments": arguments}
    unknown = {"id": "a", "type": "function", "function": function}
    known = {**unknown, "function": {**function, "name": "get_weather"}, "id": "b"}
    script = [
        {"message": {"content": None, "tool_calls": [unknown, known]}},
        {"message": {"content": ESCAPES}},
        {"status": 400, "body": {"error": {"message": ESCAPES}}},
    ]
    run = gateway.open_run(Script(script))
    place = ("--base-url", run.url, "--model", ESCAPES.replace("\x00", ""))
    done = python("-m", LIGHT, *place, stdin="go\nagain\n")
    printed = done.stdout + done.stderr
    assert not set(printed) & set("\x1b\x07\x9b\u202e\r\x00"), printed
    assert f"\n{SEEN}\n" in done.stdout  # the answer
    assert printed.count("52;c;aGk=") >= 6
    refused = python("-m", LIGHT, "--base-url", "\x1b[2J", "hi")
    assert refused.returncode == 2
    assert "\x1b" not in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("question", [["hi"], []], ids=["question", "conversation"])
def test_ctrl_c_ends_it_without_a_traceback(
    gateway: Gateway, question: list[str]
) -> None:
    waits = Waits()
    url = gateway.open_run(waits).url
    process = subprocess.Popen(
        [sys.executable, "-m", LIGHT, *question],
        env=environment(LLM_BASE_URL=url, LLM_MODEL="m"),
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


# ------------------------------------------------------------------------- encodings


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["gbk", "cp1252", "ascii"])
def test_no_console_is_too_poor_for_an_answer(
    gateway: Gateway, own: Path, encoding: str
) -> None:
    """R115, with the output redirected to a file, where it shows most."""
    script = Script([{"message": ASKS}, {"message": SHOWN}] * 2)
    place = ["--base-url", gateway.open_run(script).url, "--model", "✅"]
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
        with (own / "out.txt").open("wb") as out:
            done = subprocess.run(
                [sys.executable, *line],
                env=environment(PYTHONIOENCODING=encoding),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
            )
        text = (own / "out.txt").read_bytes().decode(encoding)
        assert "Traceback" not in text, (name, text)
        assert "UnicodeEncodeError" not in text, (name, text)
        assert done.returncode == (2 if name == "wrong usage" else 0), (name, text)
        assert text.strip()
    (run,) = read_runs(own / "runs.jsonl")
    assert run.answer == SHOWN["content"]


@pytest.mark.slow
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


STYLE = re.compile(r"\x1b\[([0-9;]*)m")
PAIR = [*("equivalence", "run", "--implementation", "stage3")]
PAIR += ["--implementation", "stage4", "17 * 23"]
TERMINALS = {  # a command line; what it says, in this order; whether its lines fit
    "a stage": ([LIGHT, "17 * 23"], ["calculate(", "→ 391", "17 × 23 = 391."], False),
    "the judge": (PAIR, ["17 * 23", "calculate(", "391", "equivalent"], True),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(("line", "said", "fits"), TERMINALS.values(), ids=TERMINALS)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [20, 80])
@pytest.mark.parametrize("plain", [{}, {"NO_COLOR": "1"}], ids=["colours", "NO_COLOR"])
def test_a_terminal_that_is_narrow_or_wants_no_colours(
    line: list[str],
    said: list[str],
    fits: bool,
    language: str,
    columns: int,
    plain: dict[str, str],
) -> None:
    """A stage's lines are left to the terminal to break, so they can be copied."""
    code, text = at_terminal(
        "-m", *line, columns=columns, **{"LLM_LANG": language, **plain}
    )
    styles = {number for found in STYLE.findall(text) for number in found.split(";")}
    text = STYLE.sub("", text)
    assert code == 0, text
    assert "\x1b" not in text
    coloured = any(len(number) == 2 for number in styles)  # 30 and more: colours
    assert coloured is not bool(plain), styles
    said = said if language == "en" else said[:-1]  # the last is in words
    assert in_order(text, *said), text
    wide = max(map(columns_of, text.splitlines()))
    assert wide <= columns or not fits, text


VLLM = (
    '"auto" tool choice requires --enable-auto-tool-choice and'
    " --tool-call-parser to be set"
)


FAILURES = [
    (404, 'model "qwen9" not found', "Check LLM_MODEL"),
    (400, VLLM, "vLLM refuses tools until"),
    (422, "bad\nrequest", ""),
]


# -------------------------------------------------------------- endpoints that fail


@pytest.mark.slow
@pytest.mark.parametrize(("status", "said", "advice"), FAILURES)
def test_a_refusal_is_one_line_and_a_hint_after_one_request(
    gateway: Gateway, status: int, said: str, advice: str
) -> None:
    """R109, R112, at the command line."""
    item = {"status": status, "body": {"error": {"message": said}}}
    log = gateway.open_run(Script([item]))
    place = ("--base-url", log.url, "--model", "qwen9")
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
        implementation,
        "hi",
        offline_settings.model_copy(update={"retries": 2}),
        gateway,
        TOOLS,
        upstream=Script([item]),
    )
    assert seen.run.status == "model_error"
    words = " ".join(said.split())
    assert seen.run.error == f"the endpoint answered {status}: {words}"
    assert len(seen.run.exchanges) == 1
    assert (hint(seen.run.error) or "").startswith(advice)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (f"the endpoint answered 400: {VLLM}", "vLLM"),
        ("the endpoint answered 400: enable_thinking must be false", "LLM_EXTRA_BODY"),
        ("the endpoint answered 400: missing reasoning_content", "LLM_ECHO_REASONING"),
        ("the endpoint answered 400: no such field max_tokens", "LLM_MAX_TOKENS_FIELD"),
        ("the endpoint answered 401: no", "LLM_API_KEY"),
        ("the endpoint answered 503: Loading model", "wait a little"),
        ("the endpoint answered 404: no", "LLM_BASE_URL"),
        ("cannot reach http://x: connection refused", "Is the server running"),
        ("the endpoint answered 504: no reply from http://x within", "LLM_TIMEOUT"),
        ("the endpoint failed: Request timed out.", "LLM_TIMEOUT"),
    ],
)
def test_the_commonest_failures_have_a_hint(error: str, advice: str) -> None:
    assert advice in (hint(error) or "")
    assert hint("RuntimeError: something else") is None
    assert hint(None) is None


@pytest.mark.slow
def test_an_endpoint_that_is_down_is_one_line_and_a_hint() -> None:
    place = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    done = python("-m", LIGHT, *place, "hi")
    assert done.returncode == 1
    assert done.stderr == ""
    assert in_order(
        done.stdout,
        "\ncannot reach http://127.0.0.1:9/v1: connection refused\n",
        "Is the server running? Check LLM_BASE_URL",
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


@pytest.mark.slow
def test_a_run_without_an_answer_is_told_and_exits_with_1(gateway: Gateway) -> None:
    silent = gateway.open_run(Script([{"message": {"content": ""}}]))
    place = ("--base-url", silent.url, "--model", "m")
    done = python("-m", LIGHT, *place, "hi")
    assert done.returncode == 1
    assert in_order(done.stdout, "[empty]", "ask again"), done.stdout


@pytest.mark.parametrize("stream", ["false", "true"])
def test_a_streamed_answer_is_printed_once(stream: str) -> None:
    """As it is written, and not again when it is there."""
    done = python("-m", LIGHT, "17 * 23", LLM_STREAM=stream)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "17 × 23 = 391."
    assert done.stdout.count("= 391") == 1
