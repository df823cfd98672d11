"""The gateway, in front of real clients."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from config import Settings
from equivalence.implementations import LADDER, load
from equivalence.observe import Observed, observe
from gateway import (
    Exchange,
    Gateway,
    HttpUpstream,
    OfflineModel,
    RunLog,
    Script,
    Upstream,
)
from gateway.streaming import merge_stream, to_stream
from gateway.upstreams import Reply
from tools import TOOLS

ROOT = Path(__file__).parent.parent
CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
DONE = {"message": {"content": "done"}}

implementations = pytest.mark.parametrize(
    "implementation", LADDER, ids=[entry.name for entry in LADDER]
)


NAMES = (f"run-{number}" for number in itertools.count())


@pytest.fixture
def front(gateway: Gateway) -> Gateway:
    """The gateway that a client talks to: it repairs, the offline model behind it."""
    return gateway


@pytest.fixture(scope="module")
def server() -> Iterator[Gateway]:
    """The endpoint behind it: it sends what a script says, to the letter."""
    with Gateway(OfflineModel(), repair=False) as running:
        yield running


def before(
    server: Gateway,
    script: Upstream,
    front: Gateway,
    key: str | None = None,
    timeout: float = 20,
) -> RunLog:
    """A run of `front` whose upstream is a run of `server` that plays the script."""
    behind = server.open_run(next(NAMES), script)
    upstream = HttpUpstream(server.url(behind.name), key, timeout)
    return front.open_run(next(NAMES), upstream)


def base_url(log: RunLog) -> str:
    assert isinstance(log.upstream, HttpUpstream)
    return log.upstream.base_url


class Answer:
    """What came back over a plain connection."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"]["message"])


def send(
    port: int,
    body: Any = HELLO,
    path: str = CHAT,
    method: str = "POST",
    **headers: str,
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"content-type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, data, {k: v for k, v in sent.items() if v})
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def says(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def client(gateway: Gateway, run: str | None = None, **more: Any) -> openai.OpenAI:
    more = {"max_retries": 0, "api_key": "client-key", **more}
    return openai.OpenAI(base_url=gateway.url(run), **more)


class Waits:
    """An upstream that never answers; `asked` is set when a request has arrived."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def models(self, authorization: str | None) -> Reply:
        raise RuntimeError("no models here")

    async def close(self) -> None:
        pass


class Keeps:
    """An upstream in front of another that keeps what it is asked."""

    def __init__(self, inner: Upstream) -> None:
        self.inner = inner
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.requests.append(request)
        self.keys.append(authorization)
        return await self.inner.answer(request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self.inner.models(authorization)

    async def close(self) -> None:
        await self.inner.close()


# ----------------------------------------------------------------- runs and records


def test_runs_are_kept_apart(front: Gateway) -> None:
    one, two = front.open_run("one"), front.open_run("two")
    for path, text in (
        ("/one" + CHAT, "a"),
        ("/two" + CHAT, "b"),
        (CHAT, "nobody's"),
        ("/three" + CHAT, "not opened"),
        ("/one" + CHAT, "c"),
    ):
        assert send(front.port, says(text), path).status == 200
    assert [e.request for e in one.exchanges] == [says("a"), says("c")]
    assert [e.request for e in two.exchanges] == [says("b")]


def test_a_run_opened_again_begins_empty(front: Gateway) -> None:
    old = front.open_run("one")
    send(front.port, says("a"), "/one" + CHAT)
    new = front.open_run("one")
    send(front.port, says("b"), "/one" + CHAT)
    assert [len(log.exchanges) for log in (old, new)] == [1, 1]
    assert new.exchanges[0].request == says("b")


def test_each_run_may_have_its_own_upstream(front: Gateway) -> None:
    front.open_run("scripted", Script([DONE]))
    scripted = send(front.port, path="/scripted" + CHAT).json
    assert scripted["choices"][0]["message"]["content"] == "done"
    assert send(front.port).json["choices"][0]["message"]["content"] != "done"


def test_an_exchange_holds_both_sides_to_the_letter(front: Gateway) -> None:
    body = '{"model":"m",  "messages": [{"role":"user","content":"\\u5317京 1e2"}]}'
    whole: list[Exchange] = []
    log = front.open_run("r", on_exchange=whole.append)
    answer = send(front.port, body.encode(), "/r" + CHAT)
    (exchange,) = log.exchanges
    assert exchange.body == body.encode()
    assert exchange.request == json.loads(body)
    assert exchange.reply == answer.json
    assert exchange.status == answer.status == 200
    assert exchange.repairs == []
    assert exchange.attempt == 0
    assert exchange.ms is not None
    assert 0 <= exchange.ms < 10_000
    assert whole == [exchange]


def test_both_the_raw_and_the_repaired_reply_are_recorded(front: Gateway) -> None:
    log = front.open_run("r", Script([{"message": {"content": "<think>a</think>b"}}]))
    sent = send(front.port, path="/r" + CHAT).json
    (exchange,) = log.exchanges
    raw = exchange.raw_reply["choices"][0]["message"]
    assert raw["content"] == "<think>a</think>b"
    assert exchange.reply == sent
    message = sent["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("b", "a")
    assert exchange.repairs == ["think_block"]


def test_the_attempts_of_the_client_are_numbered(front: Gateway) -> None:
    log = front.open_run("r", Script([{"status": 500}, {"status": 503}, DONE]))
    reply = client(front, "r", max_retries=2).chat.completions.create(**HELLO)
    assert reply.choices[0].message.content == "done"
    assert [e.attempt for e in log.exchanges] == [0, 1, 2]
    assert [e.status for e in log.exchanges] == [500, 503, 200]


@pytest.mark.parametrize("header", ["x", "-1", "1.5", "", "²"])
def test_an_odd_attempt_header_does_no_harm(front: Gateway, header: str) -> None:
    log = front.open_run("r")
    sent = header.encode().decode("latin-1")
    answer = send(front.port, path="/r" + CHAT, x_stainless_retry_count=sent)
    assert answer.status == 200
    assert log.exchanges[0].attempt == 0


def test_two_hundred_concurrent_requests_are_recorded_in_their_own_runs(
    front: Gateway,
) -> None:
    logs = [front.open_run(f"run-{number}") for number in range(200)]

    async def ask() -> list[Any]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one(number: int) -> Any:
                url = f"{front.url(f'run-{number}')}/chat/completions"
                async with session.post(url, json=says(f"{number} + 1000")) as reply:
                    return await reply.json()

            return await asyncio.gather(*map(one, range(200)))

    replies = asyncio.run(ask())
    for number, (log, reply) in enumerate(zip(logs, replies, strict=True)):
        (exchange,) = log.exchanges
        assert exchange.request == says(f"{number} + 1000")
        assert exchange.reply == reply


def test_many_threads_through_two_gateways(front: Gateway, server: Gateway) -> None:
    script = Script([{"body": {"choices": [{"message": {"content": "x"}}]}}])
    path = f"/{before(server, script, front).name}{CHAT}"
    with ThreadPoolExecutor(16) as pool:
        work = [pool.submit(send, front.port, path=path) for _ in range(64)]
    assert {job.result().status for job in work} == {200}
    assert script.answered == 64


# -------------------------------------------------------------- what it does not take


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/chat/completions", "/v1/completions", "/a/b/v1/chat/completions"],
)
def test_an_unknown_path_says_where_to_go(front: Gateway, path: str) -> None:
    answer = send(front.port, path=path)
    assert answer.status == 404
    assert path in answer.error
    assert CHAT in answer.error


def test_a_get_of_the_chat_path_is_refused(front: Gateway) -> None:
    assert send(front.port, b"", method="GET").status == 405


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b'{"messages": [',
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
    ids=lambda body: body[:12],
)
def test_what_is_no_json_object_is_refused(front: Gateway, body: bytes) -> None:
    log = front.open_run("r")
    answer = send(front.port, body, "/r" + CHAT)
    assert answer.status == 400
    assert "JSON object" in answer.error
    assert log.exchanges == []


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 400),
        ("application/x-www-form-urlencoded", 400),
        ("multipart/form-data", 400),
        ("", 400),
    ],
)
def test_a_web_page_cannot_send_what_is_taken(
    front: Gateway, kind: str, status: int
) -> None:
    """A page may send these types across origins without asking, but not JSON."""
    assert send(front.port, content_type=kind).status == status


def test_it_listens_on_loopback_only(front: Gateway) -> None:
    assert front.url().startswith("http://127.0.0.1:")
    assert send(front.port).status == 200
    with (  # another address of this machine, which a server on 0.0.0.0 would answer
        pytest.raises(OSError, match=r"refused|timed out|unreachable|requested"),
        socket.create_connection(("127.0.0.2", front.port), timeout=2),
    ):
        pass


@pytest.mark.parametrize(
    "messages",
    [["text"], [{"content": "no role"}], [None], [[]], "text", None, 5, [], {"a": 1}],
    ids=repr,
)
def test_a_strict_server_refuses_odd_messages_with_400(
    front: Gateway, messages: Any
) -> None:
    front.open_run("r", Script([DONE], strict=True))
    answer = send(front.port, {"messages": messages}, "/r" + CHAT)
    assert answer.status == 400
    assert "message" in answer.error


def test_a_failure_of_the_gateway_itself_says_so_and_asks_for_no_retry(
    front: Gateway,
) -> None:
    log = front.open_run("r", Script([{"nothing": "that a script knows"}]))
    with pytest.raises(openai.InternalServerError, match="gateway itself failed"):
        client(front, "r", max_retries=2).chat.completions.create(**HELLO)
    (exchange,) = log.exchanges
    assert exchange.status == 500
    assert "KeyError" in exchange.reply["error"]["message"]


# ------------------------------------------------------------------------- models


@pytest.mark.parametrize("run", [None, "models"])
def test_the_models(front: Gateway, run: str | None) -> None:
    front.open_run("models")
    assert [m.id for m in client(front, run).models.list()] == ["offline"]
    front.open_run("models", Script([DONE]))
    found = [m.id for m in client(front, run).models.list()]
    assert found == (["script"] if run else ["offline"])


def test_the_models_of_an_upstream(front: Gateway, server: Gateway) -> None:
    log = before(server, Script([DONE]), front)
    assert [m.id for m in client(front, log.name).models.list()] == ["script"]


# ------------------------------------------------------------ in front of an endpoint


@pytest.mark.parametrize(
    ("own", "clients", "arrives"),
    [
        ("sk-own", "", "Bearer sk-own"),
        ("sk-own", "Bearer sk-clients", "Bearer sk-own"),
        (None, "Bearer sk-clients", "Bearer sk-clients"),
        (None, "", None),
    ],
)
def test_the_key_goes_on_and_into_no_record(
    front: Gateway,
    server: Gateway,
    own: str | None,
    clients: str,
    arrives: str | None,
) -> None:
    upstream = Keeps(Script([DONE, {"status": 401, "body": {"error": "no"}}]))
    log = before(server, upstream, front, own)
    for status in (200, 401):
        path = f"/{log.name}{CHAT}"
        answer = send(front.port, path=path, authorization=clients)
        assert answer.status == status
    assert upstream.keys == [arrives, arrives]
    assert len(log.exchanges) == 2
    assert "sk-" not in repr(log.exchanges)
    assert b"sk-" not in answer.body


def test_an_upstream_that_is_down_is_one_clear_line(front: Gateway) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    log = front.open_run("down", HttpUpstream(url, "sk-secret", 20))
    answer = send(front.port, path="/down" + CHAT)
    assert answer.status == 502
    assert answer.error.startswith(f"cannot reach {url}: ")
    assert "\n" not in answer.error
    assert "sk-secret" not in answer.error
    assert log.exchanges[0].status == 502
    assert send(front.port, path="/down/v1/models", method="GET").status == 502


@pytest.mark.parametrize("host", ["no-such-host.invalid", "127.0.0.1:99999", "[::1"])
def test_an_address_that_cannot_be_is_one_clear_line(front: Gateway, host: str) -> None:
    log = front.open_run(next(NAMES), HttpUpstream(f"http://{host}/v1", None, 20))
    answer = send(front.port, path=f"/{log.name}{CHAT}")
    assert answer.status in (500, 502)
    assert "\n" not in answer.error


def test_an_upstream_that_breaks_off_is_a_502(front: Gateway, server: Gateway) -> None:
    log = before(server, Script([{**DONE, "cut": True}]), front)
    answer = send(front.port, path=f"/{log.name}{CHAT}")
    assert answer.status == 502
    assert answer.error.startswith(f"cannot reach {base_url(log)}: ")


def test_an_upstream_that_does_not_answer_is_a_504(
    front: Gateway, server: Gateway
) -> None:
    log = before(server, Waits(), front, timeout=0.2)
    answer = send(front.port, path=f"/{log.name}{CHAT}")
    assert answer.status == 504
    assert answer.error == f"no reply from {base_url(log)} within 0.2 s"
    assert log.exchanges[0].status == 504


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 422, 429, 500, 503])
@pytest.mark.parametrize("repair", [True, False])
def test_an_error_is_passed_on_as_it_came(
    front: Gateway, server: Gateway, status: int, repair: bool
) -> None:
    body = {"error": {"message": "模型过载", "code": status}}
    headers = {"retry-after": "7", "x-should-retry": "true"}
    item = {"status": status, "body": body, "headers": headers}
    first = front if repair else server
    log = before(server, Script([item]), first)
    answer = send(first.port, path=f"/{log.name}{CHAT}")
    assert (answer.status, answer.json) == (status, body)
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["x-should-retry"] == "true"
    assert log.exchanges[0].reply == log.exchanges[0].raw_reply == body


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_told_and_not_followed(
    front: Gateway, server: Gateway, status: int
) -> None:
    """Followed, a POST would become a GET, or the key go to another host."""
    elsewhere = server.open_run("elsewhere")
    headers = {"location": server.url("elsewhere") + "/chat/completions"}
    item = {"status": status, "body": {}, "headers": headers}
    log = before(server, Script([item]), front, "sk-own")
    answer = send(front.port, path=f"/{log.name}{CHAT}")
    with pytest.raises(openai.APIStatusError, match="has moved to"):
        client(front, log.name, max_retries=2).chat.completions.create(**HELLO)
    assert answer.status == status
    assert f"{base_url(log)} has moved to {headers['location']}" in answer.error
    assert elsewhere.exchanges == []
    assert len(log.exchanges) == 2


@pytest.mark.parametrize("body", ["<html>Bad gateway</html>", "", "{", {"a": 1}, []])
def test_a_200_without_a_reply_is_told_in_one_line(
    front: Gateway, server: Gateway, body: Any
) -> None:
    log = before(server, Script([{"body": body}]), front)
    answer = send(front.port, path=f"/{log.name}{CHAT}")
    with pytest.raises(openai.InternalServerError) as caught:
        client(front, log.name, max_retries=2).chat.completions.create(**HELLO)
    assert len(log.exchanges) == 2
    assert answer.status == 502
    assert answer.error.startswith("the model's server answered 200, but ")
    assert "\n" not in answer.error
    assert answer.error in str(caught.value)


# ----------------------------------------------------------------------- streaming


CALL = {
    "id": "a",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "北京"}'},
}
WEATHER_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object"}},
}


def streamed(gateway: Gateway, run: str | None = None, **more: Any) -> Any:
    """The chunks put together by hand: content, calls by index, finish, usage."""
    content, calls, finish, usage = "", {}, None, None
    request = {**HELLO, "stream": True, **more}
    for chunk in client(gateway, run).chat.completions.create(**request):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                known = calls.setdefault(call.index, [call.id, "", ""])
                known[1] += call.function.name or ""
                known[2] += call.function.arguments or ""
    return content, list(calls.values()), finish, usage


def test_the_offline_model_streams_what_it_says(front: Gateway) -> None:
    whole = client(front).chat.completions.create(**HELLO).choices[0]
    content, calls, finish, usage = streamed(front)
    assert content == whole.message.content != ""
    assert (calls, finish, usage) == ([], "stop", None)


def test_calls_are_streamed(front: Gateway) -> None:
    front.open_run("r", Script([{"message": {"content": None, "tool_calls": [CALL]}}]))
    content, calls, finish, _ = streamed(front, "r", tools=[WEATHER_TOOL])
    assert (content, finish) == ("", "tool_calls")
    assert calls == [["a", "get_weather", '{"city": "北京"}']]


PIECES = {
    "usual": [
        {"role": "assistant", "content": ""},
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ' "北京"}'}}]},
    ],
    "R75, no index": [
        {
            "tool_calls": [
                {"id": "a", "function": {"name": "get_weather", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"function": {"arguments": '{"city": "北京"}'}}]},
    ],
    "R75, null index": [
        {
            "tool_calls": [
                {
                    "index": None,
                    "id": "a",
                    "function": {"name": "get_weather", "arguments": ""},
                }
            ]
        },
        {
            "tool_calls": [
                {"index": None, "function": {"arguments": '{"city": "北京"}'}}
            ]
        },
    ],
    "R76, name repeated": [
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "a",
                    "function": {"name": "get_weather", "arguments": ""},
                }
            ]
        },
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "a",
                    "function": {
                        "name": "get_weather",
                        "arguments": '{"city": "北京"}',
                    },
                }
            ]
        },
    ],
    "in one piece": [{"tool_calls": [{"index": 0, **CALL}]}],
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("stream", [True, False])
def test_pieces_of_a_call_become_one_call(
    front: Gateway, pieces: Sequence[Any], stream: bool
) -> None:
    """Whether the client asked for a stream or, as some servers do, got one anyhow."""
    log = front.open_run("r", Script([{"stream": pieces}]))
    if stream:
        calls = streamed(front, "r", tools=[WEATHER_TOOL])[1]
    else:
        reply = client(front, "r").chat.completions.create(
            **HELLO, tools=[WEATHER_TOOL]
        )
        calls = [
            [call.id, call.function.name, call.function.arguments]
            for call in reply.choices[0].message.tool_calls
        ]
    assert [[c[0], c[1], json.loads(c[2])] for c in calls] == [
        ["a", "get_weather", {"city": "北京"}]
    ]
    assert log.exchanges[0].reply["choices"][0]["message"]["tool_calls"][0]["id"] == "a"


def test_parallel_calls_in_pieces_stay_two(front: Gateway) -> None:
    pieces = [
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "get_weather"}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": '{"city": "上海"}'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": "北京"}'}}]},
    ]
    front.open_run("r", Script([{"stream": pieces}]))
    assert streamed(front, "r", tools=[WEATHER_TOOL])[1] == [
        ["a", "get_weather", '{"city": "北京"}'],
        ["b", "get_weather", '{"city": "上海"}'],
    ]


def test_an_event_ends_at_a_line_end_and_nowhere_else(front: Gateway) -> None:
    text = "one\u2028two\u0085three\x1cfour\x0bfive"
    front.open_run("r", Script([{"stream": [{"content": text}]}]))
    assert streamed(front, "r")[0] == text
    whole = {
        "choices": [
            {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        ]
    }
    merged = merge_stream(to_stream(whole, {}).decode().replace("\n", "\r\n"))
    assert merged["choices"][0]["message"]["content"] == text


def test_usage_is_streamed_when_it_is_asked_for(front: Gateway) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    message = {"role": "assistant", "content": "x"}
    body = {"choices": [{"index": 0, "message": message}], "usage": usage}
    front.open_run("r", Script([{"body": body}]))
    assert streamed(front, "r")[3] is None
    found = streamed(front, "r", stream_options={"include_usage": True})[3]
    assert (found.prompt_tokens, found.total_tokens) == (3, 7)


def test_a_stream_is_passed_through_two_gateways(
    front: Gateway, server: Gateway
) -> None:
    log = before(server, Script([{"stream": PIECES["R75, no index"]}]), front)
    content, calls, _, _ = streamed(front, log.name, tools=[WEATHER_TOOL])
    assert calls == [["a", "get_weather", '{"city": "北京"}']]
    assert content == ""


def watched(
    implementation: Any,
    settings: Settings,
    gateway: Gateway,
    question: str,
    upstream: Upstream | None = None,
) -> Observed:
    agent = load(implementation.target)
    name = implementation.name
    return observe(name, agent, question, settings, gateway, TOOLS, upstream=upstream)


def offers_tools(implementation: Any, settings: Settings, gateway: Gateway) -> None:
    """Skip an implementation whose model has no tool calls."""
    seen = watched(implementation, settings, gateway, "hi", Script([DONE]))
    if "tools" not in seen.exchanges[0].request:
        pytest.skip("it offers its tools as text")


@implementations
def test_streaming_changes_nothing_but_the_stream(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    """R78: each tool once, and the same requests."""
    question = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
    whole, stream = (
        watched(
            implementation,
            offline_settings.model_copy(update={"stream": on}),
            gateway,
            question,
        )
        for on in (False, True)
    )
    assert whole.run.status == stream.run.status == "completed", stream.run.error
    assert whole.run.steps == stream.run.steps
    assert len(whole.run.steps) == 3
    assert whole.run.answer == stream.run.answer
    for one, other in zip(whole.exchanges, stream.exchanges, strict=True):
        assert one.request["stream"] is False
        assert other.request["stream"] is True
        assert {**one.request, "stream": True} == other.request


@implementations
@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_pieces_of_a_call_are_one_step_in_all(
    implementation: Any, pieces: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    settings = offline_settings.model_copy(update={"stream": True})
    offers_tools(implementation, settings, gateway)
    script = Script([{"stream": pieces}, {"stream": [{"content": "done"}]}])
    run = watched(implementation, settings, gateway, "go", script).run
    assert (run.status, run.answer, run.error) == ("completed", "done", None)
    (step,) = run.steps
    assert (step.tool, step.arguments, step.ok) == (
        "get_weather",
        {"city": "北京"},
        True,
    )


# ------------------------------------------------------------------------------ raw


@pytest.mark.parametrize(
    "body",
    [
        '{"b": 1,   "a": "\\u5317",\n "choices": null}',
        "<html>北京</html>",
        "",
        '{"choices": [{"message": {"content": "<think>x</think>y"}}]}',
    ],
)
def test_raw_passes_the_bytes_on(server: Gateway, body: str) -> None:
    log = before(server, Script([{"body": body}]), server)
    answer = send(server.port, path=f"/{log.name}{CHAT}")
    assert (answer.status, answer.body) == (200, body.encode())
    assert log.exchanges[0].repairs == []
    assert log.exchanges[0].reply == log.exchanges[0].raw_reply


def test_raw_passes_a_stream_on(server: Gateway) -> None:
    script = Script([{"stream": PIECES["R76, name repeated"]}])
    server.open_run("direct", script)
    log = before(server, script, server)
    direct, answer = (
        send(server.port, {**HELLO, "stream": True}, f"/{name}{CHAT}")
        for name in ("direct", log.name)
    )
    assert answer.body == direct.body
    assert answer.body.startswith(b"data: ")
    assert answer.headers["content-type"].startswith("text/event-stream")
    calls = log.exchanges[0].raw_reply["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["get_weather"]


# ---------------------------------------------------------------- reasoning sent back


def test_reasoning_goes_back_where_it_came_from_and_nowhere_else() -> None:
    calls = {"content": None, "tool_calls": [CALL], "reasoning_content": "想"}
    script = Keeps(
        Script(
            [
                {"message": calls},
                {"message": {"content": "sunny", "reasoning_content": "又想"}},
                DONE,
            ]
        )
    )
    with Gateway(script, echo_reasoning=True) as gateway:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
        ]
        for _ in range(3):
            body = {"messages": messages, "tools": [WEATHER_TOOL]}
            reply = send(gateway.port, body, "/one" + CHAT).json
            message = reply["choices"][0]["message"]
            message.pop("reasoning_content", None)  # as clients do
            messages.append(message)
            if message.get("tool_calls"):
                result = {"role": "tool", "tool_call_id": "a", "content": "晴"}
                messages.append(result)
            else:
                messages.append({"role": "user", "content": "again"})
        send(gateway.port, body, "/other" + CHAT)
    carried = [
        [message.get("reasoning_content") for message in request["messages"]]
        for request in script.requests
    ]
    assert carried[0] == [None, None]
    assert carried[1] == [None, None, "想", None]
    assert carried[2] == [None, None, "想", None, None, None]
    assert set(carried[3]) == {None}  # another run has not heard that reasoning


def test_without_the_switch_no_reasoning_goes_back(front: Gateway) -> None:
    calls = {"content": None, "tool_calls": [CALL], "reasoning_content": "想"}
    script = Keeps(Script([{"message": calls}, DONE]))
    front.open_run("r", script)
    body = {"messages": [], "tools": [WEATHER_TOOL]}
    first = send(front.port, body, "/r" + CHAT).json["choices"][0]["message"]
    first.pop("reasoning_content")
    send(front.port, {"messages": [first]}, "/r" + CHAT)
    assert "reasoning_content" not in script.requests[1]["messages"][0]


def test_raw_and_reasoning_bear_odd_replies_and_requests() -> None:
    odd = [{"choices": None}, {"choices": []}, [], {"choices": [{"message": "x"}]}]
    script = Script([{"body": body} for body in odd])
    with Gateway(script, repair=False, echo_reasoning=True) as front:
        for body in odd:
            messages = ["x", None, {"tool_calls": 5}, {"tool_calls": ["y"]}]
            assert send(front.port, {"messages": messages}).json == body


@pytest.fixture(scope="module")
def echoing() -> Iterator[Gateway]:
    with Gateway(OfflineModel(), echo_reasoning=True) as running:
        yield running


@implementations
@pytest.mark.parametrize("echo", [True, False])
def test_a_server_that_wants_its_reasoning_back(
    implementation: Any,
    echo: bool,
    gateway: Gateway,
    echoing: Gateway,
    offline_settings: Settings,
) -> None:
    """R37: with the switch all succeed, without it all fail with the server's words."""
    offers_tools(implementation, offline_settings, gateway)
    calls = {"content": None, "tool_calls": [CALL], "reasoning_content": "想"}
    script = Script([{"message": calls}, DONE], strict=True, require_reasoning="想")
    place = echoing if echo else gateway
    run = watched(implementation, offline_settings, place, "go", script).run
    if echo:
        assert (run.status, run.answer) == ("completed", "done")
    else:
        assert run.status == "model_error"
        assert "reasoning_content" in (run.error or "")
    assert len(run.exchanges) == 2


# ----------------------------------------------------- replies that break or never come


def test_a_reply_that_breaks_off(front: Gateway) -> None:
    log = front.open_run("r", Script([{**DONE, "cut": True}, DONE]))
    with pytest.raises(http.client.IncompleteRead):
        send(front.port, path="/r" + CHAT)
    assert send(front.port, path="/r" + CHAT).status == 200
    assert len(log.exchanges) == 2


def test_a_client_tries_again_after_a_reply_that_breaks_off(front: Gateway) -> None:
    log = front.open_run("r", Script([{**DONE, "cut": True}, DONE]))
    reply = client(front, "r", max_retries=1).chat.completions.create(**HELLO)
    assert reply.choices[0].message.content == "done"
    assert [e.attempt for e in log.exchanges] == [0, 1]


def test_a_client_may_lose_patience(front: Gateway) -> None:
    log = front.open_run("r", Script([{**DONE, "delay": 30}]))
    with pytest.raises(openai.APITimeoutError):
        client(front, "r", timeout=0.2).chat.completions.create(**HELLO)
    (exchange,) = log.exchanges
    assert (exchange.status, exchange.ms) == (None, None)


def test_closing_does_not_wait_for_an_open_request() -> None:
    waits = Waits()
    gateway = Gateway(waits).start()
    with ThreadPoolExecutor(1) as pool:
        open_request = pool.submit(send, gateway.port)
        assert waits.asked.wait(10)
        started = time.monotonic()
        gateway.close()
        assert time.monotonic() - started < 5
        failure = open_request.exception(timeout=5)
    assert failure or open_request.result().status >= 500
    with pytest.raises(OSError, match="refused"):
        send(gateway.port)


BROKEN = """
import http.client, json, threading
from gateway import Gateway, Script
from gateway.upstreams import Reply

def ask(gateway, run):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
    connection.request("POST", f"/{run}/v1/chat/completions", "{}",
                       {"content-type": "application/json"})
    try:
        return connection.getresponse().read()
    except OSError:
        return b""
    except http.client.HTTPException:
        return b""

class Late(Script):
    arrived = threading.Event()
    async def answer(self, request, authorization):
        self.arrived.set()
        return await super().answer(request, authorization)

with Gateway(Script([{}])) as gateway:
    gateway.open_run("cut", Script([{"message": {"content": "x"}, "cut": True}]))
    gateway.open_run("late", Late([{"message": {"content": "x"}, "delay": 60}]))
    ask(gateway, "cut")
    ask(gateway, "fails")
    thread = threading.Thread(target=ask, args=(gateway, "late"))
    thread.start()
    assert Late.arrived.wait(20)
thread.join()
"""


def test_whatever_breaks_nothing_is_printed() -> None:
    """A cut reply, a failure of its own, a request open at the end; in a process of
    its own, because pytest takes the log."""
    done = subprocess.run(
        [sys.executable, "-c", BROKEN],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_closing_twice_or_before_the_start_does_no_harm() -> None:
    gateway = Gateway(OfflineModel())
    gateway.close()
    with Gateway(OfflineModel()) as started:
        pass
    started.close()


# ------------------------------------------------------------------ python -m gateway


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LLM_")}
    return subprocess.Popen(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=ROOT / "docs" if (ROOT / "docs").is_dir() else ROOT,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def stop(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=20)


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout
    line = process.stdout.readline()
    found = re.match(r"http://127\.0\.0\.1:(\d+)/v1 -> ", line)
    assert found, line
    return int(found[1])


def test_the_gateway_alone_serves_until_ctrl_c() -> None:
    process = start("--port", "0")
    port = port_of(process)
    assert send(port, says("17 * 23")).status == 200
    assert send(port, path="/any/v1/models", method="GET").json["data"]
    assert send(port, b"x").status == 400
    out, err = stop(process)
    assert process.returncode in (0, 130)
    assert "Traceback" not in out + err
    assert err == "Requests are answered until Ctrl-C.\n"


def test_the_gateway_alone_ends_at_ctrl_c_with_a_request_open(server: Gateway) -> None:
    waits = Waits()
    server.open_run("waits", waits)
    with ThreadPoolExecutor(1) as pool:
        process = start("--port", "0", "--upstream", server.url("waits"))
        pending = pool.submit(send, port_of(process))
        assert waits.asked.wait(20)
        out, err = stop(process)
        pending.exception(timeout=20)
    assert process.returncode in (0, 130)
    assert "Traceback" not in out + err


@pytest.mark.parametrize("raw", [False, True])
def test_the_gateway_alone_in_front_of_an_endpoint(server: Gateway, raw: bool) -> None:
    script = Keeps(Script([{"message": {"content": "<think>a</think>b"}}]))
    server.open_run("behind", script)
    process = start(
        *("--port", "0", "--upstream", server.url("behind"), *(["--raw"] * raw)),
        LLM_API_KEY="sk-own",
    )
    message = send(port_of(process)).json["choices"][0]["message"]
    stop(process)
    assert message["content"] == ("<think>a</think>b" if raw else "b")
    assert script.keys == ["Bearer sk-own"]


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
