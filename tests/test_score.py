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
from benchmark_runs import CASES, FILE, PUBLISHED, TENCENT, WORTH, call, run, step
from command_lines import environment
from wire import LADDER, implementations

from equivalence.cli import main
from equivalence.gateway import Exchange, Gateway, Script
from equivalence.gateway.repairs import REPAIRS
from equivalence.gateway.upstreams import Reply, error_reply
from equivalence.runs.files import from_line, read_runs, to_line
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import observe
from equivalence.runs.plan import Plan
from equivalence.runs.record import Run
from equivalence.runs.session import gather
from equivalence.runs.steps import UNREAD
from equivalence.score.cases import KINDS
from equivalence.score.figures import (
    BYTES_PER_TOKEN,
    Answered,
    Benchmark,
    Score,
    context,
    score,
    seconds,
)
from equivalence.settings import Settings
from offline_model import OfflineModel
from tools import TOOLS

pytestmark = pytest.mark.usefixtures("own")


def exchange(prompt_tokens: int | None = None, **more: Any) -> Exchange:
    message = {"role": "assistant", "content": "x"}
    reply: dict[str, Any] = {"choices": [{"message": message, "finish_reason": "stop"}]}
    if prompt_tokens is not None:
        reply["usage"] = {"prompt_tokens": prompt_tokens}
    request = {"messages": [{"role": "user", "content": "go"}]}
    usual = {"request": request, "reply": reply, "status": 200, "ms": 500.0}
    return Exchange(**{**usual, **more})


def answered(case: str, *runs: Run, name: str = "stage9") -> Answered:
    return Answered(name, CASES[case], runs)


# ----------------------------------------------------------------------- the figures


def test_the_figures_of_known_runs() -> None:
    right = run(*TENCENT, answer=WORTH)
    right.exchanges = [
        exchange(tokens, began=1000.0 * turn)
        for turn, tokens in enumerate((900, 1000, 1100, 1200), 1)
    ]
    wrong = run(step("get_weather", city="Oslo"), answer="no idea")
    repeated = exchange(2000, attempt=1, began=1000.0)
    begun = exchange(800, request={"messages": []})
    wrong.exchanges = [begun, exchange(1500), repeated]
    wrong.unread = [2]
    none = run(answer="hello")
    none.exchanges = [exchange(700, began=9000.0)]
    first = run(step("get_weather", city="北京"), answer="25 °C")
    first.exchanges = [exchange(9999)]
    down = run(status="model_error")
    down.exchanges = [exchange(status=502, reply={"error": {"message": "down"}})]
    gathered = [
        answered("time-price-value", right),
        answered("weather-guangzhou", wrong),
        answered("hello-zh", none),
        answered("beijing-then-shanghai", first, down),
        answered("hello-zh", none, name="another"),
    ]
    assert score("stage9", gathered) == Score(
        implementation="stage9",
        by_kind={
            "one tool": (0, 1),
            "several tools": (1, 1),
            "none": (1, 1),
            "follow-up": (0, 0),
        },
        left_out=1,
        completed=pytest.approx(200 / 3),
        calls_worked=75.0,  # 3 of 4
        extra_calls=1,
        model_calls=pytest.approx(7 / 3),  # 4 + 2 + 1 in 3 questions
        seconds=pytest.approx((3.5 + 1.5 + 0.5) / 3),
        peak_context=2000,
        peak_estimated=False,
        unread=pytest.approx(100 / 7),  # 1 of 7 replies
    )


def test_seconds_are_those_of_the_record() -> None:
    assert seconds(run()) is None
    assert seconds(Run("a", "q", exchanges=[exchange(ms=None, status=None)])) is None
    open_one = exchange(ms=None, status=None, began=9000.0)
    exchanges = [exchange(began=300.0), exchange(began=1000.0, ms=250.0), open_one]
    assert seconds(Run("a", "q", exchanges=exchanges)) == 0.95


def test_where_there_is_nothing_there_is_no_figure() -> None:
    nothing = score("stage9", [])
    assert nothing.by_kind == dict.fromkeys(KINDS, (0, 0))
    assert nothing.completed is nothing.calls_worked is nothing.model_calls is None
    assert nothing.seconds is nothing.peak_context is nothing.unread is None


def test_a_context_nobody_counted_is_estimated() -> None:
    messages = [{"role": "user", "content": "北京天气怎么样？"}]
    tools = [{"type": "function", "function": {"name": "get_weather"}}]
    asked = {"messages": messages, "tools": tools}
    sent = json.dumps([messages, tools], ensure_ascii=False).encode()
    expected = int(len(sent) / BYTES_PER_TOKEN)
    assert context(exchange(request=asked)) == (expected, True)
    assert context(exchange(request={**asked, "model": "m"})) == (expected, True)
    assert context(exchange(1234, request=asked)) == (1234, False)


def test_of_a_run_asked_twice_the_later_one_counts() -> None:
    benchmark = Benchmark([CASES["hello-zh"], CASES["beijing-then-shanghai"]])
    question = CASES["hello-zh"].questions[0].ask
    for answer in ("first", "second"):
        benchmark.add(Run("a", question, status="completed", answer=answer))
    benchmark.add(Run("a", question, repeat=1, status="completed", answer="third"))
    benchmark.add(Run("b", "no question of the benchmark"))
    benchmark.add(Run("b", CASES["beijing-then-shanghai"].questions[0].ask))
    told = [each.runs[0].answer for each in benchmark.answered]
    assert told == ["second", "third"]


def watched(
    implementation: Implementation,
    gateway: Gateway,
    settings: Settings,
    replies: list[Any],
) -> Run:
    settings = settings.model_copy(update={"max_steps": 6})
    script = Script([{"message": message} for message in replies])
    return observe(implementation, "go", settings, gateway, TOOLS, upstream=script).run


# ------------------------------------------------- replies that could not be read


def test_the_repairs_that_count_are_repairs() -> None:
    assert set(REPAIRS) > UNREAD


@pytest.mark.parametrize(
    "implementation",
    [each for each in LADDER if each.protocol == "tool_calls"],
    ids=lambda each: each.name,
)
def test_unread_with_tool_calls(
    implementation: Implementation, gateway: Gateway, offline_settings: Settings
) -> None:
    replies = [
        call('{"city": "北京"'),  # broken
        {"content": '{"name": "get_weather", "arguments": {"city": "北京"}}'},  # text
        call('{"city": "北京"}'),
        call(""),  # the server's way to say: none
        {"content": "<think>so</think>done"},
    ]
    assert watched(implementation, gateway, offline_settings, replies).unread == [1, 2]


def test_unread_in_text(gateway: Gateway, offline_settings: Settings) -> None:
    replies = [
        {"content": "It must be warm."},
        {"content": "Action: unit_convert\nAction Input: 18 °C to °F"},
        {"content": 'Action: get_weather\nAction Input: {"city": "北京"}'},
        {"content": "Final Answer: 25 °C"},
    ]
    found = watched(LADDER[-1], gateway, offline_settings, replies)
    assert found.status == "completed"
    assert found.unread == [1, 2]
    assert from_line(to_line(found)).unread == [1, 2]
    given_up = watched(LADDER[-1], gateway, offline_settings, replies[:1])
    assert given_up.status == "malformed"
    assert given_up.unread == [1, 2, 3]


# --------------------------------------------- everything, on the offline model


@pytest.mark.slow
@implementations
def test_every_implementation_completes_every_case(
    implementation: Implementation, offline_settings: Settings
) -> None:
    benchmark = Benchmark(list(CASES.values()))
    asked = [[q.ask for q in case.questions] for case in CASES.values()]
    plan = Plan([implementation], asked, offline_settings, TOOLS)
    for each in gather(plan, lambda number: OfflineModel(run_seed=number)):
        benchmark.add(each)
    assert len(benchmark.answered) == len(CASES)
    failed = {
        a.case.id: a.outcome.reasons for a in benchmark.answered if a.outcome.reasons
    }
    assert failed == {}
    found = score(implementation.name, benchmark.answered)
    assert found.completed == found.calls_worked == 100
    assert found.unread == found.left_out == 0
    assert 1 < (found.model_calls or 0) < 3
    assert 0 < (found.seconds or 0) < 1
    if implementation.protocol != "text":  # its memory may have let go of what is asked
        assert found.extra_calls == 0


def few(own: Path, *ids: str) -> str:
    """A file of some of the cases."""
    parts = re.split(r"\n(?=- id: )", FILE.read_text(encoding="utf-8"))
    chosen = [
        part for part in parts if part.startswith(tuple(f"- id: {i}\n" for i in ids))
    ]
    assert len(chosen) == len(ids)
    text = "\n".join(chosen)
    names = parts[0][: parts[0].index("published:")]
    (own / "few.yaml").write_text(f"{names}cases:\n{text}", encoding="utf-8")
    return "few.yaml"


FEW = ("two-cities", "weather-guangzhou", "beijing-then-shanghai", "hello-zh")
LOST = "variants.faults:lost_result"


def table_of(printed: str) -> dict[str, list[str]]:
    return {line[:28].strip(): line[28:].split() for line in printed.splitlines()}


def test_the_command_draws_a_table(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    names = ["--implementation", "stage4", "--implementation", "stage5"]
    arguments = ["score", *names, "--cases", few(own, *FEW), "--out", "runs.jsonl"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    lines = table_of(printed)
    assert lines["cases completed"] == ["100", "%", "100", "%"]
    assert lines["one tool"] == ["1/1", "1/1"]
    assert lines["follow-up"] == ["1/1", "1/1"]
    assert lines["tool calls that worked"] == ["100", "%", "100", "%"]
    assert lines["model calls a question"] == ["1.8", "2.0"]
    assert lines["peak context, tokens"][0].startswith("≈")
    assert lines["replies that did not parse"] == ["0", "%", "0", "%"]
    said = " ".join(printed.split())
    assert "Model: offline." in said
    assert "≈ is estimated" in said
    assert "not completed" not in said
    assert "published" not in said
    runs = list(read_runs(own / "runs.jsonl"))
    assert Counter(run.implementation for run in runs) == {"stage4": 5, "stage5": 5}


def test_published_figures_stand_beside_ours(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cases of the table, which it need not be told."""
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["score", "--implementation", "stage4", "--json"]) == 0
    printed = capsys.readouterr()
    lines = table_of(printed.err)
    assert lines["cases completed"] == ["100", "%", "88", "%"]
    assert lines["seconds a question"][1:] == ["3.20"]
    assert lines["peak context, tokens"][-1] == "1,850"
    assert lines["replies that did not parse"] == ["0", "%", "4.2", "%"]
    assert "Other cases, another model" in printed.err
    published = json.loads(printed.out)["published"]
    assert published["completed"] == 88
    assert PUBLISHED is not None
    assert published["note"] == PUBLISHED.note


def test_the_same_command_goes_on(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["score", "--implementation", "stage4", "--out", "runs.jsonl"]
    cases = ["--cases", few(own, *FEW)]
    assert main([*arguments, "--cases", few(own, *FEW[:2]), "--json"]) == 0
    before = (own / "runs.jsonl").read_bytes()
    first = json.loads(capsys.readouterr().out)["outcomes"]
    few(own, *FEW)
    assert main([*arguments, *cases, "--json"]) == 0
    printed = capsys.readouterr()
    assert "holds 2 runs" in printed.err
    after = (own / "runs.jsonl").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 5
    second = json.loads(printed.out)["outcomes"]
    assert [each for each in second if each in first] == first, "with their seconds"
    assert main([*arguments, *cases, "--again"]) == 0
    assert (own / "runs.jsonl").read_bytes().count(b"\n") == 10
    capsys.readouterr()
    assert main([*arguments, *cases, "--max-steps", "3"]) == 2
    assert "max_steps 10, now it is 3" in capsys.readouterr().err


def test_recorded_runs_are_scored_without_asking(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = ["--cases", few(own, *FEW), "--json"]
    names = ["--implementation", "stage4", "--implementation", "stage5"]
    assert main(["score", *names, *cases, "--out", "runs.jsonl"]) == 0
    asked = json.loads(capsys.readouterr().out)
    before = (own / "runs.jsonl").read_bytes()
    recorded = ["score", "--recorded", "runs.jsonl", *cases]
    assert main(recorded) == 0
    assert json.loads(capsys.readouterr().out) == asked
    assert main([*recorded, *names[2:]]) == 0
    assert [
        s["implementation"] for s in json.loads(capsys.readouterr().out)["scores"]
    ] == ["stage5"]
    assert (own / "runs.jsonl").read_bytes() == before
    assert main([*recorded, "--implementation", "stage1"]) == 2
    assert "no case of these is answered" in capsys.readouterr().err


def test_a_broken_implementation_is_found_out(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It loses a result; what the model says then, it says without the tool."""
    cases = few(own, *FEW)
    arguments = ["score", "--implementation", "stage3", "--implementation", LOST]
    assert main([*arguments, "--cases", cases, "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert "3 times a case was not completed; --failed lists them" in printed.err
    good, lost = document["scores"]
    assert (good["implementation"], good["completed"]) == ("stage3", 100)
    assert (lost["implementation"], lost["completed"]) == (LOST, 25)
    assert lost["by_kind"]["none"] == [1, 1]
    assert document["published"] is None
    assert len(document["outcomes"]) == 8
    failed = [o for o in document["outcomes"] if not o["completed"]]
    assert {o["implementation"] for o in failed} == {LOST}
    assert {o["case"] for o in failed} == set(FEW) - {"hello-zh"}
    for each in document["outcomes"]:
        assert bool(each["reasons"]) != each["completed"]
        assert all(0 <= seconds < 10 for seconds in each["seconds"])

    assert main([*arguments, "--cases", cases, "--failed"]) == 1
    printed = capsys.readouterr()
    said = " ".join(printed.out.split())
    assert f"{LOST}, weather-guangzhou 广州今天天气怎么样？ →" in said
    assert "✗ the answer lacks 31" in said
    assert "stage3, " not in said


def test_one_wrong_answer_is_not_completed(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "liar.py").write_text(
        "from stage4_mini_framework.agent import run_agent as honest\n"
        "def run_agent(question, **more):\n"
        "    *before, last = honest(question, **more)\n"
        "    text = last['content'].replace('31', '13')\n"
        "    return [*before, {**last, 'content': text}]\n",
        encoding="utf-8",
    )
    arguments = ["score", "--implementation", "liar:run_agent", "--failed"]
    assert main([*arguments, "--cases", few(own, *FEW)]) == 1
    said = capsys.readouterr().out
    assert said.count("✗") == 1
    assert "the answer lacks 31" in said


def test_a_model_that_is_not_there_ends_it(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_RETRIES", "0")
    arguments = ["score", "--implementation", "stage4", "--base-url", "127.0.0.1:9/v1"]
    assert main([*arguments, "--model", "m"]) == 2  # no http://
    capsys.readouterr()
    arguments[-1] = "http://127.0.0.1:9/v1"
    assert main([*arguments, "--model", "m", "--out", "runs.jsonl"]) == 3
    printed = capsys.readouterr()
    assert "cannot reach" in printed.err
    assert "the same command goes on from here" in printed.err
    assert "3 of 58 cases" in printed.err
    assert "Is the server running?" in printed.err
    assert "3 cases left out: the endpoint failed" in printed.out
    assert len(list(read_runs(own / "runs.jsonl"))) == 3


class Fails(OfflineModel):
    """A server that fails at one question."""

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        if "London" in request["messages"][-1]["content"]:
            return error_reply(500, "out of memory")
        return await super().answer(request, authorization)


def test_what_the_endpoint_spoilt_is_left_out(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_RETRIES", "0")
    cases = few(own, "weather-london", "weather-guangzhou")
    with Gateway(Fails()) as endpoint:
        command = ["score", "--implementation", "stage4", "--cases", cases, "--json"]
        command += ["--base-url", endpoint.url, "--model", "m"]
        assert main(command) == 3
    (found,) = json.loads(capsys.readouterr().out)["scores"]
    assert (found["completed"], found["left_out"]) == (100, 1)


def test_the_settings_reach_the_model(
    own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "LLM_CLOCK", "2030-01-01T00:00:00+00:00"
    )  # the cases have theirs
    arguments = ["score", "--implementation", "stage4", "--cases", few(own, *FEW)]
    more = ["--max-steps", "1", "--temperature", "0.5", "--model", "another"]
    assert main([*arguments, *more, "--out", "runs.jsonl"]) == 1
    for each in read_runs(own / "runs.jsonl"):
        assert len(each.model_calls) == 1
        assert each.exchanges[0].request["temperature"] == 0.5
        assert each.exchanges[0].request["model"] == "another"
        assert each.settings["clock"].startswith("2026-01-05T09:30")


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_gathered(own: Path) -> None:
    """The last case never ends; the table tells of the three before it."""
    (own / "slow.py").write_text(
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
        [sys.executable, "-m", "equivalence", *arguments, "--cases", few(own, *FEW)],
        cwd=own,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    deadline = time.monotonic() + 50
    while not (own / "here").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    out, error = started.communicate(timeout=30)
    assert started.returncode == 130, error
    assert json.loads(out)["scores"][0]["completed"] == 100
    assert "interrupted; the figures rest on 3 of 4 cases" in error
    assert "Traceback" not in error
