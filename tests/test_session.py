"""A plan that is interrupted, continued, refused; what follows a failed run."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_lines import environment
from recordings import (
    ROOT,
    ByQuestion,
    Counting,
    gathered,
    named,
    plan_for,
    played,
    record,
)

from equivalence.cli import main
from equivalence.errors import UsageError
from equivalence.gateway import Gateway, Upstream
from equivalence.gateway.upstreams import Reply
from equivalence.runs.files import read_runs
from equivalence.runs.implementation import Implementation
from equivalence.runs.plan import CLOCK, Plan, read_questions
from equivalence.runs.record import Run
from equivalence.runs.session import EndpointFailed, Session
from equivalence.settings import Settings
from offline_model import OfflineModel

DOWN = [Reply(503, b'{"error": {"message": "down"}}')]

# -------------------------------------------------------------------------- the plan


def one(name: str) -> Implementation:
    return Implementation(name, agent=lambda *_, **__: [])


def asked(*conversations: list[str], names: str = "ab", repeats: int = 1) -> list[Any]:
    settings = Settings(_env_file=None)
    plan = Plan([one(n) for n in names], conversations, settings, repeats=repeats)
    return [asked for _, _, asked in plan.runs()]


def test_another_implementation_goes_first_in_each_conversation() -> None:
    order = [(a.implementation, a.question) for a in asked(["p"], ["q"], ["r"])]
    assert order == [
        *(("a", "p"), ("b", "p")),
        *(("b", "q"), ("a", "q")),
        *(("a", "r"), ("b", "r")),
    ]


def test_a_question_is_known_by_what_was_asked_before_it() -> None:
    """Two conversations that end in the same follow-up are two; a question that stands
    twice after the same history is asked once."""
    plan = asked(["one", "and now"], ["two", "and now"], ["one", "but"], names="a")
    assert [(a.history, a.question) for a in plan] == [
        ((), "one"),
        (("one",), "and now"),
        ((), "two"),
        (("two",), "and now"),
        (("one",), "but"),
    ]
    assert len({*plan}) == len(plan)


def test_the_same_implementation_twice_has_two_names() -> None:
    assert [a.implementation for a in asked(["q"], names="aba")] == ["a", "b", "a (2)"]


def test_the_clock_is_fixed_unless_the_settings_fix_it() -> None:
    assert Plan([], [], Settings(_env_file=None)).settings.clock == CLOCK


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no question"),
        ("# only a comment\n", "holds no question"),
        ('["a", 5]', "line 1: a question must be a text"),
        ('fine\n["a"', "line 2: "),
        ("[]", "line 1: a question must be a text"),
    ],
)
def test_a_file_that_holds_no_questions(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=words):
        read_questions(path)


# ------------------------------------------------------------------------ continuing


@pytest.mark.parametrize(
    ("lines", "torn"), [(0, 0), (0, 200), (1, 1), (2, 200), (3, 0), (4, 0)]
)
def test_what_is_recorded_is_not_asked_again(
    tmp_path: Path, lines: int, torn: int
) -> None:
    """A file that holds so many runs, and a piece of the next, goes on to the same."""
    conversations = [["two cities", "and now"], ["for ever"], ["as text"]]
    counting = Counting(ByQuestion())
    with Gateway(counting, repair=False) as endpoint:
        plan = plan_for(endpoint, ["stage3"], conversations)
        whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
        runs = gathered(whole, plan)
        split = whole.read_bytes().splitlines(keepends=True)
        kept = b"".join(split[:lines])
        cut.write_bytes(kept + b"".join(split[lines : lines + 1])[:torn])
        before = counting.asked
        again = gathered(cut, plan)
        missing = sum(len(run.exchanges) for run in runs[lines:])
        assert counting.asked - before == missing
    assert cut.read_bytes().startswith(kept)
    assert [r.answer for r in again] == [r.answer for r in runs]
    assert [r.asked for r in read_runs(cut)] == [r.asked for r in runs]
    assert all(each.faithful for each in played(list(read_runs(cut)), *["stage3"] * 2))


def test_again_asks_anew(tmp_path: Path) -> None:
    counting = Counting(ByQuestion())
    path = tmp_path / "a.jsonl"
    with Gateway(counting, repair=False) as endpoint:
        plan = plan_for(endpoint, ["stage3"], [["and now"]])
        for expected, again in ((1, False), (1, False), (2, True)):
            gathered(path, plan, again=again)
            assert counting.asked == expected
    assert len(list(read_runs(path))) == 2


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--temperature", "0.7"], "temperature 0, now it is 0.7"),
        (["--max-steps", "4"], "max_steps 10, now it is 4"),
        (["--tools", "own:TOOLS"], 'tools "tools:TOOLS", now it is "own:TOOLS"'),
        (["--raw"], "repair true, now it is false"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_other_conditions_are_refused(
    own: Path, capsys: pytest.CaptureFixture[str], option: list[str], words: str
) -> None:
    command = [
        "run",
        "介绍一下你自己",
        "--implementation",
        "stage3",
        "--out",
        "a.jsonl",
    ]
    assert main(command) == 0
    data = (own / "a.jsonl").read_bytes()
    capsys.readouterr()
    assert main([*command, *option]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "a.jsonl holds runs with" in error
    assert words in error.replace("0.0", "0")
    assert (own / "a.jsonl").read_bytes() == data
    assert main([*command, *option, "--again"]) == 0


def test_other_versions_are_refused(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "run",
        "介绍一下你自己",
        "--implementation",
        "stage3",
        "--out",
        "a.jsonl",
    ]
    assert main(command) == 0
    record = json.loads((own / "a.jsonl").read_text("utf-8"))
    record["versions"]["openai"] = "1.0.0"
    (own / "a.jsonl").write_text(json.dumps(record) + "\n", "utf-8")
    assert main(command) == 2
    assert 'versions.openai "1.0.0", now it is' in capsys.readouterr().err


def test_a_conversation_is_not_continued_with_other_code(tmp_path: Path) -> None:
    path = tmp_path / "code.jsonl"
    with Gateway(ByQuestion(), repair=False) as endpoint:
        gathered(path, plan_for(endpoint, ["stage3"], [["two cities"]]))
        before = path.read_bytes()
        plan = plan_for(endpoint, ["stage3"], [["two cities", "and now"]])
        faulty = Implementation("stage3", "variants.faults:swapped_results")
        object.__setattr__(plan, "implementations", [faulty])
        with pytest.raises(UsageError, match="recorded with other code"):
            gathered(path, plan)
        assert path.read_bytes() == before


# ------------------------------------------------------------------ a failing endpoint


def test_three_failures_in_a_row_end_it(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    flaky = ByQuestion(**{"and now": DOWN})
    with Gateway(flaky, repair=False) as endpoint:
        plan = plan_for(
            endpoint, ["stage3"], [["two cities"], ["and now"]], repeats=9, retries=0
        )
        assert len(gathered(path, plan)) == 18  # now and then is no reason to end
        flaky.replies["two cities"] = DOWN
        with pytest.raises(EndpointFailed, match="3 runs in a row"):
            gathered(tmp_path / "g.jsonl", plan)
        assert len(list(read_runs(tmp_path / "g.jsonl"))) == 3
        flaky.replies |= ByQuestion.REPLIES
        again = gathered(path, plan)
    assert {run.status for run in again} == {"completed"}


@pytest.mark.parametrize("command", ["run", "record", "drift"])
def test_a_command_gives_up_with_what_it_has(
    own: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    monkeypatch.setenv("LLM_RETRIES", "0")
    counting = Counting(ByQuestion(hello=DOWN))
    with Gateway(counting, repair=False) as endpoint:
        place = ["--base-url", endpoint.url, "--model", "m", "--out", "a.jsonl"]
        many = ["--implementation", "stage3", "--implementation", "stage4"]
        code = main([command, "hello", *place, *many, "--repeats", "20"])
    assert code == 3
    assert counting.asked == 3
    assert "given up: the endpoint failed 3 runs" in capsys.readouterr().err
    assert len(list(read_runs(own / "a.jsonl"))) == 3


def test_what_follows_a_failed_question_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "again.jsonl"
    flaky = ByQuestion(**{"two cities": DOWN})
    with Gateway(flaky, repair=False) as endpoint:
        plan = plan_for(endpoint, ["stage3"], [["two cities", "and now"]], retries=0)
        first = gathered(path, plan)
        assert [run.status for run in first] == ["model_error", "completed"]
        flaky.replies |= ByQuestion.REPLIES
        second = gathered(path, plan)
        assert [run.status for run in second] == ["completed"] * 2
        size = path.stat().st_size
        gathered(path, plan)
        assert path.stat().st_size == size, "all is there"
    latest = list({run.asked: run for run in read_runs(path)}.values())
    assert [each.faithful for each in played(latest, "stage3", "stage3")] == [True] * 2


# ---------------------------------------------------------------------- kill -9, often


class Slow(ByQuestion):
    """A model that takes its time, so that a kill falls between."""

    async def answer(self, request: Any, authorization: Any) -> Reply:
        time.sleep(0.01)
        return await super().answer(request, authorization)


CASES = """
cases:
- id: one
  questions: [{ask: as text}]
- id: two
  questions: [{ask: for ever}]
- id: three
  questions: [{ask: two cities}, {ask: and now}]
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "record", "score", "record --jobs 2"])
def test_fifty_kills_lose_no_finished_run_and_ask_none_twice(
    tmp_path: Path, command: str
) -> None:
    """About fifty in all, at random moments, each followed by the same command."""
    chance = random.Random(command)
    path, questions = tmp_path / "killed.jsonl", tmp_path / "q.jsonl"
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES, "utf-8")
    questions.write_text('["two cities", "and now"]\n"for ever"\n"as text"\n', "utf-8")
    what = ["--cases", str(cases)]
    if command != "score":
        what = ["--questions", str(questions), "--repeats", "6"]
    counting = Counting(Slow())
    with Gateway(counting, repair=False) as endpoint:
        line = [
            *(sys.executable, "-m", "equivalence", *command.split()),
            *("--out", str(path), *what),
            *("--base-url", endpoint.url, "--model", "m", "--max-steps", "3"),
            *("--implementation", "stage4", "--implementation", "stage4"),
        ]
        finished: Counter[Any] = Counter()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        for _ in range(17):
            process = subprocess.Popen(line, cwd=ROOT, env=environment(), **quiet)
            try:
                process.wait(chance.uniform(0.8, 4))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            runs = list(read_runs(path)) if path.exists() else []
            now = Counter(run.asked for run in runs)
            assert all(now[asked] == 1 for asked in now), "a finished run asked twice"
            assert finished <= now, "a finished run was lost"
            finished = now
        done = subprocess.run(
            line, cwd=ROOT, env=environment(), capture_output=True, check=False
        )
        assert done.returncode in (0, 1, 3), done.stderr.decode()
        asked_before = counting.asked
        subprocess.run(line, cwd=ROOT, env=environment(), capture_output=True)
        assert counting.asked == asked_before, "all was there"
    runs = list(read_runs(path))
    assert len(runs) == len({run.asked for run in runs})


class Silent(ByQuestion):
    """A model that is asked and never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = threading.Event()

    async def answer(self, request: Any, authorization: Any) -> Reply:
        self.was_asked.set()
        await asyncio.sleep(600)
        return await super().answer(request, authorization)


def interrupted(upstream: Upstream, path: Path, ready: Callable[[], bool]) -> str:
    """What a `run` says on Ctrl-C, sent as soon as it is ready."""
    with Gateway(upstream, repair=False) as endpoint:
        line = [
            *(sys.executable, "-m", "equivalence", "run", "and now"),
            *("--out", str(path)),
            *("--base-url", endpoint.url, "--model", "m", "--repeats", "5000"),
            *("--implementation", "stage4"),
        ]
        process = subprocess.Popen(
            line,
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        end = time.monotonic() + 60
        while not ready():
            assert time.monotonic() < end, "it was never ready"
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    return errors.decode()


def test_ctrl_c_keeps_what_is_finished_and_says_where(tmp_path: Path) -> None:
    path = tmp_path / "stopped.jsonl"

    def two_are_there() -> bool:
        return path.exists() and path.stat().st_size > 5000

    said = interrupted(Slow(), path, two_are_there)
    assert f"interrupted; what was recorded is kept in {path}" in said
    assert len(list(read_runs(path))) >= 2


def test_ctrl_c_before_the_first_run_says_that_nothing_was_recorded(
    tmp_path: Path,
) -> None:
    silent = Silent()
    said = interrupted(silent, tmp_path / "empty.jsonl", silent.was_asked.is_set)
    assert said.splitlines()[-1] == "interrupted; nothing was recorded yet"


def test_recording_is_refused_while_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    record(path, ByQuestion(), ["stage4"], [["and now"]])
    data = path.read_bytes()
    from equivalence.runs.files import RunFile

    with RunFile(path):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "equivalence", "record", "hi"),
                *("--implementation", "stage4", "--out", str(path)),
            ],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "being written by another process" in done.stderr
    assert path.read_bytes() == data


def test_a_conversation_that_is_over_is_let_go(
    gateway: Gateway, offline_settings: Settings
) -> None:
    conversations = [[f"{n} + 1", "thanks", "hello"] for n in range(6)]
    plan = Plan([named("stage4")], conversations, offline_settings, repeats=2)
    session = Session(plan, gateway)
    runs: list[weakref.ref[Run]] = []
    alive = []
    for run, _new in session.ask_each(
        plan.runs(), lambda number: OfflineModel(), lambda *_: None, 0
    ):
        runs.append(weakref.ref(run))
        del run
        gc.collect()
        alive.append(sum(each() is not None for each in runs))
    assert len(runs) == 36
    assert max(alive) <= 4
