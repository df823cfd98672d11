"""Drift: strategies, verdicts, the offline model's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_lines import environment
from wire import LADDER, ROOT

from equivalence.cli import main
from equivalence.gateway import Exchange, Gateway
from equivalence.gateway.upstreams import Reply, completion, dump
from equivalence.judge.drift import (
    Drift,
    Drifts,
    DriftVerdict,
    agreement,
    by_question,
    shape,
    strategy,
)
from equivalence.judge.drift import judged as judged_by_question
from equivalence.runs.files import RunFile, read_runs
from equivalence.runs.plan import Plan
from equivalence.runs.record import Run, Step
from equivalence.runs.session import gather
from equivalence.runs.upstreams import http_upstream
from equivalence.settings import Settings
from offline_model import OfflineModel
from tools import TOOLS

BY_NAME = {implementation.name: implementation for implementation in LADDER}
PUBLISHED = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"


def run(name: str, *turns: Sequence[tuple[str, Any]], status: str = "completed") -> Run:
    steps = [
        Step(turn, tool, arguments, json.dumps(arguments), "x", True, 0)
        for turn, calls in enumerate(turns, 1)
        for tool, arguments in calls
    ]
    return Run(name, "q", status=status, answer="a", steps=steps)


def judged(drifts: Sequence[Drift]) -> list[DriftVerdict]:
    return [verdict for found in judged_by_question(drifts) for verdict in found]


BEIJING, SHANGHAI = ("w", {"city": "北京"}), ("w", {"city": "上海"})


# ------------------------------------------------------------------------- strategies


def test_a_strategy_tells_serial_from_parallel() -> None:
    assert strategy(run("a", [BEIJING, SHANGHAI])) == 'w(city="北京") + w(city="上海")'
    assert strategy(run("a", [BEIJING], [SHANGHAI])) == 'w(city="北京")\nw(city="上海")'
    assert shape(run("a", [BEIJING, SHANGHAI])) == "w + w"
    assert strategy(run("a")) == "(no call)"
    assert strategy(run("a", [BEIJING], status="step_limit")).endswith("[step_limit]")


def test_a_strategy_looks_past_the_order_of_keys_and_the_kind_of_number() -> None:
    one = run("a", [("c", {"value": 100.0, "unit": "km"})])
    other = run("a", [("c", {"unit": "km", "value": 100})])
    assert strategy(one) == strategy(other)
    assert strategy(one) != strategy(run("a", [("c", {"unit": "km", "value": "100"})]))


def test_agreement_counts_pairs() -> None:
    same = Counter("ssst")
    assert agreement(same, same, itself=True) == 3 / 6  # of 6 pairs of two 3 agree
    assert agreement(same, same) == (3 * 3 + 1 * 1) / 16
    assert agreement(same, Counter("st")) == (3 * 1 + 1 * 1) / 8
    assert agreement(Counter("s"), Counter("t")) == 0
    assert agreement(Counter("s"), Counter("s"), itself=True) is None


def drift(**counts: tuple[int, int, int]) -> Drift:
    """Implementations by how often they did each of three things."""
    kinds = ([BEIJING, SHANGHAI],), ([BEIJING], [SHANGHAI]), ()
    (found,) = by_question(
        run(name, *kinds[kind])
        for name, often in counts.items()
        for kind, count in enumerate(often)
        for _ in range(count)
    )
    return found


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ((20, 0, 0), (20, 0, 0), "equivalent"),
        ((1, 0, 0), (1, 0, 0), "equivalent"),
        ((10, 6, 4), (9, 8, 3), "indistinguishable"),
        ((19, 1, 0), (20, 0, 0), "indistinguishable"),  # as rare as its own noise
        ((20, 0, 0), (0, 20, 0), "different"),
        ((18, 2, 0), (6, 14, 0), "different"),
        ((1, 0, 0), (0, 1, 0), "inconclusive"),  # once is never
        ((3, 0, 0), (0, 3, 0), "inconclusive"),
    ],
)
def test_verdicts(a: Any, b: Any, verdict: str) -> None:
    (found,) = judged([drift(a=a, b=b)])
    assert found.verdict == verdict, found


def test_the_level_is_shared_out_among_the_pairs() -> None:
    sides = {"a": (14, 6, 0), "b": (6, 14, 0)}
    (alone,) = judged([drift(**sides)])
    assert alone.p is not None
    assert 0.025 < alone.p < 0.06
    many = judged([drift(**sides, c=(14, 6, 0)), drift(**sides)])
    assert [found.level for found in many] == [0.05 / 3] * 3
    assert many[0].verdict == "indistinguishable"


def test_runs_that_the_endpoint_failed_are_left_out() -> None:
    failed = run("b", status="model_error")
    (group,) = by_question([run("a", [BEIJING]), run("b", [BEIJING]), failed])
    assert group.failed == 1
    assert judged([group])[0].verdict == "equivalent"
    (group,) = by_question([run("a", [BEIJING]), failed])
    assert judged([group])[0].verdict == "inconclusive"


def test_the_same_question_after_another_history_is_another() -> None:
    runs = [run("a", [BEIJING]), run("a", [SHANGHAI]), run("b", [BEIJING])]
    runs[1].history = ["before"]
    first, second = by_question(runs)
    assert (first.history, second.history) == ((), ("before",))
    assert [*second.by_name] == ["a"]
    (verdict,) = judged([first, second])
    assert verdict.verdict == "equivalent"
    runs.append(run("b", [BEIJING]))
    runs[-1].history = ["before"]
    found = [verdict.to_json() for verdict in judged(by_question(runs))]
    assert [each["history"] for each in found] == [[], ["before"]]
    assert [each["verdict"] for each in found] == ["equivalent", "inconclusive"]


def test_the_baseline_is_the_first_named() -> None:
    runs = [run("a", [BEIJING]), run("b", [BEIJING]), run("c", [BEIJING])]
    assert by_question(runs)[0].pairs == [("a", "b"), ("a", "c")]
    assert by_question(runs, ["c", "a"])[0].pairs == [("c", "a"), ("c", "b")]


def test_no_run_is_kept() -> None:
    """Of 2,000 runs of 100 kB each, all of one kind, less than three remain."""

    def big(number: int) -> Run:
        one = run("ab"[number % 2], [BEIJING])
        text = f"{number}" + "x" * 100_000
        request = {"messages": [{"role": "user", "content": text}]}
        one.exchanges = [Exchange(request, completion({"content": text}, "m"), 200)]
        return one

    drifts = Drifts()
    tracemalloc.start()
    for number in range(2_000):
        drifts.add(big(number))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 500_000
    assert drifts.runs == 2_000
    (found,) = drifts
    assert [each.runs for each in found.by_name.values()] == [1_000, 1_000]


def told(name: str, settings: Settings, *, seed: int = 0) -> list[str]:
    settings = settings.model_copy(update={"temperature": 0.7})
    plan = Plan([BY_NAME[name]], [[PUBLISHED]], settings, TOOLS, repeats=30)
    runs = gather(plan, lambda number: OfflineModel(run_seed=number), seed=seed)
    return [strategy(each) for each in runs]


# ------------------------------------------------------------ the offline model's drift


@pytest.mark.slow
def test_the_offline_drift_repeats_and_holds_the_published_trace(
    offline_settings: Settings,
) -> None:
    first = told("stage3", offline_settings)
    assert first == told("stage3", offline_settings)
    assert first != told("stage3", offline_settings, seed=1)
    counts = Counter(first)
    assert (
        'get_current_time() + get_stock_price(symbol="腾讯")'
        ' + calculate(expression="300 * 100")'
    ) in counts
    assert len(counts) > 2
    assert counts.most_common(1)[0][0].count("\n") == 2, "mostly serial"


def test_at_temperature_0_the_offline_model_does_not_drift(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [f"--implementation={each.name}" for each in LADDER]
    assert main(["drift", PUBLISHED, "--repeats", "2", *names, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {v["verdict"] for v in document["verdicts"]} == {"equivalent"}
    shares = document["drift"][0]["agreement"]
    assert {share for row in shares.values() for share in row.values()} == {1}


class EverySecond(OfflineModel):
    """A server that changes one token in every second reply, temperature or not."""

    asked = 0

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        if request["messages"][-1]["role"] == "tool":
            return Reply(200, dump(completion({"content": "done"}, "m")))
        EverySecond.asked += 1
        value = "100 * 385.6" if EverySecond.asked % 2 else "385.6 * 100"
        function = {"name": "calculate", "arguments": json.dumps({"expression": value})}
        call = {"id": "a", "type": "function", "function": function}
        message = {"content": None, "tool_calls": [call]}
        return Reply(200, dump(completion(message, "m")))


# ------------------------------------------------------------------------ whole reports


def test_a_noisy_server_is_not_taken_for_the_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three implementations take turns, so that two alternating replies fall on all."""
    with Gateway(EverySecond()) as endpoint:
        command = ["drift", PUBLISHED, "--repeats", "12", "--json"]
        command += ["--base-url", endpoint.url, "--model", "m"]
        for name in ("stage1", "stage3", "stage4"):
            command += ["--implementation", name]
        out = tmp_path / "runs.jsonl"
        assert main([*command, "--out", str(out)]) == 3
    document = json.loads(capsys.readouterr().out)
    verdicts = document["verdicts"]
    assert {v["verdict"] for v in verdicts} == {"indistinguishable"}
    assert all(v["cause"] is None for v in verdicts), "no code is blamed"
    assert verdicts[0]["own_agreement"] == [pytest.approx(5 / 11)] * 2  # 2 × 6 of 12
    assert verdicts[0]["agreement"] == 0.5
    assert len(list(read_runs(out))) == 36
    assert main(["drift", "--recorded", str(out), "--json"]) == 3
    again = json.loads(capsys.readouterr().out)
    assert again["drift"] == document["drift"]


def test_a_fault_in_the_code_shows_in_the_first_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faulty = "variants.faults:one_space_more"
    command = ["drift", "介绍一下你自己", "--repeats", "2"]
    command += ["--implementation", "stage3", "--implementation", faulty]
    assert main([*command, "--json"]) == 0  # it decides the same
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert (verdict["cause"], verdict["path"]) == ("request", "$.messages[0].content")


def test_an_implementation_that_decides_otherwise_is_found(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It loses the last result of a turn, so the model asks again."""
    faulty = "variants.faults:lost_result"
    command = ["drift", "北京和上海今天哪个更暖和？", "--repeats", "6"]
    command += ["--implementation", "stage3", "--implementation", faulty]
    assert main(command) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "stage3 vs variants.faults:lost_result: different" in shown
    assert "with themselves 100% and 100%" in shown


class PromptCache(OfflineModel):
    """A server that decides otherwise when it has just computed the same question."""

    last: Any = None

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        message: dict[str, Any] = {"content": "done"}
        newest = request["messages"][-1]
        if newest["role"] == "user":
            if newest != self.last:
                clock = {"name": "get_current_time", "arguments": "{}"}
                message = {"tool_calls": [{"id": "a", "function": clock}]}
            self.last = newest
        return Reply(200, dump(completion(message, "m")))


def test_who_comes_first_is_not_taken_for_different(offline_settings: Settings) -> None:
    """The first to ask finds the server's prompt cache cold. It is not always the same
    implementation: each is first as often, so the noise is in both."""
    pair = [BY_NAME["stage3"], BY_NAME["stage4"]]
    with Gateway(PromptCache(), repair=False) as endpoint:
        update = {"base_url": endpoint.url, "model": "m"}
        settings = offline_settings.model_copy(update=update)
        plan = Plan(pair, [["a"], ["b"]], settings, TOOLS, repeats=20)
        upstream = http_upstream(settings)
        runs = list(gather(plan, lambda number: upstream))
    drifts = by_question(runs)
    assert [drift.pairs for drift in drifts] == [[("stage3", "stage4")]] * 2
    for drift in drifts:
        counts = [each.strategies for each in drift.by_name.values()]
        assert counts[0] == counts[1] == Counter(dict.fromkeys(counts[0], 10))
    assert {each.verdict for each in judged(drifts)} == {"indistinguishable"}


def test_a_plan_numbers_the_runs_whoever_begins(offline_settings: Settings) -> None:
    pair = [BY_NAME["stage3"], BY_NAME["stage4"]]
    plan = Plan(pair, [["a", "b"], ["c"]], offline_settings, repeats=2)
    order = [(number, one.name, asked.question) for number, one, asked in plan.runs()]
    assert order[:6] == [
        (1, "stage3", "a"),
        (2, "stage4", "a"),
        (3, "stage3", "b"),
        (4, "stage4", "b"),
        (6, "stage4", "c"),  # another conversation, another begins
        (5, "stage3", "c"),
    ]
    assert order[6:8] == [(8, "stage4", "a"), (7, "stage3", "a")]  # and at a repeat
    assert sorted(number for number, _, _ in order) == list(range(1, 13))


def test_a_follow_up_is_no_difference_of_the_code() -> None:
    """Its first request holds what was answered before, which drifts."""

    def runs(name: str, said: str) -> list[Run]:
        told = [("user", "one"), ("assistant", said), ("user", "q")]
        messages = [{"role": role, "content": content} for role, content in told]
        reply = completion({"content": "done"}, "m")
        asked = Exchange({"model": "m", "messages": messages}, reply, 200)
        given = {"history": ["one"], "exchanges": [asked], "status": "completed"}
        return [Run(name, "q", repeat=repeat, **given) for repeat in range(3)]

    (drift,) = by_question([*runs("a", "55.0"), *runs("b", "`55.0`")])
    (verdict,) = judged([drift])
    assert (verdict.verdict, verdict.divergence) == ("equivalent", None)


def drifted(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    code = main(["drift", *arguments, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def test_several_files_are_counted_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for file, name in zip(files, ("stage1", "stage3"), strict=True):
        command = ["record", PUBLISHED, "--temperature", "0.7", "--repeats", "4"]
        assert main([*command, "--out", str(file), "--implementation", name]) == 0
    capsys.readouterr()
    both = [f"--recorded={file}" for file in files]
    code, document = drifted(capsys, *both)
    assert code == 3
    assert len(document["runs"]) == 8
    (only,) = document["drift"]
    assert {n: sum(c.values()) for n, c in only["strategies"].items()} == {
        "stage1": 4,
        "stage3": 4,
    }
    assert [(v["left"], v["right"]) for v in document["verdicts"]] == [
        ("stage1", "stage3")
    ]
    _, named = drifted(capsys, *both, "--implementation=stage3")
    assert [*named["drift"][0]["strategies"]] == ["stage3"]
    assert main(["drift", *both, "another question"]) == 2
    assert "nothing of that" in capsys.readouterr().err


def test_of_a_run_asked_anew_the_later_one_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.jsonl"
    with RunFile(path) as file:
        for each in (run("a", status="model_error"), run("a", [BEIJING]), run("b")):
            file.append(each)
    _, document = drifted(capsys, f"--recorded={path}")
    assert document["drift"][0]["failed"] == 0
    assert document["drift"][0]["strategies"]["a"] == {'w(city="北京")': 1}
    assert len(document["runs"]) == 2


def test_the_same_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.jsonl"
    command = [PUBLISHED, "--implementation=stage3", "--implementation=stage4"]
    command += ["--temperature=0.7", f"--out={path}"]
    drifted(capsys, *command, "--repeats=2")
    before = path.read_bytes()
    _, gone_on = drifted(capsys, *command, "--repeats=4")
    assert path.read_bytes().startswith(before)
    assert path.read_bytes().count(b"\n") == 8
    _, at_once = drifted(capsys, *command[:-1], "--repeats=4")
    assert gone_on["drift"] == at_once["drift"]


def test_without_a_question_the_first_conversation_is_asked(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = 'questions = "q.jsonl"\n'
    table = (own / "pyproject.toml").read_text("utf-8")
    kept = [line for line in table.splitlines(True) if not line.startswith("questions")]
    kept.insert(1, questions)
    (own / "pyproject.toml").write_text("".join(kept), "utf-8")
    (own / "q.jsonl").write_text('["17 * 23", "Thank you!"]\n"18 * 2"\n', "utf-8")
    names = ["--implementation=stage3", "--implementation=stage4"]
    code, document = drifted(capsys, *names, "--repeats=1")
    assert code == 0
    asked = [(each["history"], each["question"]) for each in document["drift"]]
    assert asked == [([], "17 * 23"), (["17 * 23"], "Thank you!")]


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_gathered(tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    command = [
        *(sys.executable, "-m", "equivalence", "drift", PUBLISHED),
        *("--implementation", "stage3", "--implementation", "stage4"),
        *("--temperature", "0.7", "--repeats", "100000", "--out", str(out), "--json"),
    ]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + 120
    while not out.exists() or out.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < end, "it did not begin"
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    printed, said = process.communicate(timeout=120)
    assert process.returncode == 130, said.decode()
    assert "Traceback" not in said.decode()
    document = json.loads(printed)
    assert len(document["runs"]) == len(list(read_runs(out))) >= 3
    assert f"interrupted: {len(document['runs'])} runs" in said.decode()
