"""The score: its figures, and every case on the offline model."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmark_runs import CASES, TENCENT, WORTH, call, run, step
from equivalence.runs.trial import subjects

from config import Settings
from equivalence.cli import main
from equivalence.gateway import Gateway, Script
from equivalence.gateway.repairs import REPAIRS
from equivalence.runs import record
from equivalence.runs.implementation import LADDER
from equivalence.runs.observe import observe
from equivalence.runs.record import Run
from equivalence.runs.steps import UNREAD
from equivalence.score.cases import (
    FILE,
    KINDS,
)
from equivalence.score.figures import (
    PUBLISHED,
    Answered,
    Benchmark,
    Score,
    ask,
    context,
    score,
)
from toolkit.tokens import message_tokens, tokens
from tools import TOOLS

pytestmark = pytest.mark.usefixtures("folder")

ROOT = Path(__file__).parent.parent


def exchange(prompt_tokens: int | None = None, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "x"}
    reply: dict[str, Any] = {"choices": [{"message": message, "finish_reason": "stop"}]}
    if prompt_tokens is not None:
        reply["usage"] = {"prompt_tokens": prompt_tokens}
    request = {"messages": [{"role": "user", "content": "go"}]}
    fields = {"request": request, "reply": reply, "status": 200, "repairs": []}
    return {**fields, "ms": 1.0, "attempt": 0, **more}


def answered(
    case: str, *runs: Run, seconds: tuple[float, ...] = (), name: str = "stage9"
) -> Answered:
    return Answered(name, CASES[case], runs, seconds or (1.0,) * len(runs))


# ----------------------------------------------------------------------- the figures


def test_the_figures_of_known_runs() -> None:
    right = run(*TENCENT, answer=WORTH)
    right.exchanges = [exchange(900), exchange(1000), exchange(1100), exchange(1200)]
    wrong = run(step("get_weather", city="Oslo", ok=False), answer="no idea")
    repeated = exchange(2000, attempt=1)
    wrong.exchanges = [exchange(800), exchange(1500), repeated]
    wrong.unread = [2]
    none = run(answer="hello")
    none.exchanges = [exchange(700)]
    first = run(step("get_weather", city="北京"), answer="25 °C")
    first.exchanges = [exchange(), exchange(850)]
    down = run(status="model_error")
    down.exchanges = [exchange(status=502, reply={"error": {"message": "down"}})]
    gathered = [
        answered("time-price-value", right, seconds=(4.0,)),
        answered("weather-guangzhou", wrong, seconds=(2.0,)),
        answered("hello-zh", none, seconds=(1.0,)),
        answered("beijing-then-shanghai", first, down, seconds=(2.0, 3.0)),
        answered("hello-zh", none, name="another"),
    ]
    assert score("stage9", gathered) == Score(
        implementation="stage9",
        by_kind={
            "one tool": (0, 1),
            "several tools": (1, 1),
            "none": (1, 1),
            "follow-up": (0, 1),
        },
        completed=50.0,
        calls_worked=80.0,  # 4 of 5
        extra_calls=1,
        model_calls=2.0,  # 4 + 2 + 1 + 2 + 1 in 5 questions
        seconds=2.4,  # 12 in 5
        peak_context=2000,
        peak_estimated=False,
        unread=pytest.approx(100 / 9),  # of 9 replies
    )


def test_where_there_is_nothing_there_is_no_figure() -> None:
    nothing = score("stage9", [])
    assert nothing.by_kind == dict.fromkeys(KINDS, (0, 0))
    assert nothing.completed is nothing.calls_worked is nothing.model_calls is None
    assert nothing.seconds is nothing.peak_context is nothing.unread is None


def test_a_context_nobody_counted_is_estimated() -> None:
    messages = [{"role": "user", "content": "北京天气怎么样？"}]
    tools = [{"type": "function", "function": {"name": "get_weather"}}]
    asked = {"messages": messages, "tools": tools}
    listed = tokens(json.dumps(tools, ensure_ascii=False))
    assert listed > 0
    assert context(exchange(request=asked)) == (message_tokens(messages) + listed, True)
    assert context(exchange(1234, request=asked)) == (1234, False)
    blocks = [
        {"role": "user", "content": [{"type": "text", "text": "北京天气怎么样？"}]}
    ]
    assert context(exchange(request={"messages": blocks})) == (
        message_tokens(messages),
        True,
    )


def watched(
    name: str, gateway: Gateway, settings: Settings, replies: list[Any], **more: Any
) -> Run:
    (subject,) = subjects([name])
    settings = settings.model_copy(update={"max_steps": 6})
    script = Script([{"message": message} for message in replies])
    return observe(
        name, subject.agent, "go", settings, gateway, TOOLS, upstream=script, **more
    ).run


# ------------------------------------------------- replies that could not be read


def test_the_repairs_that_count_are_repairs() -> None:
    assert set(REPAIRS) > UNREAD


@pytest.mark.parametrize(
    "name", [each.name for each in LADDER if each.name != "stage5"]
)
def test_unread_with_tool_calls(
    name: str, gateway: Gateway, offline_settings: Settings
) -> None:
    replies = [
        call('{"city": "北京"'),  # broken
        {"content": '{"name": "get_weather", "arguments": {"city": "北京"}}'},  # text
        call('{"city": "北京"}'),
        call(""),  # the server's way to say: none
        {"content": "<think>so</think>done"},
    ]
    assert watched(name, gateway, offline_settings, replies).unread == [1, 2]


def test_unread_in_text(gateway: Gateway, offline_settings: Settings) -> None:
    replies = [
        {"content": "It must be warm."},
        {"content": "Action: unit_convert\nAction Input: 18 °C to °F"},
        {"content": 'Action: get_weather\nAction Input: {"city": "北京"}'},
        {"content": "Final Answer: 25 °C"},
    ]
    found = watched("stage5", gateway, offline_settings, replies)
    assert found.status == "completed"
    assert found.unread == [1, 2]
    assert Run.from_json(json.loads(json.dumps(found.to_json()))).unread == [1, 2]
    given_up = watched("stage5", gateway, offline_settings, replies[:1])
    assert given_up.status == "malformed"
    assert given_up.unread == [1, 2, 3]


# --------------------------------------------- everything, on the offline model


@pytest.mark.parametrize("name", [each.name for each in LADDER])
def test_every_implementation_completes_every_case(
    name: str, offline_settings: Settings
) -> None:
    benchmark = Benchmark(list(CASES.values()))
    for each, seconds in ask(subjects([name]), benchmark.cases, offline_settings):
        benchmark.add(each, seconds)
    assert len(benchmark.answered) == len(CASES)
    failed = {
        a.case.id: a.outcome.reasons for a in benchmark.answered if a.outcome.reasons
    }
    assert failed == {}
    found = score(name, benchmark.answered)
    assert found.completed == found.calls_worked == 100
    assert found.unread == 0
    assert 1 < (found.model_calls or 0) < 3
    assert found.peak_estimated
    assert found.peak_context == max(
        context(exchange)[0]
        for each in benchmark.answered
        for run in each.runs
        for exchange in run.exchanges
    )
    if name != "stage5":  # its memory may have let go of what is asked about
        assert found.extra_calls == 0


def few(folder: Path, *ids: str) -> str:
    """A file of some of the cases."""
    parts = re.split(r"\n(?=- id: )", FILE.read_text(encoding="utf-8"))
    chosen = [
        part for part in parts if part.startswith(tuple(f"- id: {i}\n" for i in ids))
    ]
    assert len(chosen) == len(ids)
    text = "\n".join(chosen)
    (folder / "few.yaml").write_text(text, encoding="utf-8")
    return "few.yaml"


FEW = ("two-cities", "weather-guangzhou", "beijing-then-shanghai", "hello-zh")
LOST = "variants.faults:lost_result"


def test_the_command_draws_a_table(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    names = ["--implementation", "stage4", "--implementation", "stage5"]
    cases = few(folder, *FEW)
    arguments = ["score", *names, *names, "--cases", cases, "--out", "runs.jsonl"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    lines = {line[:28].strip(): line[28:].split() for line in printed.splitlines()}
    assert "stage4 stage5 published" in " ".join(printed.split())
    assert lines["cases completed"] == ["100", "%", "100", "%", "88", "%"]
    assert lines["one tool"] == ["1/1", "1/1"]
    assert lines["follow-up"] == ["1/1", "1/1"]
    assert lines["tool calls that worked"] == ["100", "%", "100", "%", "94.7", "%"]
    assert lines["model calls a question"] == ["1.8", "2.0", "2.3"]
    assert lines["peak context, tokens"][-1] == "1,850"
    assert lines["peak context, tokens"][0].startswith("≈")
    assert lines["replies that did not parse"] == ["0", "%", "0", "%", "4.2", "%"]
    said = " ".join(printed.split())
    assert "Seconds are this machine's, with the offline model." in said
    assert "≈ is estimated" in said
    assert "Other cases and another model" in said
    assert "not completed" not in said
    runs = record.read(folder / "runs.jsonl")
    assert Counter(run.implementation for run in runs) == {"stage4": 5, "stage5": 5}


def test_a_broken_implementation_is_found_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It loses a result; what the model says then, it says without the tool."""
    cases = few(folder, *FEW)
    arguments = ["score", "--implementation", "stage3", "--implementation", LOST]
    assert main([*arguments, "--cases", cases, "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert "3 times a case was not completed; --failed lists them" in printed.err
    good, lost = document["scores"]
    assert (good["implementation"], good["completed"]) == ("stage3", 100)
    assert (lost["implementation"], lost["completed"]) == (LOST, 25)
    assert lost["by_kind"]["none"] == [1, 1]
    assert document["published"]["figures"] == PUBLISHED
    assert len(document["outcomes"]) == 8
    failed = [o for o in document["outcomes"] if not o["completed"]]
    assert {o["implementation"] for o in failed} == {LOST}
    assert {o["case"] for o in failed} == set(FEW) - {"hello-zh"}
    for each in document["outcomes"]:
        assert bool(each["reasons"]) != each["completed"]
        assert all(seconds > 0 for seconds in each["seconds"])

    assert main([*arguments, "--cases", cases, "--failed"]) == 1
    printed = capsys.readouterr()
    said = " ".join(printed.out.split())
    assert f"{LOST}, weather-guangzhou 广州今天天气怎么样？ →" in said
    assert "✗ the answer lacks 31" in said
    assert "stage3, " not in said


def test_one_wrong_answer_is_not_completed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "liar.py").write_text(
        "from stage4_mini_framework.agent import run_agent as honest\n"
        "def run_agent(question, **more):\n"
        "    *before, last = honest(question, **more)\n"
        "    text = last['content'].replace('31', '13')\n"
        "    return [*before, {**last, 'content': text}]\n",
        encoding="utf-8",
    )
    arguments = ["score", "--implementation", "liar:run_agent", "--failed"]
    assert main([*arguments, "--cases", few(folder, *FEW)]) == 1
    said = capsys.readouterr().out
    assert said.count("✗") == 1
    assert "the answer lacks 31" in said


def test_a_model_that_is_not_there_ends_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_RETRIES", "0")
    arguments = ["score", "--implementation", "stage4", "--base-url", "127.0.0.1:9/v1"]
    assert main([*arguments, "--model", "m"]) == 2  # no http://
    capsys.readouterr()
    arguments[-1] = "http://127.0.0.1:9/v1"
    assert main([*arguments, "--model", "m"]) == 1
    printed = capsys.readouterr()
    assert "cannot reach" in printed.err
    assert "3 of 58 answered cases" in printed.err
    assert "Is the server running?" in printed.err
    assert "0/3" in printed.out


def test_the_settings_reach_the_model(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "LLM_CLOCK", "2030-01-01T00:00:00+00:00"
    )  # the cases have theirs
    arguments = ["score", "--implementation", "stage4", "--cases", few(folder, *FEW)]
    more = ["--max-steps", "1", "--temperature", "0.5", "--model", "another"]
    assert main([*arguments, *more, "--out", "runs.jsonl"]) == 1
    for each in record.read(folder / "runs.jsonl"):
        assert len(each.model_calls) == 1
        assert each.exchanges[0]["request"]["temperature"] == 0.5
        assert each.exchanges[0]["request"]["model"] == "another"
        assert each.settings["clock"].startswith("2026-01-05T09:30")


def test_ctrl_c_keeps_what_was_gathered(folder: Path) -> None:
    """The last case never ends; the table tells of the three before it."""
    (folder / "slow.py").write_text(
        "import time\n"
        "from stage4_mini_framework.agent import run_agent as quick\n"
        "def run_agent(question, **more):\n"
        "    if question == '北京今天多少度？':\n"
        "        open('here', 'w', encoding='utf-8').close()\n"
        "        time.sleep(60)\n"
        "    return quick(question, **more)\n",
        encoding="utf-8",
    )
    arguments = ["score", "--implementation", "slow:run_agent", "--json"]
    started = subprocess.Popen(
        [sys.executable, "-m", "equivalence", *arguments, "--cases", few(folder, *FEW)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    deadline = time.monotonic() + 50
    while not (folder / "here").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    out, error = started.communicate(timeout=30)
    assert started.returncode == 130, error
    assert json.loads(out)["scores"][0]["completed"] == 100
    assert "interrupted; the figures rest on 3 of 4 answered cases" in error
    assert "Traceback" not in error
