"""The judge's command line: run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_lines import ONE, OWN, RUN_KEYS, VERDICT_KEYS, in_order, python
from wire import LADDER

from equivalence.cli import main
from equivalence.gateway import Gateway, Script
from equivalence.judge.compare import RULES
from equivalence.runs.plan import read_questions
from offline_model import OfflineModel

pytestmark = pytest.mark.usefixtures("own")

STEP_KEYS = {"turn", "tool", "arguments", "arguments_text", "result", "ok"}
EXCHANGE_KEYS = {"request", "reply", "status", "repairs", "ms"}


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
        assert (run["schema"], run["status"]) == ("agent-run/2", "completed")
        assert all(set(step) >= STEP_KEYS for step in run["steps"])
        assert all(set(exchange) >= EXCHANGE_KEYS for exchange in run["exchanges"])
    assert len(document["verdicts"]) == len(document["runs"]) * (len(LADDER) - 1) / len(
        LADDER
    )
    for verdict in document["verdicts"]:
        assert set(verdict) >= VERDICT_KEYS
        assert verdict["verdict"] == "equivalent", verdict
    assert in_order(
        done.stderr, "Question: ", "Ignored in the comparison:", "equivalent"
    )
    assert "Traceback" not in done.stderr


def test_run_draws_a_table_and_says_what_is_ignored(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "17 * 23", *ONE, "--implementation", "stage2"]) == 0
    out, err = capsys.readouterr()
    assert in_order(out, "Question: 17 * 23", 'calculate(expression="17 * 23")', "391")
    assert "stage3 vs stage2: equivalent" in out
    assert "Ignored" not in out  # nothing was
    assert "1 comparison: 1 equivalent" in out
    assert err == ""
    assert main(["run", "17 * 23", *ONE, "--implementation", "stage5"]) == 0
    shown = capsys.readouterr().out
    assert in_order(shown, "Ignored in the comparison:", "tool calls in text")
    assert "ids" not in shown
    assert main(["run", "17 * 23", *ONE, *ONE, "--rules"]) == 0
    assert capsys.readouterr().out.count("  - ") == len(RULES)


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
    assert {run["implementation"] for run in document["runs"]} == {
        "stage3",
        "stage3 (2)",
    }
    requests = [run["exchanges"][0]["request"] for run in document["runs"]]
    assert [len(request["messages"]) for request in requests] == [2, 2, 6, 6]
    assert document["verdicts"][1]["history"] == ["What is the weather in Beijing?"]


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
        behind = server.open_run(thinks)
        place = ("--base-url", behind.url, "--model", "m", "hi", *ONE)
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
    assert code == 1  # neither run is completed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--implementation", "stage9"], "no implementation is named 'stage9'"),
        (["--implementation", "nowhere:f"], "no module is named 'nowhere'"),
        (["--implementation", ".own:same"], "cannot import .own:same"),
        (["--implementation", ":f"], "names no function"),
        ([*ONE, "--tools", "own:nothing"], "own has no 'nothing'"),
        ([*ONE, "--tools", "own:NOT_A_FUNCTION"], "not a list of tools"),
        ([*ONE, "--tools", "own:roll"], "not a list of tools"),
        ([*ONE, "--tools", "own:TWICE"], "two tools are named 'roll'"),
        ([*ONE, "--tools", "broken:f"], "cannot import broken:f: SyntaxError"),
        ([*ONE, "--tools", "needy:f"], "No module named 'not_installed'"),
        ([*ONE, "--out", "notes.txt"], "notes.txt, line 1: this is not JSON"),
        (["notes.txt", *ONE], "notes.txt is a file: questions in a file are for"),
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
    (own / "notes.txt").write_bytes(b"my notes, without a final newline")
    (own / "gbk.jsonl").write_bytes("北京天气".encode("gbk"))
    assert main(["run", "hi", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1
    assert (own / "notes.txt").read_bytes() == b"my notes, without a final newline"


def test_without_a_model_one_line_names_the_ways_to_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("", "[tool.equivalence]\n"):
        (folder / "pyproject.toml").write_text(text)
        assert main(["run", "hi", "--implementation", "own:same"]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
    for way in ("--base-url", "LLM_BASE_URL", "upstream", "script:", "replay"):
        assert way in err, way


@pytest.mark.slow
def test_a_script_of_replies_stands_in_for_a_model(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "replies.yaml").write_text(
        "- calls: [[roll, '{\"sides\": 6}']]\n" * 2 + "- It is four.\n", "utf-8"
    )
    (folder / "pyproject.toml").write_text(
        '[tool.equivalence]\nupstream = "script:replies.yaml"\n'
        'tools = "mine:TOOLS"\nimplementations = { mine = "mine:same" }\n'
    )
    (folder / "mine.py").write_text(OWN, "utf-8")
    below = folder / "deeper"
    below.mkdir()
    for place in (folder, below):  # the table is found from the working folder upwards
        done = python("-m", "equivalence", "run", "hi", "--json", cwd=place)
        assert done.returncode == 0, done.stderr
        (run,) = json.loads(done.stdout)["runs"]
        assert (run["answer"], run["steps"][1]["result"]) == ("It is four.", "4")
        assert [exchange["repairs"] for exchange in run["exchanges"]] == [[]] * 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.equivalence]\nsurprise = 1", "tool.equivalence.surprise: not a field"),
        ("[tool.equivalence", "is not TOML"),
        ("[tool]\nequivalence = 3", "tool.equivalence: it must be a table"),
        ('[tool.equivalence]\nquestions = ["hi"]', "questions: Expected `str`"),
        ("[tool.equivalence]\ntools = 3", "tools: Expected `str`, got `int`"),
        ('[tool.equivalence]\nvariants = ["a:b"]', "variants: Expected `table`"),
        ("[tool.equivalence.implementations]\na = 1", "implementations.a: Expected"),
        (
            "[tool.equivalence.implementations]\na = { target = 1 }",
            "implementations.a: Expected `str`, got `int` - at `$.target`",
        ),
        (
            '[tool.equivalence.implementations]\na = { target = "a:b", agent = "x" }',
            "implementations.a: The table contains unknown field `agent`",
        ),
        ("[tool.equivalence.implementations]\na = {}", "implementations.a: it needs"),
        (
            '[tool.equivalence.implementations]\na = { target = "a:b", at = 1 }',
            "implementations.a",
        ),
        (
            '[tool.equivalence.implementations]\na = { command = "go" }',
            "a command needs the place {question}",
        ),
        (
            '[tool.equivalence.implementations]\na = { target = "a:b", protocol = "x" }',
            "protocol 'x' is none of tool_calls, text",
        ),
        ('[tool.equivalence]\nupstream = "script:no.yaml"', "no.yaml"),
        ('[tool.equivalence]\nupstream = "script:bad.yaml"', "bad.yaml is not YAML"),
        ('[tool.equivalence]\nupstream = "script:odd.yaml"', "no field 'said'"),
        ('[tool.equivalence]\nupstream = "nowhere:Model"', "no module is named"),
    ],
)
def test_a_table_that_cannot_work_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (folder / "mine.py").write_text(OWN, "utf-8")
    (folder / "bad.yaml").write_text("- [", "utf-8")
    (folder / "odd.yaml").write_text("- {said: hi}", "utf-8")
    (folder / "pyproject.toml").write_text(text)
    assert main(["run", "hi", "--implementation", "mine:same"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["run", "--fly"], ["diff"], ["run", "--out"]],
)
def test_what_argparse_refuses_is_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err.splitlines()[-1]


def test_an_endpoint_that_refuses_ends_with_the_cure(
    own: Path, server: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"error": {"message": "bad key", "type": "invalid_request_error"}}
    script = Script([{"status": 401, "body": body}])
    with server.open_run(script) as behind:
        place = ("--base-url", behind.url, "--model", "m")
        assert main(["run", "hi", "--implementation", "stage3", *place]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "bad key" in said
    assert "Check LLM_API_KEY" in said
