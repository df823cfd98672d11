"""The gateway, in front of real clients."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp
import openai
import pytest
from wire import (
    CHAT,
    DONE,
    HELLO,
    NAMES,
    ROOT,
    Keeps,
    Waits,
    before,
    client,
    says,
    send,
)

from equivalence.gateway import (
    Exchange,
    Gateway,
    HttpUpstream,
    OfflineModel,
    RunLog,
    Script,
)


def base_url(log: RunLog) -> str:
    assert isinstance(log.upstream, HttpUpstream)
    return log.upstream.base_url


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
from equivalence.gateway import Gateway, Script
from equivalence.gateway.upstreams import Reply

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
