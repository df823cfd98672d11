"""Recording: interrupted, continued, refused; its command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from equivalence.runs.cassette_file import read_cassette
from equivalence.runs.recording import EndpointFailed, record_all
from recordings import (
    FOLLOW_UP,
    PUBLISHED,
    ROOT,
    ByQuestion,
    Counting,
    played,
    record,
    settings_for,
    subject,
)

from equivalence.cli import main
from equivalence.gateway import Gateway
from equivalence.gateway.upstreams import Reply
from equivalence.runs.implementation import load
from equivalence.runs.session import Subject
from tools import TOOLS

# ------------------------------------------------------------------------ continuing


def test_kill_9_then_continue(tmp_path: Path) -> None:
    """A recording process is killed; the same command goes on, and no reply that was
    recorded is asked for a second time."""

    class Slow(ByQuestion):
        async def answer(self, request: Any, authorization: Any) -> Reply:
            time.sleep(0.15)
            return await super().answer(request, authorization)

    counting = Counting(Slow())
    path = tmp_path / "killed.jsonl"
    questions = tmp_path / "questions.jsonl"
    questions.write_text('["two cities", "and now"]\n"for ever"\n', "utf-8")
    with Gateway(counting, repair=False) as endpoint:
        command = [
            *(sys.executable, "-m", "equivalence", "record", "--out", str(path)),
            *("--base-url", endpoint.url(), "--model", "m", "--max-steps", "3"),
            *("--questions", str(questions)),
            *("--implementation", "stage3", "--implementation", "stage4"),
        ]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: path.exists() and path.read_text("utf-8").count("end") > 2)
            wait_for(
                lambda: path.read_bytes().rstrip().split(b"\n")[-1].find(b"call") > 0
            )
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        kept = path.read_bytes().rpartition(b"\n")[0]
        finished = len(read_cassette(path).runs)
        calls = kept.count(b'"call": ') - kept.count(b'"call": "')
        assert 0 < finished < 6
        before = counting.asked
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
    recording = read_cassette(path)
    assert path.read_bytes().startswith(kept)
    assert len(recording.runs) == 6
    assert before - calls <= 1, "at most the reply under way was lost"
    total = sum(len(r.exchanges) for r in recording.runs.values())
    assert counting.asked - before == total - calls
    for name in ("stage3", "stage4"):
        assert all(each.faithful for each in played(recording, name, name))


def wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_another_temperature_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["record", "介绍一下你自己", "--implementation", "stage3", "--out"]
    command.append(str(tmp_path / "t-0.5"))
    assert main([*command, "--temperature", "0.5"]) == 0
    capsys.readouterr()
    assert main([*command, "--temperature", "0.7"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "t-0.5.jsonl was recorded with temperature 0.5, not 0.7" in error


def test_an_endpoint_that_fails_ends_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    down = [Reply(503, b'{"error": {"message": "down"}}')]
    flaky = ByQuestion(**{"and now": down})
    conversations = [[q] for q in ("two cities", "and now")]
    with Gateway(flaky, repair=False) as endpoint:
        settings = settings_for(endpoint, retries=0)
        arguments = [subject("stage3")], conversations, settings, TOOLS
        recording = record_all(path, *arguments, repeats=9)
        assert len(list(recording)) == 18  # now and then is no reason to end
        flaky.replies["two cities"] = down
        with pytest.raises(EndpointFailed, match="3 runs in a row"):
            list(record_all(tmp_path / "g.jsonl", *arguments, repeats=9))
        flaky.replies |= ByQuestion.REPLIES
        again = list(record_all(path, *arguments, repeats=9))
    assert {run.status for run in again} == {"completed"}


def test_what_follows_a_failed_question_is_recorded_again(tmp_path: Path) -> None:
    path = tmp_path / "again.jsonl"
    flaky = ByQuestion(
        **{"two cities": [Reply(503, b'{"error": {"message": "down"}}')]}
    )
    arguments = [subject("stage3")], [["two cities", "and now"]]
    with Gateway(flaky, repair=False) as endpoint:
        settings = settings_for(endpoint, retries=0)
        first = list(record_all(path, *arguments, settings, TOOLS))
        assert [run.status for run in first] == ["model_error", "completed"]
        flaky.replies |= ByQuestion.REPLIES
        second = list(record_all(path, *arguments, settings, TOOLS))
        assert [run.status for run in second] == ["completed"] * 2
        size = path.stat().st_size
        list(record_all(path, *arguments, settings, TOOLS))
        assert path.stat().st_size == size, "all is there"
    runs = played(read_cassette(path), "stage3", "stage3")
    assert [each.faithful for each in runs] == [True, True]


def test_other_code_does_not_go_on_with_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "code.jsonl"
    with Gateway(ByQuestion(), repair=False) as endpoint:
        settings = settings_for(endpoint)
        questions = [["two cities"]]
        list(record_all(path, [subject("stage3")], questions, settings, TOOLS))
        before = path.read_bytes()
        faulty = load("variants.faults:swapped_results")
        with pytest.raises(ValueError, match=r"other code: .* \$\.messages\[3\]"):
            list(
                record_all(
                    path, [Subject("stage3", faulty)], questions, settings, TOOLS
                )
            )
        assert path.read_bytes() == before


# ----------------------------------------------------------------------- command line


def test_record_and_replay_at_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cassette = str(tmp_path / "demo")
    names = ["--implementation", "stage3", "--implementation", "stage4"]
    assert main(["record", PUBLISHED, *FOLLOW_UP[:1], *names, "--out", cassette]) == 0
    capsys.readouterr()
    assert main(["replay", cassette, "--cross", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["runs"]) == 2 * 2 * 2
    assert {v["verdict"] for v in document["verdicts"]} == {"equivalent"}
    assert {(c["equal"], c["total"]) for c in document["cross"]} == {(2, 2)}
    fault = "variants.faults:lost_result"
    assert main(["replay", cassette, PUBLISHED, "--implementation", fault]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "cause: request, model call 2, $.messages[3]" in shown
    assert main(["replay", cassette, "never asked"]) == 2


def test_replay_names_other_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "v.jsonl"
    record(path, ByQuestion(), ["stage3"], [["and now"]])
    header, rest = path.read_text("utf-8").split("\n", 1)
    old = json.loads(header)
    old["versions"]["openai"] = "1.0.0"
    path.write_text(json.dumps(old) + "\n" + rest, "utf-8")
    assert main(["replay", str(path)]) == 0
    assert "Recorded with openai 1.0.0, here it is" in capsys.readouterr().out


def test_recorded_tools_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = ["--tools", "equivalence.matrix.tools:MINE"]
    path = str(tmp_path / "tools.jsonl")
    tools = ["--tools", "tests.test_recording:FEWER"]
    one = ["record", "介绍一下你自己", "--implementation", "stage3", "--out", path]
    assert main([*one, *mine]) == 2
    assert main([*one, *tools]) == 0
    assert main(["replay", path]) == 2
    assert (
        "was recorded with --tools tests.test_recording:FEWER"
        in capsys.readouterr().err
    )
    assert main(["replay", path, *tools]) == 0


FEWER = TOOLS[:2]
