"""python -m equivalence probe: what it finds out about an endpoint, and its advice."""

from __future__ import annotations

import json
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest
from command_lines import ROOT
from probed import CALL, Recorded, Server
from wire import LADDER, Waits

from equivalence.cli import main
from equivalence.gateway import Gateway, Upstream
from equivalence.gateway.upstreams import Reply, dump, error_reply
from equivalence.probe.probe import MORE, REQUESTS, Findings, probe
from equivalence.runs.observe import observe
from equivalence.runs.upstreams import http_upstream, new_gateway
from equivalence.settings import Settings
from tools import TOOLS

pytestmark = pytest.mark.slow  # many requests each, and servers that are slow

TAGGED = '<tools>\n{"name": "get_weather", "arguments": {"city": "Beijing"}}\n</tools>'
FENCED = '```json\n{"name": "get_weather", "arguments": {"city": "Beijing"}}\n```'
PLAIN_FACE = {"one": FENCED, "two": f"{TAGGED}\n{TAGGED}"}
VLLM = (
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be'
    " set"
)


def found(server: Gateway, upstream: Upstream, **settings: Any) -> Findings:
    """What a probe finds in front of that upstream."""
    with server.open_run(upstream) as behind:
        return probe(
            Settings(base_url=behind.url, model="m", _env_file=None, **settings)
        )


def check(findings: Findings, name: str) -> tuple[str, str, str]:
    [one] = [each for each in findings.checks if each.name == name]
    return one.result, one.found, one.advice


def refusing(field: str, words: str) -> Any:
    """A server that does not take this field of a request."""
    return lambda request: words if field in request else None


def test_an_endpoint_that_can_all_of_it(server: Gateway) -> None:
    upstream = Server()
    findings = found(server, upstream)
    assert {each.name: each.result for each in findings.checks} == {
        "reachable": "yes",
        "key": "yes",
        "model": "yes",
        "context length": "unknown",
        "tool calls": "yes",
        "tool result": "yes",
        "parallel calls": "yes",
        "arguments": "yes",
        "ids": "yes",
        "finish reasons": "yes",
        "thinking": "yes",
        "streaming": "yes",
        "temperature 0": "yes",
        "text agents": "yes",
    }
    assert (findings.tool_calls, findings.text) == (True, True)
    assert findings.exit_code == 0
    assert findings.changed == {}
    assert findings.asked == REQUESTS == len(upstream.requests) + 1
    assert all(request["temperature"] == 0 for request in upstream.requests)


FORMS = {
    "structured": ({}, "tool calls", "yes", "structured"),
    "in a fence": (PLAIN_FACE, "tool calls", "note", "as text, in a ```json fence"),
    "in tags": ({"one": TAGGED}, "tool calls", "note", "as text, in <tools>"),
    "parallel in tags": (PLAIN_FACE, "parallel calls", "yes", "2 in one turn"),
    "one call a turn": (
        {"two": {"calls": [["get_weather", CALL]]}},
        "parallel calls",
        "note",
        "no: one call a turn",
    ),
    "made up": ({"one": "It is sunny."}, "tool calls", "no", "without the tool"),
    "in marks of nobody": (
        {"one": "<|odd|>get_weather => Beijing"},
        "tool calls",
        "no",
        "does not read",
    ),
    "seldom": (
        {"one": [{"calls": [["get_weather", CALL]]}, *["No."] * 4]},
        "tool calls",
        "note",
        "in 1 of 5 tries",
    ),
    "thought and said nothing": (
        {
            "one": {
                "content": "",
                "message": {"reasoning_content": "hm"},
                "finish_reason": "length",
            }
        },
        "tool calls",
        "no",
        "it thought, and then said nothing (ended as length)",
    ),
    "thinking in the text": (
        {"one": {"content": "<think>hm</think>", "calls": [["get_weather", CALL]]}},
        "thinking",
        "yes",
        "in a block at the beginning of the text",
    ),
    "thinking beside it": (
        {
            "one": {
                "calls": [["get_weather", CALL]],
                "content": None,
                "message": {"reasoning_content": "hm"},
            }
        },
        "thinking",
        "yes",
        "in the field reasoning_content; it is not wanted back",
    ),
    "ids missing": (
        {"one": {"calls": [["get_weather", CALL, None]]}},
        "ids",
        "note",
        "missing",
    ),
    "ids repeated": (
        {"one": {"calls": [["get_weather", CALL, "call_x"]]}},
        "ids",
        "note",
        "were used before",
    ),
    "ids of Mistral": (
        {"one": {"calls": [["get_weather", CALL, "a1B2c3D4e"]]}},
        "ids",
        "note",
        "9 letters and digits",
    ),
    "arguments as an object": (
        {"one": {"calls": [["get_weather", {"city": "Beijing"}]]}},
        "arguments",
        "note",
        "an object",
    ),
    "arguments in text twice": (
        {"one": {"calls": [["get_weather", json.dumps(CALL)]]}},
        "arguments",
        "note",
        "JSON text inside JSON text",
    ),
    "another finish reason": (
        {"one": {"calls": [["get_weather", CALL]], "finish_reason": "stop"}},
        "finish reasons",
        "note",
        "with calls: stop",
    ),
    "result not read": (
        {"result": "Sunny."},
        "tool result",
        "note",
        "not made from it",
    ),
    "result asked again": (
        {"result": {"calls": [["get_weather", CALL]]}},
        "tool result",
        "note",
        "again",
    ),
    "format not kept": ({"text": "Sunny."}, "text agents", "no", "Sunny."),
    "stop ignored": (
        {"text": 'Action: get_weather\nAction Input: {"city": "a"}\nObservation: 9'},
        "text agents",
        "note",
        "`stop` is ignored",
    ),
    "cold cache": (
        {"one": ["warm", *["cold"] * 5]},
        "temperature 0",
        "note",
        "a prompt cache that was cold",
    ),
    "not repeatable": (
        {"one": [f"answer {number}" for number in range(6)]},
        "temperature 0",
        "note",
        "4 different replies in 4 later tries",
    ),
}


@pytest.mark.parametrize(
    ("habits", "name", "result", "words"), FORMS.values(), ids=FORMS
)
def test_what_an_endpoint_does(
    server: Gateway, habits: dict[str, Any], name: str, result: str, words: str
) -> None:
    got, told, _ = check(found(server, Server(**habits)), name)
    assert got == result
    assert words in told


@pytest.mark.parametrize(
    ("entries", "result", "words"),
    [
        ([{"id": "m", "max_model_len": 40960}], "yes", "40960 tokens"),
        ([{"id": "other", "meta": {"n_ctx": 32768}}], "yes", "32768 tokens"),
        ([{"id": "m", "context_length": 4096}], "note", "4096 tokens, few"),
        ([{"id": "a", "n_ctx": 1}, {"id": "b", "n_ctx": 2}], "unknown", "not tell"),
    ],
    ids=["vLLM", "llama.cpp", "small", "of others"],
)
def test_the_context_length_is_that_of_the_model(
    server: Gateway, entries: list[dict[str, Any]], result: str, words: str
) -> None:
    listed = Reply(200, dump({"object": "list", "data": entries}))
    findings = found(server, Server(models=listed))
    got, told, _ = check(findings, "context length")
    assert (got, words in told) == (result, True)


FAILURES = {
    "wrong key": (error_reply(401, "bad key"), "key", "LLM_API_KEY", 3),
    "unknown model": (
        error_reply(404, "The model `m` does not exist."),
        "model",
        "Set LLM_MODEL to a model of the server: qwen3",
        3,
    ),
    "HTML": (
        Reply(200, b"<html>Welcome</html>", "text/html"),
        "reachable",
        "LLM_BASE_URL",
        3,
    ),
    "broken": (error_reply(500, "CUDA error", kind="server"), "reachable", "", 3),
}


class Always(Server):
    """An endpoint with one answer to everything, and a list of models."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(models=Reply(200, dump({"data": [{"id": "qwen3"}]})))
        self.reply = reply

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.requests.append(request)
        return self.reply


@pytest.mark.parametrize(
    ("reply", "name", "advice", "code"), FAILURES.values(), ids=FAILURES
)
def test_a_failure_is_one_line_with_the_setting_and_the_servers_words(
    server: Gateway, reply: Reply, name: str, advice: str, code: int
) -> None:
    upstream = Always(reply)
    findings = found(server, upstream)
    result, told, advised = check(findings, name)
    assert result != "yes"
    assert advice in advised
    words = reply.body.decode()
    if name != "reachable" or "CUDA" in words:
        words = json.loads(words)["error"]["message"]
    assert words.replace("\n", " ") in told
    assert "\n" not in told + advised
    assert findings.exit_code == code
    assert len(upstream.requests) == 1  # nobody asks such a server ten times


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    findings = probe(Settings(base_url=url, model="m", _env_file=None))
    result, told, advice = check(findings, "reachable")
    assert (result, findings.exit_code) == ("no", 3)
    assert f"cannot reach {url}" in told
    assert "Is the server running?" in advice


def test_a_server_that_is_too_slow(server: Gateway) -> None:
    class Slow(Waits):
        async def models(self, authorization: str | None) -> Reply:
            return error_reply(404, "none")

    findings = found(server, Slow(), timeout=0.2)
    result, told, advice = check(findings, "reachable")
    assert (result, findings.exit_code) == ("no", 3)
    assert "within 0.2 s" in told
    assert "LLM_TIMEOUT" in advice


def test_a_server_that_refuses_tools(server: Gateway) -> None:
    findings = found(server, Server(refuse=refusing("tools", VLLM)))
    result, told, advice = check(findings, "tool calls")
    assert result == "no"
    assert VLLM in told
    assert "--enable-auto-tool-choice --tool-call-parser" in advice
    assert (findings.tool_calls, findings.text) == (False, True)
    assert findings.exit_code == 1


def _reasoning_missing(request: dict[str, Any]) -> str | None:
    asked = [m for m in request["messages"] if m.get("tool_calls")]
    if all(m.get("reasoning_content") == "hm" for m in asked):
        return None
    return (
        "The `reasoning_content` in the thinking mode must be passed back to the API."
    )


def _gemini(request: dict[str, Any], field: str) -> Reply | None:
    if field not in request:
        return None
    words = f'Invalid JSON payload received. Unknown name "{field}": Cannot find field.'
    error = {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}
    return Reply(400, dump([{"error": error}]))


def _mistral(request: dict[str, Any], field: str) -> Reply | None:
    if field not in request:
        return None
    detail = {
        "type": "extra_forbidden",
        "loc": ["body", field],
        "msg": "Extra inputs are not permitted",
        "input": request[field],
    }
    told = {"object": "error", "message": {"detail": [detail]}, "param": None}
    return Reply(422, dump({**told, "type": "invalid_request_error", "code": None}))


THINKING = {
    "calls": [["get_weather", CALL]],
    "content": None,
    "message": {"reasoning_content": "hm"},
}
REFUSALS: dict[str, tuple[Server, dict[str, Any], dict[str, Any]]] = {
    "stop": (
        Server(refuse=refusing("stop", "Unsupported parameter: 'stop'")),
        {},
        {"extra_body": {"stop": None}},
    ),
    "temperature": (
        Server(refuse=refusing("temperature", "'temperature' does not support 0")),
        {},
        {"extra_body": {"temperature": None}},
    ),
    "two fields": (
        Server(
            refuse=lambda request: (
                "no temperature"
                if "temperature" in request
                else "no seed"
                if "seed" in request
                else None
            )
        ),
        {"seed": 7},
        {"extra_body": {"temperature": None, "seed": None}},
    ),
    "max_tokens": (
        Server(refuse=refusing("max_tokens", "use 'max_completion_tokens' instead")),
        {"max_tokens": 500},
        {"max_tokens_field": "max_completion_tokens"},
    ),
    "thinking without a stream": (
        Server(
            refuse=lambda request: (
                None
                if request.get("enable_thinking") is False
                else "parameter.enable_thinking must be set to false for non-streaming"
                " calls"
            )
        ),
        {},
        {"extra_body": {"enable_thinking": False}},
    ),
    "only streams": (
        Server(
            refuse=lambda request: (
                None if request.get("stream") else "This model only support stream mode"
            )
        ),
        {},
        {"stream": True},
    ),
    # Public reports of both: an error in a list; the words as a list of pydantic's.
    "in Gemini's words": (
        Server(refuse=lambda request: _gemini(request, "seed")),
        {"seed": 7},
        {"extra_body": {"seed": None}},
    ),
    "in Mistral's words": (
        Server(refuse=lambda request: _mistral(request, "seed")),
        {"seed": 7},
        {"extra_body": {"seed": None}},
    ),
    "the limit in Mistral's words": (
        Server(refuse=lambda request: _mistral(request, "max_completion_tokens")),
        {"max_tokens": 500, "max_tokens_field": "max_completion_tokens"},
        {"max_tokens_field": "max_tokens"},
    ),
    "reasoning wanted back": (
        Server(one=THINKING, refuse=_reasoning_missing),
        {},
        {"echo_reasoning": True},
    ),
}


@pytest.mark.parametrize(
    ("upstream", "settings", "changed"), REFUSALS.values(), ids=REFUSALS
)
def test_a_field_that_is_refused_becomes_a_setting_that_works(
    server: Gateway,
    upstream: Server,
    settings: dict[str, Any],
    changed: dict[str, Any],
) -> None:
    findings = found(server, upstream, **settings)
    assert findings.changed == changed
    assert (findings.tool_calls, findings.text) == (True, True)
    assert findings.asked <= REQUESTS + MORE
    assert f"LLM_{next(iter(changed)).upper()}=" in findings.environment()


def test_a_server_that_cannot_stream(server: Gateway) -> None:
    class Whole(Server):
        async def answer(self, request: dict[str, Any], key: str | None) -> Reply:
            return await super().answer({**request, "stream": False}, key)

    got, told, _ = check(found(server, Whole()), "streaming")
    assert (got, told) == ("note", "no: the reply comes whole")
    refuse = lambda request: "no streams here" if request.get("stream") else None  # noqa: E731
    findings = found(server, Server(refuse=refuse))
    got, told, advice = check(findings, "streaming")
    assert (got, "no streams here" in told) == ("no", True)
    assert advice == "Leave LLM_STREAM off."
    assert findings.exit_code == 0


def test_a_setting_that_does_not_help_is_not_advised(server: Gateway) -> None:
    refuse = lambda request: "temperature, stop and seed are all wrong"  # noqa: E731
    findings = found(server, Server(refuse=refuse), seed=1)
    assert findings.changed == {}
    assert findings.exit_code == 3
    assert findings.asked <= REQUESTS + MORE


def test_the_key_goes_to_the_server_and_nowhere_else(
    server: Gateway, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream = Server()
    findings = found(server, upstream, api_key="sk-secret")
    assert {*upstream.keys} == {"Bearer sk-secret"}
    assert "sk-secret" not in repr(findings) + findings.environment()


@pytest.mark.parametrize(
    ("habits", "works"),
    [
        ({}, True),
        (PLAIN_FACE, True),
        ({"result": {"calls": [["get_weather", CALL]]}}, True),
        ({"one": "It is sunny."}, False),
    ],
    ids=["structured", "as text", "asks again", "none"],
)
def test_the_last_line_says_who_will_work(
    server: Gateway,
    habits: dict[str, Any],
    works: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    with server.open_run(Server(**habits)) as behind:
        code = main(["probe", "--base-url", behind.url, "--model", "m"])
    lines = capsys.readouterr().out.splitlines()
    assert f"{REQUESTS} requests, at most {REQUESTS + MORE}" in lines[0]
    calling = ", ".join(e.name for e in LADDER if e.protocol == "tool_calls")
    with_settings = f"with LLM_BASE_URL={behind.url} LLM_MODEL=m"
    if works:
        assert code == 0
        minded = "; mind the tool result" if "result" in habits else ""
        assert lines[-1] == f"will work: {calling}, stage5, {with_settings}{minded}"
    else:
        assert code == 1
        assert lines[-1].startswith(f"will work: stage5, {with_settings}; will not:")


def test_as_json(
    server: Gateway,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    with server.open_run(Server(**PLAIN_FACE)) as behind:
        main(["probe", "--base-url", behind.url, "--model", "m", "--json"])
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["implementations"] == {each.name: True for each in LADDER}
    assert document["requests"] == REQUESTS
    assert len(document["exchanges"]) == REQUESTS - 1
    assert "text_tool_call" in document["exchanges"][0]["repairs"]
    assert "will work" in captured.err


def test_without_an_endpoint_it_says_which_settings_name_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe"]) == 2
    error = capsys.readouterr().err
    assert "LLM_BASE_URL" in error
    assert error.count("\n") == 1


# ------------------------------------------------------- the two faces of a real model

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("probe_*.json"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_a_recorded_endpoint_is_found_to_be_what_it_was(
    server: Gateway, file: Path
) -> None:
    upstream = Recorded(file)
    with server.open_run(upstream) as behind:
        model = upstream.document["model"]
        again = probe(Settings(base_url=behind.url, model=model, _env_file=None))
    told = {each.name: (each.result, each.found) for each in again.checks}
    assert told == {
        each["name"]: (each["result"], each["found"])
        for each in upstream.document["checks"]
    }
    assert upstream.left == []


def test_the_two_faces_of_one_model_are_told_apart() -> None:
    assert [path.stem for path in EXAMPLES] == ["probe_as_text", "probe_structured"]
    as_text, structured = (json.loads(path.read_text("utf-8")) for path in EXAMPLES)

    def calls(document: dict[str, Any]) -> str:
        [one] = [c for c in document["checks"] if c["name"] == "tool calls"]
        return str(one["found"])

    assert calls(structured).startswith("structured")
    assert calls(as_text).startswith("as text")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stop", "temperature", "reasoning wanted back"])
def test_the_advice_works_when_it_is_followed(server: Gateway, name: str) -> None:
    """Every implementation completes a run with the advised settings, none of those
    that it concerns without them."""
    upstream, _, _ = REFUSALS[name]
    advised = {
        word.partition("=")[0].removeprefix("LLM_").lower(): word.partition("=")[2]
        for word in shlex.split(found(server, upstream).environment())
    }
    values = {
        key: json.loads(value) if value[:1] in "{tf" else value
        for key, value in advised.items()
        if key not in ("base_url", "model")
    }
    for implementation in LADDER:
        if (implementation.protocol == "text") != (name == "stop"):
            continue
        if implementation.protocol == "text":
            upstream = Server(
                refuse=upstream.refuse,
                plain="Final Answer: done",
                text="Final Answer: d",
            )
        with server.open_run(upstream) as behind:
            for more, status in ((values, "completed"), ({}, "model_error")):
                settings = Settings(
                    base_url=behind.url, model="m", retries=0, _env_file=None, **more
                )
                with new_gateway(settings, http_upstream(settings)) as gateway:
                    run = observe(
                        implementation, "北京天气怎么样？", settings, gateway, TOOLS
                    ).run
                assert run.status == status, (implementation.name, more, run.error)
