"""Foreign traces: the samples of the real libraries, what no sample holds, and writing.

The samples (tests/traces/) are one run, so each must come out as that run.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from equivalence.cli import main
from equivalence.errors import UsageError
from equivalence.judge.compare import RULES, compare, ignored
from equivalence.runs.files import read_runs
from equivalence.runs.record import Run, Step
from equivalence.traces import FORMATS, read, run_index

HERE = Path(__file__).parent
SAMPLES = HERE / "traces"
CASSETTES = HERE.parent / "cassettes"
WHOLE = {
    "browser.har",
    "mitmproxy.har",
    "vcrpy.yaml",
    "langsmith-openai.json",
    "otlp-openinference.jsonl",
}
"""They keep requests as they were sent."""
WATCHED = {
    "langsmith-openai.json",
    "langsmith-langgraph.json",
    "otlp-openinference.jsonl",
}
"""They tell of the tools at work."""
NAMES = sorted(
    path.name
    for path in SAMPLES.iterdir()
    if path.suffix not in (".py", ".md") and path.is_file() and path.name != "run.jsonl"
)


def written(folder: Path, value: Any, name: str = "trace.json") -> Path:
    path = folder / name
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    path.write_bytes(data)
    return path


def the_runs(folder: Path, value: Any) -> list[Run]:
    runs = read(written(folder, value))
    assert runs is not None
    return runs


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(*tools: str) -> dict[str, Any]:
    asked = [
        {"id": f"c{n}", "type": "function", "function": {"name": t, "arguments": "{}"}}
        for n, t in enumerate(tools)
    ]
    return {"role": "assistant", "content": None, "tool_calls": asked}


def result(text: str, number: int = 0) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


@pytest.fixture(scope="module")
def recorded() -> Run:
    (run,) = read_runs(SAMPLES / "run.jsonl")
    return run


# ------------------------------------------------------------------------- the samples


@pytest.mark.parametrize("name", NAMES)
def test_each_librarys_trace_is_the_run_that_it_is_of(name: str, recorded: Run) -> None:
    (run,) = read(SAMPLES / name) or []
    assert compare(recorded, run) is None
    assert (run.question, run.history, run.status, run.answer) == (
        recorded.question, [], "completed", recorded.answer,
    )  # fmt: skip
    assert [(s.turn, s.tool, s.arguments, s.result) for s in run.steps] == [
        (s.turn, s.tool, s.arguments, s.result) for s in recorded.steps
    ]
    assert len(run.exchanges) == 2
    assert bool(run.rebuilt) is (name not in WHOLE)
    assert ("trace" in ignored(recorded, run)) is (name not in WHOLE)
    seen = [(True, 0), (True, 1)] if name in WATCHED else [(None, None)] * 2
    assert [(s.ok, s.order) for s in run.steps] == seen


@pytest.mark.parametrize("name", NAMES)
def test_nothing_secret_of_a_trace_is_in_the_run(name: str) -> None:
    (run,) = read(SAMPLES / name) or []
    assert "Bearer" not in repr(run)


@pytest.mark.parametrize("name", NAMES)
def test_diff_and_report_take_each_of_them(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, right = str(SAMPLES / "run.jsonl"), str(SAMPLES / name)
    assert main(["diff", left, right]) == 0
    said = capsys.readouterr().out
    assert (RULES["trace"] in said) is (name not in WHOLE)
    page = tmp_path / "page.html"
    assert main(["report", left, right, "-o", str(page)]) == 0
    assert "28 * 2" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["mitmproxy.har", "vcrpy.yaml", "messages.json"])
def test_replay_answers_from_a_foreign_trace(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (SAMPLES / "agent.py").read_text(encoding="utf-8")
    (folder / "agent.py").write_text(source, encoding="utf-8")
    command = ["replay", str(SAMPLES / name), "--implementation", "agent:run"]
    assert main(command) == 0
    capsys.readouterr()
    (folder / "another.py").write_text(source.replace('"56"', '"57"'), encoding="utf-8")
    assert main([*command[:-1], "another:run", "--json"]) == 1
    (verdict,) = json.loads(capsys.readouterr().out.splitlines()[-1])["verdicts"]
    assert verdict["cause"] == "tool"


# ---------------------------------------------------------------- what no sample holds


def test_each_question_of_a_list_is_a_run_and_none_is_there_twice(
    tmp_path: Path,
) -> None:
    first = [user("one"), calls("t"), result("1"), says("uno")]
    both = [*first, user("two"), says("due")]
    runs = the_runs(tmp_path, [first, both])
    assert [(r.question, r.history, r.repeat) for r in runs] == [
        ("one", [], 0),
        ("two", ["one"], 0),
    ]
    assert [len(r.steps) for r in runs] == [1, 0]
    again = the_runs(tmp_path, [first, first])
    assert [r.repeat for r in again] == [0, 1]


LISTS = {
    "one list": [user("q"), says("a")],
    "a state": {"messages": [user("q"), says("a")], "remaining_steps": 3},
    "a list of lists": [[user("q"), says("a")]],
    "a list of states": [{"messages": [user("q"), says("a")]}],
    "a state a line": b'{"messages": %s}\n'
    % json.dumps([user("q"), says("a")]).encode(),
    "a message a line": "\n".join(map(json.dumps, [user("q"), says("a")])).encode(),
    "a byte order mark": b"\xef\xbb\xbf" + json.dumps([user("q"), says("a")]).encode(),
}


@pytest.mark.parametrize("kind", LISTS)
def test_messages_are_read_however_they_are_put_together(
    kind: str, tmp_path: Path
) -> None:
    (run,) = the_runs(tmp_path, LISTS[kind])
    assert (run.question, run.answer, run.status) == ("q", "a", "completed")
    assert run.implementation == "trace"


CALLS = {
    "agentevals": {"name": "t", "args": {"a": 1}, "id": "c0"},
    "OpenAI": {"id": "c0", "function": {"name": "t", "arguments": '{"a": 1}'}},
}


@pytest.mark.parametrize("kind", CALLS)
def test_both_forms_of_a_call_are_one_step(kind: str, tmp_path: Path) -> None:
    asks = {"role": "assistant", "content": "", "tool_calls": [CALLS[kind]]}
    (run,) = the_runs(tmp_path, [user("q"), asks, result("1"), says("a")])
    assert [(s.tool, s.arguments, s.result) for s in run.steps] == [
        ("t", {"a": 1}, "1")
    ]


def test_a_call_that_langchain_could_not_parse_is_a_step(tmp_path: Path) -> None:
    broken = {"name": "t", "args": '{"a": ', "id": "c0", "error": None}
    asks = {
        "type": "ai",
        "content": "",
        "tool_calls": [],
        "invalid_tool_calls": [broken],
    }
    (run,) = the_runs(tmp_path, [user("q"), asks])
    assert [(s.tool, s.arguments_text) for s in run.steps] == [("t", '{"a": ')]
    assert run.status == "step_limit"


def test_another_argument_in_a_list_is_found_and_not_blamed_on_the_code(
    tmp_path: Path,
) -> None:
    one = [user("q"), calls("t"), result("1"), says("a")]
    other = [user("q"), calls("u"), result("1"), says("a")]
    (left,) = the_runs(tmp_path, one)
    (right,) = the_runs(tmp_path, other)
    found = compare(left, right)
    assert found
    assert (found.cause, found.path) == ("unknown", "steps[0].tool")


def har(
    *entries: tuple[Any, int, bytes | str], url: str = "/v1/chat/completions"
) -> Any:
    return {
        "log": {
            "entries": [
                {
                    "startedDateTime": f"2026-01-01T00:00:{second:02}Z",
                    "time": 500,
                    "request": {
                        "method": "POST",
                        "url": f"https://user:secret@example.test{url}?key=secret",
                        "postData": {"text": json.dumps(request)},
                    },
                    "response": {
                        "status": status,
                        "content": {"text": body}
                        if isinstance(body, str)
                        else {
                            "text": base64.b64encode(body).decode(),
                            "encoding": "base64",
                        },
                    },
                }
                for second, (request, status, body) in enumerate(entries)
            ]
        }
    }


def reply(message: dict[str, Any]) -> str:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"model": "m", "choices": [choice]})


ASKED = {"model": "m", "messages": [user("q")]}
STREAM = (
    'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
    'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    "data: [DONE]\n\n"
)


@pytest.mark.parametrize(
    "body", [reply(says("a")), gzip.compress(reply(says("a")).encode()), STREAM]
)
def test_bodies_are_unpacked_and_streams_put_together(
    body: str | bytes, tmp_path: Path
) -> None:
    request = {**ASKED, "stream": body == STREAM}
    (run,) = the_runs(tmp_path, har((request, 200, body)))
    assert (run.answer, run.status) == ("a", "completed")
    assert "secret" not in repr(run)


def test_a_request_repeated_after_a_failure_is_an_attempt_after_a_reply_a_repeat(
    tmp_path: Path,
) -> None:
    failed, fine = (ASKED, 500, '{"error": {"message": "busy"}}'), reply(says("a"))
    runs = the_runs(tmp_path, har(failed, (ASKED, 200, fine), (ASKED, 200, fine)))
    assert [(len(r.exchanges), len(r.model_calls), r.repeat) for r in runs] == [
        (2, 1, 0),
        (1, 1, 1),
    ]
    (run,) = the_runs(tmp_path, har(failed))
    assert run.status == "model_error"
    assert run.error == "the endpoint answered 500: busy"


def test_conversations_that_ran_at_once_stay_apart(tmp_path: Path) -> None:
    def asked(question: str, *more: dict[str, Any]) -> dict[str, Any]:
        return {"model": "m", "messages": [user(question), *more]}

    asks, more = reply(calls("t")), (calls("t"), result("1"))
    entries = [
        (asked("a"), 200, asks),
        (asked("b"), 200, asks),
        (asked("a", *more), 200, reply(says("A"))),
        (asked("b", *more), 200, reply(says("B"))),
    ]
    runs = the_runs(tmp_path, har(*entries))
    assert [(r.question, r.answer, len(r.steps)) for r in runs] == [
        ("a", "A", 1),
        ("b", "B", 1),
    ]


def test_requests_that_are_no_chat_completions_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = har((ASKED, 200, "{}"), url="/v1/responses")
    with pytest.raises(UsageError, match="1 to /v1/responses"):
        the_runs(tmp_path, other)
    both = har((ASKED, 200, reply(says("a"))))
    both["log"]["entries"] += other["log"]["entries"]
    assert len(the_runs(tmp_path, both)) == 1
    assert "requests passed over: 1 to /v1/responses" in capsys.readouterr().err


def test_an_old_traceloop_span_has_its_messages_in_flat_attributes(
    tmp_path: Path,
) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "q",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "a",
        "gen_ai.completion.0.finish_reason": "length",
    }
    (run,) = the_runs(tmp_path, spans(attributes))
    assert (run.question, run.answer, run.status) == ("q", "a", "truncated")


def spans(attributes: dict[str, str]) -> Any:
    pairs = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
    span = {
        "traceId": "1", "spanId": "2", "name": "x", "attributes": pairs,
        "startTimeUnixNano": "1000000", "endTimeUnixNano": "2000000",
    }  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


# -------------------------------------------------------------------- what is not read

HAR = (SAMPLES / "mitmproxy.har").read_bytes()
YAML = (SAMPLES / "vcrpy.yaml").read_bytes()
STRANGE = {
    "prose": (b"my notes\n", FORMATS),
    "a number": (b"5\n", FORMATS),
    "another object": (b'{"a": 1}', FORMATS),
    "a list of numbers": (b"[1, 2]", FORMATS),
    "a HAR that is cut off": (HAR[: len(HAR) // 2], FORMATS),
    "a cassette that is cut off": (YAML[: len(YAML) // 2], FORMATS),
    "spans cut off at a line": (
        (SAMPLES / "otlp-traceloop.jsonl").read_bytes()[:4000],
        FORMATS,
    ),
    "YAML that is none": (b"interactions: [}", FORMATS),
    "YAML with an object": (
        b"interactions: !!python/object/apply:os.getcwd []\n",
        FORMATS,
    ),
    "a HAR entry of a wrong kind": (
        json.dumps({"log": {"entries": [5]}}).encode(),
        FORMATS,
    ),
    "a HAR with a body that is cut off": (
        json.dumps(har((ASKED, 200, gzip.compress(b"x" * 99)[:20]))).encode(),
        FORMATS,
    ),
    "deep": (b"[" * 100_000, FORMATS),
    "UTF-16": (HAR.decode().encode("utf-16"), "line 1: not UTF-8"),
    "GBK": (json.dumps([user("问")], ensure_ascii=False).encode("gbk"), "not UTF-8"),
    "spans of no model": (
        json.dumps(spans({"http.method": "GET"})).encode(),
        "none is a model call",
    ),
    "spans without messages": (
        json.dumps(spans({"gen_ai.operation.name": "chat"})).encode(),
        "CAPTURE_MESSAGE_CONTENT",
    ),
    "LangSmith runs of no model": (
        b'[{"run_type": "chain", "inputs": {}, "start_time": "2026-01-01T00:00:00"}]',
        "none is an llm",
    ),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_not_read_is_one_line_that_names_what_is(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, words = STRANGE[kind]
    path = written(tmp_path, data)
    for command in (
        ["diff", str(path), str(path)],
        ["report", str(path), "-o", str(tmp_path / "page.html")],
        ["replay", str(path)],
        ["export", str(path), "--to", "otlp", "-o", str(tmp_path / "out")],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"error: {path}")
        assert said.count("\n") == 1
        assert words in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["trace.json"]


def test_run_records_are_left_to_their_own_reader(tmp_path: Path) -> None:
    assert read(SAMPLES / "run.jsonl") is None
    assert read(written(tmp_path, b"")) is None
    assert read(written(tmp_path, {"schema": "agent-run/1"})) is None


# ----------------------------------------------------------------------------- writing

# What is lost of these runs is what docs/traces.md says: of an agent whose calls stand
# in text, OTLP loses a call that was not executed, messages how it ended without an
# answer.
LOST = {("temperature-0", "otlp"): 2, ("temperature-0", "messages"): 1}


@pytest.mark.parametrize("to", ["otlp", "messages"])
@pytest.mark.parametrize(
    "name",
    [
        "temperature-0-no-prompt-cache",
        pytest.param("temperature-0", marks=pytest.mark.slow),
        pytest.param("temperature-0.7", marks=pytest.mark.slow),
    ],
)
def test_what_is_written_is_read_as_the_same_runs(
    name: str, to: str, tmp_path: Path
) -> None:
    path, out = CASSETTES / f"qwen2.5-coder-1.5b-{name}.jsonl", tmp_path / "out"
    assert main(["export", str(path), "--to", to, "-o", str(out)]) == 0
    left, right = run_index([path]), run_index([out])
    pairs = [(left.read(asked), right.read(asked)) for asked in left.places]
    left.close()
    different = [a for a, b in pairs if compare(a, b) is not None]
    assert len(different) == LOST.get((name, to), 0)
    assert {run.protocol for run in different} <= {"text"}
    if to == "otlp":
        for a, b in pairs:
            if a.protocol == "tool_calls":
                assert executed(b) == executed(a)


def executed(run: Run) -> list[Step]:
    """The calls that were executed, less what a trace does not keep of them."""
    return [
        replace(step, arguments_text="", ungrounded=[])
        for step in run.steps
        if step.order is not None
    ]


def test_a_file_is_not_exported_over_itself(tmp_path: Path) -> None:
    path = written(tmp_path, [user("q"), says("a")])
    before = path.read_bytes()
    assert main(["export", str(path), "--to", "messages", "-o", str(path)]) == 2
    assert path.read_bytes() == before
