"""python -m equivalence gateway: the gateway alone, for any client."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from wire import ROOT, Keeps, Waits, says, send

from equivalence.gateway import Gateway, Script
from equivalence.runs.files import RunFile, read_runs
from equivalence.runs.recording import Recorder
from equivalence.settings import Settings


def start(
    *arguments: str, cwd: Path = ROOT / "docs", **environment: str
) -> subprocess.Popen[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LLM_")}
    return subprocess.Popen(
        [sys.executable, "-m", "equivalence", "gateway", *arguments],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=20)


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    line = process.stdout.readline()
    found = re.match(r"(http://127\.0\.0\.1:\d+/\S+/v1) -> ", line)
    assert found, line
    return found[1]


def test_the_gateway_alone_serves_until_ctrl_c() -> None:
    process = start("--port", "0")
    url = url_of(process)
    assert send(url, says("17 * 23")).status == 200
    assert send(url, path="/models", method="GET").json["data"]
    assert send(url, b"x").status == 400
    guessed = re.sub(r"/[^/]+/v1$", "/v1", url)
    assert send(guessed, says("hi")).status in (404, 410)
    out, err = stop(process)
    assert process.returncode in (0, 130)
    assert "Traceback" not in out + err
    assert err == "Requests are answered until Ctrl-C.\n"


@pytest.mark.slow
def test_the_gateway_alone_ends_at_ctrl_c_with_a_request_open(server: Gateway) -> None:
    waits = Waits()
    with server.open_run(waits) as behind, ThreadPoolExecutor(1) as pool:
        process = start("--port", "0", "--upstream", behind.url)
        pending = pool.submit(send, url_of(process))
        assert waits.asked.wait(20)
        out, err = stop(process)
        pending.exception(timeout=20)
    assert process.returncode in (0, 130)
    assert "Traceback" not in out + err


@pytest.mark.slow
@pytest.mark.parametrize("raw", [False, True])
def test_the_gateway_alone_in_front_of_an_endpoint(server: Gateway, raw: bool) -> None:
    script = Keeps(Script([{"message": {"content": "<think>a</think>b"}}]))
    with server.open_run(script) as behind:
        process = start(
            *("--port", "0", "--upstream", behind.url, *(["--raw"] * raw)),
            LLM_API_KEY="sk-own",
        )
        message = send(url_of(process)).json["choices"][0]["message"]
        stop(process)
    assert message["content"] == ("<think>a</think>b" if raw else "b")
    assert script.keys == ["Bearer sk-own"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "70000"], "port"),
        (["--port", "{taken}"], "in use"),
        (["--upstream", "127.0.0.1:1/v1"], "http://"),
    ],
    ids=["no such port", "port in use", "no scheme"],
)
def test_the_gateway_alone_refuses_in_one_line(
    front: Gateway, arguments: list[str], words: str
) -> None:
    process = start(*(a.format(taken=front.port) for a in arguments))
    out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert out == ""
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1


def test_without_an_endpoint_it_says_which_option_names_one(tmp_path: Path) -> None:
    out, err = start(cwd=tmp_path).communicate(timeout=20)
    assert (out, err.count("\n")) == ("", 1)
    assert "--upstream, set LLM_BASE_URL" in err


# ------------------------------------------------------------------ --record


def continued(*texts: str) -> dict[str, Any]:
    """A request of a conversation: user and model in turn."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[number % 2], "content": text}
        for number, text in enumerate(texts)
    ]
    return {"model": "m", "messages": messages}


def test_conversations_that_pass_through_are_run_records(tmp_path: Path) -> None:
    """A request that continues an earlier one belongs to its run, also where several
    conversations alternate; the same question again is another try."""
    now = [0.0]
    path = tmp_path / "r.jsonl"
    script = Script([{"message": {"content": "yes"}}])
    settings = Settings(_env_file=None)
    with RunFile(path) as file:
        recorder = Recorder(file, settings, name="mine", idle=60, clock=lambda: now[0])
        with Gateway(script, on_exchange=recorder.add) as gateway:
            for texts in (["a"], ["b"], ["a", "yes", "more"], ["a"], ["b", "yes", "x"]):
                assert send(gateway.url, continued(*texts)).status == 200
            now[0] = 100.0
            assert send(gateway.url, continued("late")).status == 200
            written = [run.question for run in read_runs(path)]
            assert written == ["a", "b", "a"]  # idle too long, "late" is open
        recorder.end()
    runs = list(read_runs(path))
    told = [(r.implementation, r.question, r.repeat, len(r.exchanges)) for r in runs]
    assert told == [
        ("mine", "a", 0, 2),
        ("mine", "b", 0, 2),
        ("mine", "a", 1, 1),
        ("mine", "late", 0, 1),
    ]
    assert {run.status for run in runs} == {"completed"}
    assert all(run.versions == {} for run in runs)


def test_a_conversation_is_continued_whatever_it_began_with(tmp_path: Path) -> None:
    """With no text but the system's, or with a content in blocks."""
    blocks = [{"type": "text", "text": "hello"}]
    user = {"role": "user", "content": blocks}
    system = {"role": "system", "content": "be brief"}
    path = tmp_path / "r.jsonl"
    script = Script([{"message": {"content": "yes"}}])
    with RunFile(path) as file:
        recorder = Recorder(file, Settings(_env_file=None))
        with Gateway(script, on_exchange=recorder.add) as gateway:
            for messages in ([system], [system, says("more")["messages"][0]], [user]):
                body = {"model": "m", "messages": messages}
                assert send(gateway.url, body).status == 200
            more = {"model": "m", "messages": [user, says("more")["messages"][0]]}
            assert send(gateway.url, more).status == 200
        recorder.end()
    assert [len(run.exchanges) for run in read_runs(path)] == [2, 2]


def test_the_command_records_until_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = start("--port", "0", "--record", str(path), "--name", "mine")
    url = url_of(process)
    assert send(url, says("17 * 23")).status == 200
    stop(process)
    (run,) = read_runs(path)
    assert (run.implementation, run.question, run.status) == (
        "mine",
        "17 * 23",
        "completed",
    )
    refused = start("--port", "0", "--record", str(ROOT / "README.md"))
    out, err = refused.communicate(timeout=20)
    assert (refused.returncode, out) == (2, "")
    assert "no run record" in err or "not JSON" in err
