"""Record in front of a "real endpoint", a gateway over HTTP, then replay without it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from config import Settings, load_settings
from equivalence.cassette_file import Recording, cassette_path, read_cassette
from equivalence.cli import main
from equivalence.compare import among_each_other
from equivalence.faults import FAULTS
from equivalence.implementations import LADDER, load
from equivalence.recording import EndpointFailed, record_all
from equivalence.replay import (
    Replayed,
    cells,
    comparable,
    exit_code,
    replay,
)
from equivalence.run import Asked, Subject
from gateway import Cassette, Gateway, OfflineModel, RecordedExchange, Upstream
from gateway.canonical import canonical_request, wire_request
from gateway.upstreams import Reply, completion, dump
from tools import TOOLS

ROOT = Path(__file__).parent.parent
COMMITTED = sorted((ROOT / "cassettes").glob("*.jsonl"))

PUBLISHED = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
FOLLOW_UP = [
    "What is the weather in Beijing, and what is 18 °C in Fahrenheit?",
    "And the temperature just mentioned for Beijing, in Fahrenheit?",
]
NAMES = [implementation.name for implementation in LADDER]
CALLERS = [each.name for each in LADDER if each.protocol == "tool_calls"]


def subject(name: str) -> Subject:
    target = {each.name: each.target for each in LADDER}.get(name, name)
    return Subject(name, load(target))


class Counting:
    """An upstream that counts what it is asked."""

    def __init__(self, inner: Upstream) -> None:
        self.inner = inner
        self.asked = 0

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.asked += 1
        return await self.inner.answer(request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self.inner.models(authorization)

    async def close(self) -> None:
        await self.inner.close()


def call(tool: str, arguments: str, identifier: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function}


class ByQuestion(OfflineModel):
    """A model with its own replies to each question, whoever asks and how often. What
    is no dict is sent as it is."""

    REPLIES: ClassVar[dict[str, list[Any]]] = {
        "two cities": [
            {
                "content": None,
                "tool_calls": [
                    call("get_weather", '{"city": "北京"}', "a"),
                    call("get_weather", '{"city": "Atlantis"}', "b"),
                ],
            },
            {"content": "北京 25 °C"},
        ],
        "and now": [{"content": "nothing new"}],
        "for ever": [
            {"content": None, "tool_calls": [call("get_current_time", "{}", f"c{n}")]}
            for n in range(9)
        ],
        "as text": [
            {
                "content": '<think>hm</think><tool_call>{"name": "calculate",'
                ' "arguments": {"expression": "1 + 1"}}</tool_call>'
            },
            {"content": "2"},
        ],
    }

    def __init__(self, **changed: list[Any]) -> None:
        super().__init__()
        self.replies = self.REPLIES | changed

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        messages = request["messages"]
        last = max(i for i, m in enumerate(messages) if m["role"] == "user")
        done = sum(m["role"] == "assistant" for m in messages[last:])
        replies = self.replies[messages[last]["content"]]
        message = replies[min(done, len(replies) - 1)]
        if not isinstance(message, dict):
            return message
        whole = completion(message, "/home/someone/models/small.gguf")
        whole |= {"timings": {"cache_n": 5}, "system_fingerprint": "b0"}
        return Reply(200, dump(whole))


def settings_for(endpoint: Gateway, **more: Any) -> Settings:
    fixed = {"base_url": endpoint.url(), "model": "m", "max_steps": 3, "_env_file": ""}
    return load_settings(**{**fixed, **more})


def record(
    path: Path,
    upstream: Upstream,
    names: list[str],
    conversations: list[list[str]],
    **more: Any,
) -> Recording:
    """Record from the upstream over HTTP, and end its server."""
    with Gateway(upstream, repair=False) as endpoint:
        settings = settings_for(endpoint, **more)
        subjects = [subject(name) for name in names]
        list(record_all(path, subjects, conversations, settings, TOOLS))
    return read_cassette(path)


def played(recording: Recording, source: str, name: str) -> list[Replayed]:
    return list(replay(recording, source, subject(name), TOOLS))


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """The whole ladder on two conversations, in front of the offline model."""
    path = tmp_path_factory.mktemp("cassettes") / "ladder.jsonl"
    return record(path, OfflineModel(), NAMES, [[PUBLISHED], FOLLOW_UP], max_steps=10)


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Stage 3 on what planted faults trip over."""
    path = tmp_path_factory.mktemp("cassettes") / "scripted.jsonl"
    conversations = [["two cities", "and now"], ["for ever"], ["as text"]]
    return record(path, ByQuestion(), ["stage3"], conversations)


# --------------------------------------------------------------------------- replay


@pytest.mark.parametrize("name", NAMES)
def test_an_implementation_replays_its_own_recording(
    ladder: Recording, name: str
) -> None:
    runs = played(ladder, name, name)
    assert len(runs) == 3
    for each in runs:
        assert each.verdict.verdict == "equivalent", each.verdict
        assert each.run.status == "completed"
        assert each.run.answer == each.recorded.answer
        assert each.run.steps == each.recorded.steps
        assert each.run.warnings == each.recorded.warnings


def test_cross_replay_is_equal_for_all_pairs(ladder: Recording) -> None:
    runs = [
        each
        for source in NAMES
        for name in NAMES
        if comparable(source, name)
        for each in played(ladder, source, name)
    ]
    table = cells(runs)
    assert len(table) == len(CALLERS) ** 2 + 1  # stage 5 on its own alone
    assert {(cell.equal, cell.total) for cell in table} == {(3, 3)}
    assert exit_code(runs, []) == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_in_replay(scripted: Recording, fault: str) -> None:
    runs = played(scripted, "stage3", f"equivalence.faults:{fault}")
    wrong = [each for each in runs if not each.faithful]
    assert wrong, "the fault was not found"
    assert wrong[0].verdict.verdict == "different"
    assert wrong[0].verdict.divergence is not None
    assert wrong[0].verdict.divergence.cause == FAULTS[fault]
    assert exit_code(runs, []) == 1
    cell = cells(runs)[0]
    assert (cell.cause, cell.total - cell.equal) == (FAULTS[fault], len(wrong))


def test_a_model_that_answers_otherwise_is_not_blamed_on_the_code(
    tmp_path: Path,
) -> None:
    class Moody(ByQuestion):
        asked = 0

        async def answer(self, request: Any, authorization: Any) -> Reply:
            Moody.asked += 1
            self.replies["and now"] = [{"content": f"{Moody.asked}.0"}]
            return await super().answer(request, authorization)

    names = ["stage1", "stage3", "stage4"]
    recording = record(tmp_path / "m.jsonl", Moody(), names, [["and now"]])
    runs = [
        each for source in names for n in names for each in played(recording, source, n)
    ]
    assert all(each.faithful for each in runs)
    among = among_each_other(recorded.run for recorded in recording.runs.values())
    causes = {verdict.divergence and verdict.divergence.cause for verdict in among}
    assert causes == {"reply"}
    assert exit_code(runs, among) == 3


def test_replay_never_goes_to_the_network(tmp_path: Path) -> None:
    """Not even with the endpoint alive, its address recorded, and a miss at hand."""
    counting = Counting(ByQuestion())
    path = tmp_path / "c.jsonl"
    with Gateway(counting, repair=False) as endpoint:
        settings = settings_for(endpoint)
        list(record_all(path, [subject("stage3")], [["two cities"]], settings, TOOLS))
        assert counting.asked == 2
        recording = read_cassette(path)
        assert recording.settings.base_url == endpoint.url()
        (same,) = played(recording, "stage3", "stage3")
        (missed,) = played(recording, "stage3", "equivalence.faults:one_space_more")
    assert same.faithful
    assert counting.asked == 2
    assert missed.run.status == "model_error"
    assert "$.messages[0].content" in str(missed.run.error)


def test_repairs_run_again(scripted: Recording) -> None:
    asked = Asked("stage3", "as text")
    recorded = scripted.runs[asked]
    assert "<tool_call>" in json.dumps(recorded.exchanges[0].reply)
    assert {"think_block", "text_tool_call"} <= {*recorded.run.exchanges[0]["repairs"]}
    runs = [e for e in played(scripted, "stage3", "stage3") if e.faithful]
    (run,) = (each.run for each in runs if each.run.question == "as text")
    assert [(s.tool, s.result) for s in run.steps] == [("calculate", "2")]


def test_raw_replies_stay_raw(tmp_path: Path) -> None:
    recording = record(
        tmp_path / "r.jsonl", ByQuestion(), ["stage3"], [["as text"]], repair=False
    )
    (each,) = played(recording, "stage3", "stage3")
    assert each.faithful
    assert "<tool_call>" in each.run.answer


def test_streamed_replies_are_replayed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    recording = record(
        path, OfflineModel(), ["stage3", "stage4"], [[PUBLISHED]], stream=True
    )
    for name in ("stage3", "stage4"):
        (each,) = played(recording, name, name)
        assert each.faithful
        assert each.recorded.exchanges[0]["request"]["stream"] is True


def test_attempts_that_failed_are_recorded_and_replayed_as_one(tmp_path: Path) -> None:
    class Stumbling(ByQuestion):
        asked = 0

        async def answer(self, request: Any, authorization: Any) -> Reply:
            self.asked += 1
            if self.asked == 1:
                headers = {"retry-after-ms": "1"}
                return Reply(503, b'{"error": {"message": "busy"}}', headers=headers)
            return await super().answer(request, authorization)

    path = tmp_path / "a.jsonl"
    recording = record(path, Stumbling(), ["stage3"], [["two cities"]])
    (recorded,) = recording.runs.values()
    assert [e.status for e in recorded.exchanges] == [503, 200, 200]
    assert [e.attempt for e in recorded.exchanges] == [0, 1, 0]
    (each,) = played(recording, "stage3", "stage3")
    assert each.faithful
    assert len(each.run.exchanges) == 2


def test_a_failure_is_replayed_without_repetition(tmp_path: Path) -> None:
    body = b'{"error": {"message": "no such model"}}'
    broken = ByQuestion(broken=[Reply(503, body, headers={"retry-after-ms": "1"})])
    recording = record(tmp_path / "f.jsonl", broken, ["stage3"], [["broken"]])
    (each,) = played(recording, "stage3", "stage3")
    assert each.run.status == each.recorded.status == "model_error"
    assert each.run.error == each.recorded.error
    assert "no such model" in str(each.run.error)
    assert len(each.recorded.exchanges) == 3
    assert len(each.run.exchanges) == 1


# ----------------------------------------------------------------------------- a miss


@pytest.fixture
def one_exchange() -> Iterator[Gateway]:
    request = canonical_request(
        {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    )
    reply = completion({"content": "hello"}, "m")
    with Gateway(Cassette([RecordedExchange(request, reply)])) as gateway:
        yield gateway


def send(gateway: Gateway, request: dict[str, Any]) -> tuple[int, Any, str]:
    """The status, the headers, and the error's message."""
    http = urllib.request.Request(
        f"{gateway.url()}/chat/completions",
        json.dumps(request).encode(),
        {"Content-Type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(http) as answer:
            return answer.status, answer.headers, ""
    except urllib.error.HTTPError as error:
        words = json.loads(error.read())["error"]["message"]
        return error.code, error.headers, words


def test_a_miss_names_the_first_field_that_differs(one_exchange: Gateway) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "ho"}]}
    status, headers, message = send(one_exchange, request)
    assert status == 404
    assert headers["x-should-retry"] == "false"
    assert message == (
        "model call 1 is not in the recording: $.messages[0].content differs from"
        ' model call 1: recorded "hi", sent "ho"'
    )


def test_a_miss_past_the_end_says_where_it_ends(one_exchange: Gateway) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert send(one_exchange, request)[0] == 200
    again = send(one_exchange, request)[2]
    assert "which ends after model call 1 with this same request" in again
    request["messages"].append({"role": "user", "content": "more"})
    longer = send(one_exchange, request)[2]
    assert "ends after model call 1: $.messages[1] differs" in longer


def test_ids_and_spacing_are_no_miss() -> None:
    def asked(identifier: str, arguments: str) -> dict[str, Any]:
        calls = [call("get_weather", arguments, identifier)]
        tool = {"role": "tool", "tool_call_id": identifier, "content": "25"}
        said = {"role": "assistant", "content": None, "tool_calls": calls}
        return {"model": "m", "messages": [said, tool]}

    recorded = canonical_request(asked("a", '{"city":"\\u5317\\u4eac"}'))
    cassette = Cassette([RecordedExchange(recorded, completion({"content": "x"}, "m"))])
    assert cassette.miss(asked("zzz", '{"city": "北京"}')) is None
    assert "$.messages[0]" in str(cassette.miss(asked("a", '{"city": "上海"}')))


def test_the_wire_form_means_the_same() -> None:
    request = {
        "messages": [
            {
                "role": "assistant",
                "tool_calls": [
                    call("a", '{"x": 1}', "i"),
                    call("b", "not JSON", "j"),
                    call("c", '"text"', "k"),
                    call("d", "", "l"),
                ],
            },
            {"role": "tool", "tool_call_id": "k", "content": "北京"},
        ]
    }
    canonical = canonical_request(request)
    assert canonical_request(wire_request(canonical)) == canonical


# ----------------------------------------------------------------------------- the file


def test_the_file_is_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    record(path, ByQuestion(), ["stage1", "stage3"], [["two cities", "and now"]])
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert lines[0]["schema"] == "agent-cassette/1"
    assert [line["define"] for line in lines if "define" in line] == [
        "tools 1",
        "system 1",
    ]
    second = next(line for line in lines if line.get("call") == 2)
    assert [m["role"] for m in second["request"]["added"]] == [
        "assistant",
        "tool",
        "tool",
    ]
    assert max(len(json.dumps(x)) for x in lines if "define" not in x) < 2500


def test_no_key_no_header_no_path_of_the_server(tmp_path: Path) -> None:
    path = tmp_path / "k.jsonl"
    with Gateway(ByQuestion(), repair=False) as endpoint:
        settings = settings_for(endpoint, api_key="secret")
        list(record_all(path, [subject("stage3")], [["and now"]], settings, TOOLS))
        text = path.read_text("utf-8")
        assert json.loads(text.splitlines()[0])["server"] == endpoint.url()
    assert "small.gguf" in text
    for private in ("secret", "uthorization", "Bearer", "/home/", "timings", "b0"):
        assert private not in text, private


@pytest.mark.parametrize("part", [0.999, 0.97, 0.9, 0.8, 0.6, 0.4, 0.2])
def test_a_file_that_breaks_off_is_read_and_continued(
    scripted: Recording, tmp_path: Path, part: float
) -> None:
    conversations = [["two cities", "and now"], ["for ever"]]
    whole = tmp_path / "whole.jsonl"
    counting = Counting(ByQuestion())
    with Gateway(counting, repair=False) as endpoint:
        settings = settings_for(endpoint)
        agents = [subject("stage3")]
        runs = list(record_all(whole, agents, conversations, settings, TOOLS))
        asked = counting.asked
        data = whole.read_bytes()
        cut = tmp_path / "cut.jsonl"
        cut.write_bytes(data[: int(len(data) * part)])
        kept = cut.read_bytes().rpartition(b"\n")[0]
        again = list(record_all(cut, agents, conversations, settings, TOOLS))
        lines = [json.loads(line) for line in kept.splitlines()]
        calls = sum("call" in line for line in lines)
        assert counting.asked == asked + asked - calls, "what was recorded is not asked"
    assert cut.read_bytes().startswith(kept), "nothing recorded is lost"
    assert [r.answer for r in again] == [r.answer for r in runs]
    recording = read_cassette(cut)
    assert len(recording.runs) == len(runs)
    assert all(each.faithful for each in played(recording, "stage3", "stage3"))


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    record(path, ByQuestion(), ["stage3"], [["and now"]])
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:3], "{broken\n", *lines[3:]]), "utf-8")
    with pytest.raises(ValueError, match=r"b\.jsonl, line 4"):
        read_cassette(path)


def test_a_line_separator_in_a_reply_does_no_harm(tmp_path: Path) -> None:
    odd = ByQuestion(odd=[{"content": "one\u2028two\x85three"}])
    recording = record(tmp_path / "o.jsonl", odd, ["stage3"], [["odd"]])
    (each,) = played(recording, "stage3", "stage3")
    assert each.run.answer == "one\u2028two\x85three"


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
        faulty = load("equivalence.faults:swapped_results")
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
    fault = "equivalence.faults:lost_result"
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
    mine = ["--tools", "equivalence.scenario_tools:MINE"]
    path = str(tmp_path / "tools.jsonl")
    tools = ["--tools", "tests.test_cassette:FEWER"]
    one = ["record", "介绍一下你自己", "--implementation", "stage3", "--out", path]
    assert main([*one, *mine]) == 2
    assert main([*one, *tools]) == 0
    assert main(["replay", path]) == 2
    assert (
        "was recorded with --tools tests.test_cassette:FEWER" in capsys.readouterr().err
    )
    assert main(["replay", path, *tools]) == 0


FEWER = TOOLS[:2]


# -------------------------------------------------------------- committed cassettes


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_cassettes_replay(path: Path) -> None:
    """Each implementation on its own answers of the real model; where the recordings
    differ from each other it is never the code, also in follow-up questions."""
    recording = read_cassette(path)
    assert not recording.unfinished.keys() - recording.runs.keys()
    names = recording.implementations
    runs = [each for name in names for each in played(recording, name, name)]
    unfaithful = [each for each in runs if not each.faithful]
    assert not unfaithful, unfaithful[0].verdict
    among = among_each_other(each.recorded for each in runs)
    assert exit_code(runs, among) in (0, 3)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_cassettes_name_no_machine(path: Path) -> None:
    text = path.read_text("utf-8")
    for private in ("/root", "/home", "/work", "Bearer", "sk-"):
        assert private not in text


def test_committed_cassettes_are_small() -> None:
    assert sum(path.stat().st_size for path in COMMITTED) < 3_000_000


def test_the_suffix_is_added_once() -> None:
    assert cassette_path(Path("a/t-0.7")) == Path("a/t-0.7.jsonl")
    assert cassette_path(Path("a.jsonl")) == Path("a.jsonl")
