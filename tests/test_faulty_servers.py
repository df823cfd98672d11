"""Servers that do what none should: each ends in bounded time, in one clear line."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from wire import (
    DONE,
    HELLO,
    WEATHER_TOOL,
    Keeps,
    before,
    implementations,
    send,
    watched,
)

from config import Settings
from equivalence.gateway import Gateway, HttpUpstream, Script
from equivalence.gateway.limits import DEEPEST, HEAVIEST
from equivalence.runs.hints import hint

pytestmark = pytest.mark.slow

REPLY = json.dumps({"choices": [{"message": {"content": "Final Answer: 晴"}}]}).encode()
Serve = Callable[[socket.socket], None]


@contextmanager
def serving(serve: Serve) -> Iterator[str]:
    """A server on loopback that does with each connection what it is told; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=one, args=(connection,)).start()

        def one(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536) or b"\r\n\r\n"
                head, _, body = data.partition(b"\r\n\r\n")
                length = (
                    head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
                )
                while length and len(body) < int(length):
                    body += connection.recv(65536)
                serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def answer(
    body: bytes = REPLY,
    status: str = "200 OK",
    kind: str = "application/json",
    **more: str,
) -> Serve:
    lines = [
        f"HTTP/1.1 {status}",
        f"content-type: {kind}",
        f"content-length: {len(body)}",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    head = "\r\n".join([*lines, "connection: close", "", ""]).encode()

    def serve(connection: socket.socket) -> None:
        connection.sendall(head + body)

    return serve


def raw(*data: bytes) -> Serve:
    return lambda connection: [connection.sendall(each) for each in data] and None


def endless(head: bytes, piece: bytes) -> Serve:
    def serve(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        while True:
            connection.sendall(piece)

    return serve


LONG = b"x" * 20_000
EVENT = b'data: {"choices": [{"delta": {"content": "' + LONG + b'"}}]}\n\n'


def bomb() -> bytes:
    """A body of 320 MB, made without having it in memory."""
    packer = zlib.compressobj(wbits=31)
    return b"".join(
        [*(packer.compress(b" " * HEAVIEST) for _ in range(20)), packer.flush()]
    )


FAULTS = {  # what is served; words of the one line, None for a reply that is good
    "good": (answer(), None),
    "gzip": (answer(gzip.compress(REPLY), content_encoding="gzip"), None),
    "a Location beside a good reply": (answer(location="/elsewhere"), None),
    "no content type": (answer(kind=""), None),
    "a content type outside ASCII": (answer(kind="приложение/json"), None),
    "an error of such a type": (
        answer(b"kaputt", "500 No", kind="приложение/json", x_should_retry="false"),
        "kaputt",
    ),
    "a page": (
        answer(b"<html>hi</html>", kind="text/html"),
        "not JSON: '<html>hi</html>'",
    ),
    "a page with 404": (
        answer(b"<html>404</html>", "404 Not Found", kind="text/html"),
        "answered 404: <html>404",
    ),
    "nothing": (raw(b""), "hung up without a word"),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH_9.6\r\n"), "what came back is not HTTP"),
    "half a body": (
        raw(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n", REPLY),
        "broke off: the connection ended before it did",
    ),
    "status 799": (answer(b"{}", "799 Odd"), "answered 799, which is no status"),
    "status 304": (raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "304"),
    "a redirect": (
        answer(b"", "302 Found", location="http://x/"),
        "has moved to http://x/",
    ),
    "larger than a reply can be": (answer(b" " * (HEAVIEST + 1)), "larger than 16 MB"),
    "a small gzip that becomes large": (
        answer(bomb(), content_encoding="gzip"),
        "larger than 16 MB",
    ),
    "an endless body": (
        endless(b"content-type: text/plain", b"x" * 65536),
        "larger than",
    ),
    "an endless stream": (
        endless(b"content-type: text/event-stream", EVENT),
        "larger than 16 MB",
    ),
    "too deep": (
        answer(b'{"choices": ' + b"[" * 500 + b"]" * 500 + b"}"),
        "nested more than 100 levels deep",
    ),
    "far too deep": (
        answer(b"[" * 200_000 + b"]" * 200_000),
        "nested more than 100 levels deep",
    ),
    "wait an hour": (
        answer(b'{"error": {"message": "slow down"}}', "429 No", retry_after="3600"),
        "answered 429: slow down",
    ),
    "wait until a date": (
        answer(
            b'{"error": {"message": "slow down"}}',
            "503 No",
            retry_after="Wed, 21 Oct 2099 07:28:00 GMT",
        ),
        "answered 503: slow down",
    ),
}


@pytest.mark.parametrize(("serve", "words"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_fault_is_one_line(
    serve: Serve, words: str | None, stream: bool, gateway: Gateway
) -> None:
    waits = "slow down" in (words or "")  # else repeating it takes only time
    settings = Settings(_env_file=None, stream=stream, retries=2 * waits)
    lines = []
    for implementation in FEW:
        with serving(serve) as url:
            upstream = HttpUpstream(url)
            run = watched(implementation, settings, gateway, "go", upstream).run
        lines.append((run.status, run.error and run.error.replace(url, "URL")))
        if words is None:
            assert run.status == "completed", run.error
        else:
            assert run.status == "model_error"
            assert words in (run.error or "")
            assert "\n" not in (run.error or "")
    assert len(set(lines)) == 1, "all alike"


FEW = [
    each
    for each in implementations.args[1]
    if each.name in ("stage1", "stage4", "stage5")
]


def test_a_server_that_is_not_there(
    gateway: Gateway, offline_settings: Settings
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    for implementation in FEW:
        run = watched(
            implementation, offline_settings, gateway, "go", HttpUpstream(url)
        ).run
        assert run.error == f"cannot reach {url}: connection refused"
        assert "Is the server running?" in (hint(run.error) or "")


def test_one_byte_a_second_ends_with_the_time_limit(offline_settings: Settings) -> None:
    left = threading.Event()

    def drop_by_drop(connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        )
        while not left.wait(0.05):
            connection.sendall(b" ")

    with (
        serving(drop_by_drop) as url,
        Gateway(HttpUpstream(url), timeout=0.5) as gateway,
    ):
        for stream in (False, True):
            settings = offline_settings.model_copy(update={"stream": stream})
            run = watched(FEW[1], settings, gateway, "go").run
            assert run.error == f"no reply from {url} within 0.5 s"
        left.set()


# ------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (5, "messages[1].tool_calls is 5, not a list of tool calls"),
        ("x", 'messages[1].tool_calls is "x", not a list of tool calls'),
        ([5], "messages[1].tool_calls[0] is 5, which is no tool call"),
        ([{"function": "x"}], "messages[1].tool_calls[0] is {"),
    ],
)
def test_an_odd_history_is_refused_with_what_is_odd(
    front: Gateway, calls: Any, words: str
) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": calls},
    ]
    with front.open_run() as run:
        reply = send(run.url, {"messages": messages})
    assert reply.status == 400
    assert reply.error.startswith(words)
    assert run.exchanges[0].status == 400


def test_a_request_has_a_depth(front: Gateway) -> None:
    for depth, status in ((DEEPEST - 10, 200), (DEEPEST + 10, 400), (100_000, 400)):
        nested = "[" * depth + "]" * depth
        body = f'{{"messages": [], "x": {nested}}}'.encode()
        with front.open_run() as run:
            reply = send(run.url, body)
        assert reply.status == status
    assert "nested more than 100 levels deep" in reply.error


def test_fields_that_a_server_does_not_take_stay_behind(
    front: Gateway, server: Gateway
) -> None:
    """What is null, and what belongs to tools where there are none."""
    body = {
        **HELLO,
        "stop": None,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "seed": 0,
    }
    upstream = Keeps(Script([DONE]))
    with before(server, upstream, front) as run:
        send(run.url, body)
        send(run.url, {**body, "tools": [WEATHER_TOOL]})
    bare, with_tools = upstream.requests
    assert bare == {**HELLO, "seed": 0}
    assert with_tools.keys() - bare.keys() == {
        "tools",
        "parallel_tool_calls",
        "tool_choice",
    }
    assert run.exchanges[0].request == body


@implementations
def test_a_setting_takes_a_field_out(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    """A server that refuses `stop`, and takes no field of tools without tools."""
    extra = {"stop": None, "temperature": None, "parallel_tool_calls": False}
    settings = offline_settings.model_copy(update={"extra_body": extra})
    upstream = Keeps(Script([{"message": {"content": "Final Answer: 晴"}}]))
    run = watched(implementation, settings, gateway, "go", upstream).run
    assert run.status == "completed"
    (request,) = upstream.requests
    assert not request.keys() & {"stop", "temperature"}
    assert ("parallel_tool_calls" in request) is ("tools" in request)


# ----------------------------------------------------------- addresses and proxies


def test_the_query_of_a_base_url_stays_behind_the_path_and_out_of_words(
    gateway: Gateway,
) -> None:
    def listen(connection: socket.socket) -> None:
        answer(b"{}", "500 No", x_should_retry="false")(connection)

    with serving(listen) as url:
        upstream = HttpUpstream(f"{url}?key=SECRET&api-version=1")
        assert str(upstream) == url
        with gateway.open_run(upstream) as run:
            send(run.url)
    assert "SECRET" not in repr(run.exchanges)
    with gateway.open_run(upstream) as run:
        reply = send(run.url)
    assert reply.error == f"cannot reach {url}: connection refused"


def test_no_netrc_no_proxy_for_loopback(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login me password it\n", encoding="utf-8")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with (
        serving(answer()) as url,
        gateway.open_run(HttpUpstream(url, "sk-own")) as run,
    ):
        assert send(run.url).status == 200


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_is_not_spoken_is_said_in_one_line(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "socks5://me:SECRET@127.0.0.1:1080")
    with gateway.open_run(HttpUpstream("http://model.invalid/v1")) as run:
        reply = send(run.url)
    assert reply.status == 502
    assert reply.error == (
        "the proxy socks5://127.0.0.1:1080 is of a kind that is not spoken here: set"
        " HTTP_PROXY to an http:// proxy, or NO_PROXY=model.invalid"
    )


HINTS = {
    "the endpoint answered 429: You exceeded your current quota": "no credit left",
    "the endpoint answered 402: Insufficient Balance": "no credit left",
    "the endpoint answered 429: Rate limit reached": "Too many requests",
    "the endpoint answered 401: bad key": "LLM_API_KEY",
    "the endpoint answered 404: no model x": "LLM_MODEL",
    "the model's server answered 200, but the reply is not JSON: '<html>'": "web page",
    "the endpoint answered 400: Unsupported parameter: 'stop'": '{"stop": null}',
    "the endpoint answered 400: x does not support tools": "stage 5",
    "cannot reach http://x/v1: connection refused": "Is the server running?",
    "the reply of http://x/v1 broke off: connection reset": "look at its log",
    "no reply from http://x/v1 within 5 s": "LLM_TIMEOUT",
}


@pytest.mark.parametrize(("error", "advice"), HINTS.items())
def test_what_to_do_about_it(error: str, advice: str) -> None:
    assert advice in (hint(error) or "")


@pytest.mark.slow
def test_20_000_requests_leave_the_memory_where_it_was() -> None:
    """At the address of nobody's run, with something kept of each."""
    import resource

    call = {
        "id": "a",
        "function": {"name": "get_weather", "arguments": "{}"},
        "sig": "x",
    }
    script = Script([{"message": {"content": None, "tool_calls": [call]}}])
    with Gateway(script) as gateway:

        def ask(first: int, last: int) -> int:
            for number in range(first, last):
                text = f"{number} " + "x" * 500
                body = {"messages": [{"role": "user", "content": text}]}
                send(gateway.url, {**body, "tools": [WEATHER_TOOL]})
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        warm, end = ask(0, 3_000), ask(3_000, 20_000)
    assert end - warm < 3_000, "KB"
