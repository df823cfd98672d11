"""Cassettes: the file, replay, a miss, what is committed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from equivalence.runs.cassette_file import Recording, cassette_path, read_cassette
from equivalence.runs.recording import record_all
from recordings import (
    FOLLOW_UP,
    PUBLISHED,
    ROOT,
    ByQuestion,
    Counting,
    call,
    played,
    record,
    settings_for,
    subject,
)

from equivalence.gateway import Cassette, Gateway, OfflineModel, RecordedExchange
from equivalence.gateway.canonical import canonical_request, wire_request
from equivalence.gateway.upstreams import Reply, completion
from equivalence.judge.compare import among_each_other
from equivalence.judge.replay import (
    cells,
    comparable,
    exit_code,
)
from equivalence.runs.implementation import LADDER
from equivalence.runs.session import Asked
from tools import TOOLS
from variants.faults import FAULTS

COMMITTED = sorted((ROOT / "cassettes").glob("*.jsonl"))
NAMES = [implementation.name for implementation in LADDER]
CALLERS = [each.name for each in LADDER if each.protocol == "tool_calls"]


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
    runs = played(scripted, "stage3", f"variants.faults:{fault}")
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
        (missed,) = played(recording, "stage3", "variants.faults:one_space_more")
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


# ----------------------------------------------------------------------------- a miss


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
