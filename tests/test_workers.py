"""Runs asked by several processes: --jobs, --shard and --dask."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_lines import environment

from equivalence.cli import main
from equivalence.gateway import Gateway
from equivalence.runs.files import read_runs, to_json
from equivalence.runs.implementation import Implementation
from equivalence.runs.plan import Plan
from equivalence.runs.record import Asked, Run
from equivalence.runs.upstreams import Upstreams
from equivalence.runs.workers import tasks
from equivalence.settings import Settings
from offline_model import OfflineModel

QUESTIONS = '"17 * 23"\n["北京今天天气怎么样？", "谢谢！"]\n"3 + 4"\n"现在几点了？"\n'
TWO = ("--implementation", "stage3", "--implementation", "stage4")


@pytest.fixture
def questions(own: Path) -> str:
    (own / "questions.jsonl").write_text(QUESTIONS, "utf-8")
    return "questions.jsonl"


def known(path: str) -> dict[Asked, dict[str, Any]]:
    """The runs of a file, less what differs from one time to the next."""
    found = {}
    for run in read_runs(Path(path)):
        plain = to_json(run)
        for name in ("recorded", "jobs"):
            del plain[name]
        for exchange in plain["exchanges"]:
            del exchange["began"], exchange["ms"]
        assert run.asked not in found, "asked twice"
        found[run.asked] = plain
    return found


# ------------------------------------------------------------------------------ shards


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 8, 40])
def test_shards_are_disjoint_and_complete_and_keep_conversations(parts: int) -> None:
    def plan(shard: tuple[int, int]) -> Plan:
        ones = [Implementation(name, agent=lambda: None) for name in "ab"]
        conversations = [["p", "q"], ["r"], ["p", "s"], ["t", "u", "v"], ["w"]]
        settings = Settings(_env_file=None)
        return Plan(ones, conversations, settings, repeats=3, shard=shard)

    def listed(shard: tuple[int, int]) -> list[tuple[int, str, Asked]]:
        return [(n, one.name, asked) for n, one, asked in plan(shard).runs()]

    whole = listed((1, 1))
    shards = [listed((part, parts)) for part in range(1, parts + 1)]
    assert sorted(each for shard in shards for each in shard) == sorted(whole)
    homes: dict[Any, int] = {}
    for place, shard in enumerate(shards):
        for _, _, asked in shard:
            begins = asked.repeat, asked.conversation[2]
            assert homes.setdefault(begins, place) == place
    sizes = [len(shard) for shard in shards]
    assert parts > 12 or min(sizes) > 0


def test_shards_are_joined_by_naming_them(
    own: Path, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = ["record", "--questions", questions, *TWO]
    assert main([*asking, "--out", "whole.jsonl"]) == 0
    names = []
    for part in ("1/3", "2/3", "3/3"):
        names.append(f"part{part[0]}.jsonl")
        assert main([*asking, "--shard", part, "--out", names[-1]]) == 0
    parts = [run for name in names for run in known(name).items()]
    assert dict(parts) == known("whole.jsonl")
    assert len(parts) == len(known("whole.jsonl")) == 10
    capsys.readouterr()
    assert main(["diff", "whole.jsonl", "--against", *names]) == 0
    assert "10 comparisons: 10 equivalent" in capsys.readouterr().out
    replayed = []
    for files in (["whole.jsonl"], names):
        assert main(["replay", *files, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        told = [(v["left"], v["question"], v["history"]) for v in document["verdicts"]]
        assert len(document["runs"]) == len(told) == 10
        replayed.append((sorted(told), len(document["recorded"]), document["cross"]))
    assert replayed[0] == replayed[1]
    assert main(["replay", *names, "3 + 4"]) == 0
    assert "2 runs replayed" in capsys.readouterr().out
    assert main(["report", *names]) == 0
    assert "All 5 comparisons are equivalent" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--shard", "0/3"), "write K/N"),
        (("--shard", "4/3"), "write K/N"),
        (("--shard", "half"), "write K/N"),
        (("--jobs", "0"), "--jobs must be at least 1"),
        (("--dask", "tcp://127.0.0.1:1", "--jobs", "2"), "--jobs is for this machine"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    own: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...], words: str
) -> None:
    assert main(["run", "hi", *option]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


# -------------------------------------------------------------------------------- jobs


@pytest.mark.slow
@pytest.mark.parametrize("command", ["record", "drift"])
def test_several_jobs_record_what_one_does(
    own: Path, questions: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    # At 0.7 the stand-in's replies depend on the number of the run, which must stay.
    asking = [command, "--questions", questions, *TWO, "--temperature", "0.7"]
    asking += ["--repeats", "3"]
    code = main([*asking, "--out", "one.jsonl"])
    assert main([*asking, "--jobs", "3", "--out", "three.jsonl"]) == code
    assert known("one.jsonl") == known("three.jsonl")
    assert {run.jobs for run in read_runs(Path("one.jsonl"))} == {1}
    assert {run.jobs for run in read_runs(Path("three.jsonl"))} == {3}
    capsys.readouterr()
    assert main(["diff", "one.jsonl", "three.jsonl"]) == 0
    assert "runs at once: 1 on the left, 3 on the right" in capsys.readouterr().out


@pytest.mark.slow
def test_what_is_there_is_asked_by_no_process(own: Path, questions: str) -> None:
    asking = ["record", "--questions", questions, *TWO, "--out", "runs.jsonl"]
    assert main([*asking, "--jobs", "2"]) == 0
    before = Path("runs.jsonl").read_bytes()
    assert main([*asking, "--jobs", "2"]) == 0
    assert Path("runs.jsonl").read_bytes() == before
    # Of a conversation half of which is there, the other half is asked.
    lines = before.splitlines(keepends=True)
    kept = [line for line in lines if '"谢谢！"'.encode() not in line[:400]]
    assert len(kept) < len(lines)
    Path("runs.jsonl").write_bytes(b"".join(kept))
    assert main([*asking, "--jobs", "2"]) == 0
    assert len(known("runs.jsonl")) == len(lines)


SLOW = """
import time
from own import same
def slow(question, **given):
    time.sleep(1)
    return same(question, **given)
"""


@pytest.mark.slow
def test_the_baseline_stands_first_however_slow_it_is(own: Path) -> None:
    (own / "slowly.py").write_text(SLOW, "utf-8")
    asking = ["record", "1 + 1", "2 + 2", "--jobs", "2", "--out", "runs.jsonl"]
    both = ["--implementation", "slowly:slow", "--implementation", "own:same"]
    assert main([*asking, *both]) == 0
    order = dict.fromkeys(run.implementation for run in known_runs("runs.jsonl"))
    assert [*order] == ["slowly:slow", "own:same"]
    assert len(known("runs.jsonl")) == 4


ENDS = """
import os, sys
def ends_the_process(question, **given):
    os._exit(3)
def ends_the_program(question, **given):
    sys.exit(3)
"""


@pytest.mark.slow
def test_an_agent_that_ends_its_process_is_one_line(
    own: Path, questions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "ends.py").write_text(ENDS, "utf-8")
    asking = ["record", "--questions", questions, "--jobs", "2", "--out", "r.jsonl"]
    code = main([*asking, "--implementation", "ends:ends_the_program"])
    assert code == 3
    assert {run.error for run in known_runs("r.jsonl")} == {
        "it ended the program: SystemExit(3)"
    }
    capsys.readouterr()
    assert main([*asking, "--implementation", "ends:ends_the_process"]) == 2
    err = capsys.readouterr().err
    assert "error: a worker process ended in the middle of a run" in err


def known_runs(path: str) -> list[Run]:
    return list(read_runs(Path(path)))


@pytest.mark.slow
def test_an_endpoint_that_is_down_is_given_up(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--jobs", "2"]
    many = [f"{number} + 1" for number in range(40)]
    assert main(["record", *many, *TWO, *place, "--out", "r.jsonl"]) == 3
    assert "given up: the endpoint failed 3 runs in a row" in capsys.readouterr().err
    assert 3 <= len(known_runs("r.jsonl")) < 20


def is_gone(group: int) -> bool:
    """Whether no process of the group is left, within ten seconds."""
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_ctrl_c_ends_every_process(own: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "equivalence", "drift", "17 * 23", *TWO),
            *("--repeats", "100000", "--jobs", "2", "--out", "runs.jsonl"),
        ],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a group of its own, as a terminal has one
        encoding="utf-8",
    )
    end = time.monotonic() + 60
    out = own / "runs.jsonl"
    while not out.exists() or out.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < end, "it did not begin"
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert is_gone(process.pid)
    assert len(known("runs.jsonl")) >= 3


# --------------------------------------------------------------------------- a cluster


class Keyed(OfflineModel):
    """An endpoint that writes down the keys it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str | None] = set()

    async def answer(self, request: Any, authorization: str | None) -> Any:
        self.keys.add(authorization)
        return await super().answer(request, authorization)


def test_no_key_travels_in_a_task() -> None:
    settings = Settings(
        base_url="https://host.example/v1?api-version=1&code=sk-in-the-url",
        api_key="sk-in-the-environment",
        model="m",
        _env_file=None,
    )
    plan = Plan([Implementation("a", "a:b")], [["hi"]], settings)
    (task,) = tasks(plan, Upstreams(settings, None, Path()), lambda *_: None, 0)
    travels = pickle.dumps(task)
    assert b"sk-in-the" not in travels
    assert task.settings["model"] == "m"


@contextmanager
def dask(folder: Path, **variables: str) -> Iterator[str]:
    """A cluster of two processes, whose workers have an environment of their own."""
    pytest.importorskip("distributed", reason="distributed is not installed")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "cwd": folder}
    started = []
    try:
        scheduler = subprocess.Popen(
            [
                *(sys.executable, "-m", "distributed.cli.dask_scheduler"),
                *("--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
                *("--scheduler-file", "scheduler.json"),
            ],
            env=environment(),
            stderr=subprocess.DEVNULL,
            **quiet,
        )
        started.append(scheduler)
        for number in (1, 2):
            worker = subprocess.Popen(
                [
                    *(sys.executable, "-m", "distributed.cli.dask_worker"),
                    *("--scheduler-file", "scheduler.json", "--no-dashboard"),
                    *("--no-nanny", "--nthreads", str(number), "--host", "127.0.0.1"),
                ],
                env=environment(**variables),
                stderr=subprocess.DEVNULL,
                **quiet,
            )
            started.append(worker)
        end = time.monotonic() + 60
        while not (folder / "scheduler.json").exists():
            assert time.monotonic() < end, "no scheduler"
            time.sleep(0.05)
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        from distributed import Client

        with Client(address) as client:
            client.wait_for_workers(2, timeout=60)
        yield address
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_dask_cluster_records_what_one_process_does(
    own: Path,
    questions: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keyed = Keyed()
    monkeypatch.setenv("LLM_API_KEY", "sk-of-the-client")
    with (
        Gateway(keyed, repair=False) as endpoint,
        dask(tmp_path_factory.mktemp("cluster"), LLM_API_KEY="sk-of-worker") as address,
    ):
        asking = ["record", "--questions", questions, *TWO, "--repeats", "2"]
        asking += ["--base-url", endpoint.url, "--model", "m"]
        assert main([*asking, "--out", "here.jsonl"]) == 0
        assert keyed.keys == {"Bearer sk-of-the-client"}
        keyed.keys.clear()
        assert main([*asking, "--dask", address, "--out", "there.jsonl"]) == 0
        assert keyed.keys == {"Bearer sk-of-worker"}
        assert known("here.jsonl") == known("there.jsonl")
        assert {run.jobs for run in read_runs(Path("there.jsonl"))} == {2}
        # What a worker lacks is one line. It is imported here, and not there.
        lacking = tmp_path_factory.mktemp("lacking")
        (lacking / "only_here.py").write_text("def agent(question): return 'x'\n")
        monkeypatch.syspath_prepend(str(lacking))
        capsys.readouterr()
        mine = ["--implementation", "only_here:agent"]
        assert main(["run", "hi", *mine, "--dask", address]) == 2
        err = capsys.readouterr().err
        assert "no module is named 'only_here'" in err
        assert "a Dask worker" in err


@pytest.mark.slow
def test_no_cluster_is_one_line(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    assert main(["run", "hi", *TWO, "--dask", "tcp://127.0.0.1:9"]) == 2
    assert "no Dask cluster answers at tcp://127.0.0.1:9" in capsys.readouterr().err
