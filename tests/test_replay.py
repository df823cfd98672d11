"""Replay: implementations on recorded replies, without a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recordings import (
    FOLLOW_UP,
    PUBLISHED,
    ROOT,
    ByQuestion,
    Counting,
    among,
    call,
    gathered,
    named,
    plan_for,
    played,
    record,
)
from wire import LADDER, send

from equivalence.cli import main
from equivalence.gateway import Exchange, Gateway, Playback
from equivalence.gateway.upstreams import Reply, completion
from equivalence.judge.exit_codes import exit_code
from equivalence.judge.replay import cells, replay
from equivalence.runs.files import read_runs
from equivalence.runs.record import Run
from offline_model import OfflineModel
from tools import TOOLS
from variants.faults import FAULTS

COMMITTED = sorted((ROOT / "cassettes").glob("*.jsonl"))
NAMES = [implementation.name for implementation in LADDER]
CALLERS = [each.name for each in LADDER if each.protocol == "tool_calls"]


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """The whole ladder on two conversations, in front of the offline model."""
    path = tmp_path_factory.mktemp("recordings") / "ladder.jsonl"
    return record(path, OfflineModel(), NAMES, [[PUBLISHED], FOLLOW_UP], max_steps=10)


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Stage 3 on what planted faults trip over."""
    path = tmp_path_factory.mktemp("recordings") / "scripted.jsonl"
    conversations = [["two cities", "and now"], ["for ever"], ["as text"]]
    return record(path, ByQuestion(), ["stage3"], conversations)


def codes(played: list[Any]) -> int:
    return exit_code([each.verdict for each in played])


@pytest.mark.parametrize("name", NAMES)
def test_an_implementation_replays_its_own_recording(
    ladder: list[Run], name: str
) -> None:
    runs = played(ladder, name, name)
    assert len(runs) == 3
    for each in runs:
        assert each.verdict.verdict == "equivalent", each.verdict
        assert each.run.status == "completed"
        assert each.run.answer == each.recorded.answer
        assert each.run.steps == each.recorded.steps
        assert each.run.warnings == each.recorded.warnings


@pytest.mark.slow
def test_cross_replay_is_equal_for_all_pairs(ladder: list[Run]) -> None:
    runs = [
        each
        for source in NAMES
        for name in NAMES
        if named(source).protocol == named(name).protocol
        for each in played(ladder, source, name)
    ]
    table = cells(runs)
    assert len(table) == len(CALLERS) ** 2 + 1  # stage 5 on its own alone
    assert {(cell.equal, cell.total) for cell in table} == {(3, 3)}
    assert codes(runs) == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_in_replay(scripted: list[Run], fault: str) -> None:
    runs = played(scripted, "stage3", f"variants.faults:{fault}")
    wrong = [each for each in runs if not each.faithful]
    assert wrong, "the fault was not found"
    assert wrong[0].verdict.verdict == "different"
    assert wrong[0].verdict.divergence is not None
    assert wrong[0].verdict.divergence.cause == FAULTS[fault]
    assert codes(runs) == 1
    cell = cells(runs)[0]
    assert (cell.cause, cell.total - cell.equal) == (FAULTS[fault], len(wrong))


@pytest.mark.slow
def test_a_model_that_replies_differently_is_not_blamed_on_the_code(
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
    causes = {v.divergence and v.divergence.cause for v in among(recording)}
    assert causes == {"reply"}
    assert codes(runs) == 0  # the code did what was recorded


def test_replay_never_goes_to_the_network(tmp_path: Path) -> None:
    """Not even with the endpoint alive, its address recorded, and a miss at hand."""
    counting = Counting(ByQuestion())
    path = tmp_path / "c.jsonl"
    with Gateway(counting, repair=False) as endpoint:
        gathered(path, plan_for(endpoint, ["stage3"], [["two cities"]]))
        assert counting.asked == 2
        runs = list(read_runs(path))
        assert runs[0].settings["base_url"] == endpoint.url
        (same,) = played(runs, "stage3", "stage3")
        (missed,) = played(runs, "stage3", "variants.faults:one_space_more")
    assert same.faithful
    assert counting.asked == 2
    assert missed.run.status == "model_error"
    assert "$.messages[0].content" in str(missed.run.error)


def test_repairs_run_again(scripted: list[Run]) -> None:
    recorded = next(run for run in scripted if run.question == "as text")
    assert "<tool_call>" in json.dumps(recorded.exchanges[0].raw_reply)
    assert "<tool_call>" not in json.dumps(recorded.exchanges[0].reply)
    assert {"think_block", "text_tool_call"} <= {*recorded.exchanges[0].repairs}
    (each,) = played([recorded], "stage3", "stage3")
    assert each.faithful
    assert [(s.tool, s.result) for s in each.run.steps] == [("calculate", "2")]


def test_raw_replies_stay_raw(tmp_path: Path) -> None:
    recording = record(
        tmp_path / "r.jsonl", ByQuestion(), ["stage3"], [["as text"]], repair=False
    )
    (each,) = played(recording, "stage3", "stage3")
    assert each.faithful
    assert "<tool_call>" in each.run.answer


def test_streamed_replies_are_replayed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    runs = record(
        path, OfflineModel(), ["stage3", "stage4"], [[PUBLISHED]], stream=True
    )
    for name in ("stage3", "stage4"):
        (each,) = played(runs, name, name)
        assert each.faithful
        assert each.recorded.exchanges[0].request["stream"] is True


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
    (recorded,) = record(path, Stumbling(), ["stage3"], [["two cities"]])
    assert [e.status for e in recorded.exchanges] == [503, 200, 200]
    assert [e.attempt for e in recorded.exchanges] == [0, 1, 0]
    (each,) = played([recorded], "stage3", "stage3")
    assert each.faithful
    assert len(each.run.exchanges) == 2


def test_a_failure_is_replayed_without_repetition(tmp_path: Path) -> None:
    body = b'{"error": {"message": "no such model"}}'
    broken = ByQuestion(broken=[Reply(503, body, headers={"retry-after-ms": "1"})])
    (recorded,) = record(tmp_path / "f.jsonl", broken, ["stage3"], [["broken"]])
    (each,) = played([recorded], "stage3", "stage3")
    assert each.run.status == each.recorded.status == "model_error"
    assert each.run.error == each.recorded.error
    assert "no such model" in str(each.run.error)
    assert len(each.recorded.exchanges) == 3
    assert len(each.run.exchanges) == 1
    assert codes([each]) == 3  # nothing could be judged


# ----------------------------------------------------------------------------- a miss


def says(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def recorded_call(request: dict[str, Any], began: float = 0, ms: float = 1) -> Exchange:
    reply = completion({"content": "hello"}, "m")
    return Exchange(
        request, reply, 200, raw_reply=reply, raw_status=200, began=began, ms=ms
    )


@pytest.fixture
def one_call() -> Iterator[Gateway]:
    with Gateway(Playback([recorded_call(says("hi"))])) as gateway:
        yield gateway


def test_a_miss_names_the_first_field_that_differs(one_call: Gateway) -> None:
    missed = send(one_call.url, says("ho"))
    assert missed.status == 404
    assert missed.headers["x-should-retry"] == "false"
    assert missed.error == (
        "model call 1 is not in the recording: $.messages[0].content differs from"
        ' model call 1: recorded "hi", sent "ho"'
    )


def test_a_miss_past_the_end_says_where_it_ends(one_call: Gateway) -> None:
    assert send(one_call.url, says("hi")).status == 200
    again = send(one_call.url, says("hi")).error
    assert "which ends after model call 1 with this same request" in again
    longer = says("hi")
    longer["messages"].append({"role": "user", "content": "more"})
    missed = send(one_call.url, longer).error
    assert "ends after model call 1: $.messages[1] differs" in missed


def test_ids_and_spacing_are_no_miss() -> None:
    def asked(identifier: str, arguments: str) -> dict[str, Any]:
        calls = [call("get_weather", arguments, identifier)]
        tool = {"role": "tool", "tool_call_id": identifier, "content": "25"}
        said = {"role": "assistant", "content": None, "tool_calls": calls}
        return {"model": "m", "messages": [said, tool]}

    recorded = recorded_call(asked("a", '{"city":"\\u5317\\u4eac"}'))
    assert Playback([recorded]).next_reply(asked("zzz", '{"city": "北京"}'))
    other = asked("a", '{"city": "上海"}')
    assert Playback([recorded]).next_reply(other) is None
    assert "$.messages[0]" in Playback([recorded]).miss(other)


def test_calls_that_were_under_way_together_may_come_in_another_order() -> None:
    together = [recorded_call(says("a"), 0, 10), recorded_call(says("b"), 5, 10)]
    playback = Playback(together)
    assert playback.next_reply(says("b"))
    assert playback.next_reply(says("a"))
    one_after_another = [recorded_call(says("a"), 0, 4), recorded_call(says("b"), 5, 9)]
    assert Playback(one_after_another).next_reply(says("b")) is None


# ----------------------------------------------------------------------- command line


def test_record_and_replay_at_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "demo.jsonl")
    names = ["--implementation", "stage3", "--implementation", "stage4"]
    assert main(["record", PUBLISHED, FOLLOW_UP[0], *names, "--out", file]) == 0
    capsys.readouterr()
    assert main(["replay", file, "--cross", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["runs"]) == 2 * 2 * 2
    assert {v["verdict"] for v in document["verdicts"]} == {"equivalent"}
    assert {(c["equal"], c["total"]) for c in document["cross"]} == {(2, 2)}
    fault = "variants.faults:lost_result"
    assert main(["replay", file, PUBLISHED, "--implementation", fault]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "cause: request, model call 2, $.messages[3]" in shown
    assert main(["replay", file, "never asked"]) == 2


def test_replay_names_other_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "v.jsonl"
    record(path, ByQuestion(), ["stage3"], [["and now"]])
    line = json.loads(path.read_text("utf-8"))
    line["versions"]["openai"] = "1.0.0"
    path.write_text(json.dumps(line) + "\n", "utf-8")
    assert main(["replay", str(path)]) == 0
    assert "Recorded with openai 1.0.0, here it is" in capsys.readouterr().out


def test_a_file_never_decides_what_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording names module:function as its implementation, and tools of its own."""
    path = tmp_path / "foreign.jsonl"
    proof = tmp_path / "imported"
    (tmp_path / "foreign.py").write_text(
        f"open({str(proof)!r}, 'w').close()\ndef agent(*_, **__): return []\nTOOLS = []"
    )
    record(path, ByQuestion(), ["stage3"], [["and now"]])
    data = json.loads(path.read_text("utf-8"))
    for field, value in (("implementation", "foreign:agent"), ("tools", "foreign:T")):
        path.write_text(json.dumps({**data, field: value}) + "\n", "utf-8")
        assert main(["replay", str(path)]) == 2
        assert "foreign" in capsys.readouterr().err
    assert not proof.exists()


# ----------------------------------------------------------------- committed recordings


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_recordings_replay(path: Path) -> None:
    """Each implementation on its own answers of the real model; where the recordings
    differ from each other it is never the code, also in follow-up questions."""
    recorded = list(read_runs(path))
    names = dict.fromkeys(run.implementation for run in recorded)
    runs = [each for name in names for each in played(recorded, name, name)]
    unfaithful = [each for each in runs if not each.faithful]
    assert not unfaithful, unfaithful[0].verdict
    # What is named by its function differs from the stages on purpose.
    callers = [
        run
        for run in recorded
        if run.protocol == "tool_calls" and ":" not in run.implementation
    ]
    found = [v.divergence for v in among(callers) if v.divergence]
    assert {divergence.cause for divergence in found} <= {"reply"}


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_recordings_name_no_machine(path: Path) -> None:
    text = path.read_text("utf-8")
    for private in ("/root", "/home", "/work", "Bearer", "sk-"):
        assert private not in text


def test_committed_recordings_are_small() -> None:
    assert sum(path.stat().st_size for path in COMMITTED) < 4_000_000


# --------------------------------------------------------- tools that are not run again

DUMPS = """
import json, openai
def agent(question, *, base_url, tools):  # results as JSON, known errors as their words
    client = openai.OpenAI(base_url=base_url, api_key="x", max_retries=0)
    named = {tool.__name__: tool for tool in tools}
    schemas = [{"type": "function", "function": {"name": name}} for name in named]
    messages = [{"role": "user", "content": question}]
    while True:
        reply = client.chat.completions.create(
            model="m", messages=messages, tools=schemas
        ).choices[0].message
        messages.append(reply.model_dump(exclude_none=True))
        for call in reply.tool_calls or ():
            arguments = json.loads(call.function.arguments)
            try:
                content = json.dumps(named[call.function.name](**arguments))
            except KeyError as error:
                content = f"unknown: {error}"
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": content}
            )
        if not reply.tool_calls:
            return messages
"""


@pytest.mark.parametrize("callers", [CALLERS, ["dumps:agent"]], ids=["ladder", "own"])
def test_recorded_tools_are_not_run_again(
    own: Path, capsys: pytest.CaptureFixture[str], callers: list[str]
) -> None:
    """Nobody's mail is sent again, and a changed value is no difference."""
    tools = '''
import pathlib
sent = pathlib.Path("sent")
def send(to: str, times: int = 1) -> dict:
    """Send a mail."""
    sent.write_text(sent.read_text() + to if sent.exists() else to)
    return {"sent": to, "number": len(sent.read_text())}
def fail(text: str) -> str:
    """Fail."""
    raise KeyError(text)
def size(of: str) -> int:
    """Return how large it is."""
    return 7
TOOLS = [send, fail, size]
'''
    (own / "dumps.py").write_text(DUMPS)
    (own / "mail.py").write_text(tools)
    (own / "replies.yaml").write_text(
        '- calls: [[send, \'{"to": "a"}\', a], [fail, \'{"text": "x"}\', b],\n'
        '    [size, \'{"of": "y"}\', c]]\n- done\n'
    )
    table = (own / "pyproject.toml").read_text("utf-8")
    table = table.replace('"offline_model:OfflineModel"', '"script:replies.yaml"')
    table = table.replace('"tools:TOOLS"', '"mail:TOOLS"')
    (own / "pyproject.toml").write_text(table, "utf-8")
    names = [part for name in callers for part in ("--implementation", name)]
    assert main(["record", "go", *names, "--out", "r.jsonl"]) == 0
    assert (own / "sent").read_text() == "a" * len(callers)
    capsys.readouterr()
    replayed = ["replay", "r.jsonl", *names]
    assert main([*replayed, "--tools", "recorded"]) == 0
    assert capsys.readouterr().out.startswith("Tools: their recorded results.")
    assert (own / "sent").read_text() == "a" * len(callers)
    assert main(replayed) == 1  # the tool answers differently now
    out = capsys.readouterr().out
    assert out.startswith("Tools: run again.")
    assert "cause: tool" in " ".join(out.split())


def test_a_call_that_is_not_recorded_is_named(tmp_path: Path) -> None:
    (recorded,) = record(tmp_path / "r.jsonl", ByQuestion(), ["stage3"], [["for ever"]])
    recorded.steps = recorded.steps[:1]
    (each,) = replay([recorded], named("stage3"), TOOLS, tools_recorded=True)
    assert "get_current_time() is not in the recording: it was not run" in (
        each.run.warnings
    )
    assert not each.faithful


# ----------------------------------------------------------------------------- the fork


def test_from_a_model_call_on_a_live_model_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the model differs: what it did first is named."""
    path = str(tmp_path / "f.jsonl")
    record(tmp_path / "f.jsonl", ByQuestion(), ["stage3", "stage4"], [["for ever"]])
    other = Counting(ByQuestion(**{"for ever": [{"content": "enough"}]}))
    with Gateway(other, repair=False) as endpoint:
        live = ["--model", "another", "--base-url", endpoint.url]
        for first, asked in ((1, 2), (3, 2)):
            other.asked = 0
            assert main(["replay", path, "--from", str(first), *live, "--json"]) == 1
            verdicts = json.loads(capsys.readouterr().out)["verdicts"]
            places = {(v["cause"], v["model_call"], v["path"]) for v in verdicts}
            assert places == {("reply", first, "$.message.content")}
            assert {v["right_value"] for v in verdicts} == {"enough"}
            assert other.asked == asked
        assert main(["replay", path, "--from", "3", *live]) == 1
        shown = capsys.readouterr().out
        assert "From model call 3 on: another." in shown
    assert main(["replay", path, *live]) == 2
    assert main(["replay", path, "--from", "0", *live]) == 2


# ----------------------------------------------------------------------------- commands


def test_a_recorded_command_is_replayed(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "agent.py").write_text(
        "import json, os, sys, urllib.request\n"
        "body = {'model': 'm', 'messages': [{'role': 'user', 'content': sys.argv[1]}]}\n"
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "kind = {'Content-Type': 'application/json'}\n"
        "request = urllib.request.Request(url, json.dumps(body).encode(), kind)\n"
        "print(urllib.request.urlopen(request).read())\n"
    )
    line = f"{sys.executable} agent.py {{question}}"
    assert main(["record", "hello", "--command", line, "--out", "c.jsonl"]) == 0
    assert main(["replay", "c.jsonl"]) == 2
    assert "name an --implementation" in capsys.readouterr().err
    assert main(["replay", "c.jsonl", "--command", line]) == 0
    assert "1 did exactly what was recorded" in capsys.readouterr().out
