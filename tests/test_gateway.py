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
    DONE,
    HELLO,
    ROOT,
    Keeps,
    Waits,
    before,
    client,
    says,
    send,
)

from equivalence.gateway import Exchange, Gateway, HttpUpstream, OpenRun, Script
from offline_model import OfflineModel


def base_url(run: OpenRun) -> str:
    assert isinstance(run.upstream, HttpUpstream)
    return run.upstream.base_url


# ----------------------------------------------------------------- runs and records


def test_runs_are_kept_apart(front: Gateway) -> None:
    with front.open_run() as one, front.open_run() as two:
        for url, text in (
            (one.url, "a"),
            (two.url, "b"),
            (front.url, "nobody's"),
            (one.url, "c"),
        ):
            assert send(url, says(text)).status == 200
    assert [e.request for e in one.exchanges] == [says("a"), says("c")]
    assert [e.request for e in two.exchanges] == [says("b")]


def test_an_address_answers_from_the_opening_of_its_run_to_its_end(
    front: Gateway,
) -> None:
    with front.open_run() as run:
        assert send(run.url).status == 200
    for url in (run.url, front.url.replace("/v1", "x/v1")):
        answer = send(url)
        assert answer.status == 410
        assert answer.headers["x-should-retry"] == "false"
        assert "no run is open at this address" in answer.error
    assert len(run.exchanges) == 1


def test_what_is_under_way_ends_with_its_run(front: Gateway) -> None:
    waits = Waits()
    with ThreadPoolExecutor(1) as pool:
        with front.open_run(waits) as run:
            under_way = pool.submit(send, run.url)
            assert waits.asked.wait(10)
        assert under_way.result(timeout=10).status == 499
    (exchange,) = run.exchanges
    assert (exchange.status, exchange.ms) == (None, None)


def test_the_standing_address_is_that_of_the_one_run_open(front: Gateway) -> None:
    assert send(front.standing_url).status == 409
    with front.open_run(standing=True) as run:
        assert send(front.standing_url).status == 200
        with front.open_run(standing=True) as other:
            answer = send(front.standing_url)
            assert (answer.status, "two runs" in answer.error) == (409, True)
    assert (len(run.exchanges), len(other.exchanges)) == (1, 0)


def test_each_run_may_have_its_own_upstream(front: Gateway) -> None:
    with front.open_run(Script([DONE])) as run:
        scripted = send(run.url).json
    assert scripted["choices"][0]["message"]["content"] == "done"
    assert send(front.url).json["choices"][0]["message"]["content"] != "done"


def test_an_exchange_holds_both_sides_to_the_letter(front: Gateway) -> None:
    body = '{"model":"m",  "messages": [{"role":"user","content":"\\u5317京 1e2"}]}'
    whole: list[Exchange] = []
    run = front.open_run(on_exchange=whole.append)
    answer = send(run.url, body.encode())
    (exchange,) = run.exchanges
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
    run = front.open_run(Script([{"message": {"content": "<think>a</think>b"}}]))
    sent = send(run.url).json
    (exchange,) = run.exchanges
    raw = exchange.raw_reply["choices"][0]["message"]
    assert raw["content"] == "<think>a</think>b"
    assert exchange.reply == sent
    message = sent["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("b", "a")
    assert exchange.repairs == ["think_block"]


def test_the_attempts_of_the_client_are_numbered(front: Gateway) -> None:
    run = front.open_run(Script([{"status": 500}, {"status": 503}, DONE]))
    reply = client(run, max_retries=2).chat.completions.create(**HELLO)
    assert reply.choices[0].message.content == "done"
    assert [e.attempt for e in run.exchanges] == [0, 1, 2]
    assert [e.status for e in run.exchanges] == [500, 503, 200]


@pytest.mark.parametrize("header", ["x", "-1", "1.5", "", "²"])
def test_an_odd_attempt_header_does_no_harm(front: Gateway, header: str) -> None:
    run = front.open_run()
    sent = header.encode().decode("latin-1")
    answer = send(run.url, x_stainless_retry_count=sent)
    assert answer.status == 200
    assert run.exchanges[0].attempt == 0


def test_two_hundred_concurrent_requests_are_recorded_in_their_own_runs(
    front: Gateway,
) -> None:
    runs = [front.open_run() for _ in range(200)]

    async def ask() -> list[Any]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one(number: int) -> Any:
                url = f"{runs[number].url}/chat/completions"
                async with session.post(url, json=says(f"{number} + 1000")) as reply:
                    return await reply.json()

            return await asyncio.gather(*map(one, range(200)))

    replies = asyncio.run(ask())
    for number, (run, reply) in enumerate(zip(runs, replies, strict=True)):
        run.close()
        (exchange,) = run.exchanges
        assert exchange.request == says(f"{number} + 1000")
        assert exchange.reply == reply


def test_many_threads_through_two_gateways(front: Gateway, server: Gateway) -> None:
    script = Script([{"body": {"choices": [{"message": {"content": "x"}}]}}])
    with before(server, script, front) as run, ThreadPoolExecutor(16) as pool:
        work = [pool.submit(send, run.url) for _ in range(64)]
    assert {job.result().status for job in work} == {200}
    assert script.answered == 64


# -------------------------------------------------------------- what it does not take


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/chat/completions", "/v1/completions", "/a/b/v1/chat/completions"],
)
def test_an_unknown_path_says_where_to_go(front: Gateway, path: str) -> None:
    answer = send(f"http://127.0.0.1:{front.port}", path=path)
    assert answer.status == 404
    assert path in answer.error
    assert "POST to /v1/chat/completions" in answer.error


def test_a_get_of_the_chat_path_is_refused(front: Gateway) -> None:
    assert send(front.url, b"", method="GET").status == 405


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
    ],
    ids=lambda body: body[:12],
)
def test_what_is_no_json_object_is_refused(front: Gateway, body: bytes) -> None:
    run = front.open_run()
    answer = send(run.url, body)
    assert answer.status == 400
    assert "JSON object" in answer.error
    assert run.exchanges == []


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
    assert send(front.url, content_type=kind).status == status


def test_it_listens_on_loopback_only(front: Gateway) -> None:
    assert front.url.startswith("http://127.0.0.1:")
    assert send(front.url).status == 200
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
    run = front.open_run(Script([DONE], strict=True))
    answer = send(run.url, {"messages": messages})
    assert answer.status == 400
    assert "message" in answer.error


def test_a_failure_of_the_gateway_itself_says_so_and_asks_for_no_retry(
    front: Gateway,
) -> None:
    run = front.open_run(Script([{"nothing": "that a script knows"}]))
    with pytest.raises(openai.InternalServerError, match="gateway itself failed"):
        client(run, max_retries=2).chat.completions.create(**HELLO)
    (exchange,) = run.exchanges
    assert exchange.status == 500
    assert "KeyError" in exchange.reply["error"]["message"]


# ------------------------------------------------------------------------- models


def test_the_models(front: Gateway) -> None:
    with front.open_run() as run:
        assert [m.id for m in client(run).models.list()] == ["offline"]
    with front.open_run(Script([DONE])) as run:
        assert [m.id for m in client(run).models.list()] == ["script"]


def test_the_models_of_an_upstream(front: Gateway, server: Gateway) -> None:
    with before(server, Script([DONE]), front) as run:
        assert [m.id for m in client(run).models.list()] == ["script"]


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
    with before(server, upstream, front, own) as run:
        for status in (200, 401):
            answer = send(run.url, authorization=clients)
            assert answer.status == status
        assert upstream.keys == [arrives, arrives]
        assert len(run.exchanges) == 2
        assert "sk-" not in repr(run.exchanges)
        assert b"sk-" not in answer.body


def test_an_upstream_that_is_down_is_one_clear_line(front: Gateway) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    run = front.open_run(HttpUpstream(url, "sk-secret"))
    answer = send(run.url)
    assert answer.status == 502
    assert answer.error.startswith(f"cannot reach {url}: ")
    assert "\n" not in answer.error
    assert "sk-secret" not in answer.error
    assert run.exchanges[0].status == 502
    assert send(run.url, path="/models", method="GET").status == 502


@pytest.mark.parametrize("host", ["no-such-host.invalid", "127.0.0.1:99999", "[::1"])
def test_an_address_that_cannot_be_is_one_clear_line(front: Gateway, host: str) -> None:
    run = front.open_run(HttpUpstream(f"http://{host}/v1"))
    answer = send(run.url)
    assert answer.status in (500, 502)
    assert "\n" not in answer.error


def test_an_upstream_that_breaks_off_is_a_502(front: Gateway, server: Gateway) -> None:
    with before(server, Script([{**DONE, "cut": True}]), front) as run:
        answer = send(run.url)
        assert answer.status == 502
        words = "broke off: the connection ended before it did"
        assert answer.error == f"the reply of {base_url(run)} {words}"


def test_an_upstream_that_does_not_answer_is_a_504(
    server: Gateway,
) -> None:
    with (
        Gateway(OfflineModel(), timeout=0.2) as front,
        before(server, Waits(), front) as run,
    ):
        answer = send(run.url)
        assert answer.status == 504
        assert answer.error == f"no reply from {base_url(run)} within 0.2 s"
        assert run.exchanges[0].status == 504


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 422, 429, 500, 503])
@pytest.mark.parametrize("repair", [True, False])
def test_an_error_is_passed_on_as_it_came(
    front: Gateway, server: Gateway, status: int, repair: bool
) -> None:
    body = {"error": {"message": "模型过载", "code": status}}
    headers = {"retry-after": "7", "x-should-retry": "true"}
    item = {"status": status, "body": body, "headers": headers}
    first = front if repair else server
    with before(server, Script([item]), first) as run:
        answer = send(run.url)
        assert (answer.status, answer.json) == (status, body)
        assert answer.headers["retry-after"] == "7"
        assert answer.headers["x-should-retry"] == "true"
        assert run.exchanges[0].reply == run.exchanges[0].raw_reply == body


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_told_and_not_followed(
    front: Gateway, server: Gateway, status: int
) -> None:
    """Followed, a POST would become a GET, or the key go to another host."""
    elsewhere = server.open_run()
    headers = {"location": elsewhere.url + "/chat/completions"}
    item = {"status": status, "body": {}, "headers": headers}
    with before(server, Script([item]), front, "sk-own") as run:
        answer = send(run.url)
        with pytest.raises(openai.APIStatusError, match="has moved to"):
            client(run, max_retries=2).chat.completions.create(**HELLO)
        assert answer.status == status
        assert f"{base_url(run)} has moved to {headers['location']}" in answer.error
        assert elsewhere.exchanges == []
        assert len(run.exchanges) == 2


@pytest.mark.parametrize("body", ["<html>Bad gateway</html>", "", "{", {"a": 1}, []])
def test_a_200_without_a_reply_is_told_in_one_line(
    front: Gateway, server: Gateway, body: Any
) -> None:
    with before(server, Script([{"body": body}]), front) as run:
        answer = send(run.url)
        with pytest.raises(openai.InternalServerError) as caught:
            client(run, max_retries=2).chat.completions.create(**HELLO)
        assert len(run.exchanges) == 2
        assert answer.status == 502
        assert answer.error.startswith("the model's server answered 200, but ")
        assert "\n" not in answer.error
        assert answer.error in str(caught.value)


# ----------------------------------------------------- replies that break or never come


def test_a_reply_that_breaks_off(front: Gateway) -> None:
    run = front.open_run(Script([{**DONE, "cut": True}, DONE]))
    with pytest.raises(http.client.IncompleteRead):
        send(run.url)
    assert send(run.url).status == 200
    assert len(run.exchanges) == 2


def test_a_client_tries_again_after_a_reply_that_breaks_off(front: Gateway) -> None:
    run = front.open_run(Script([{**DONE, "cut": True}, DONE]))
    reply = client(run, max_retries=1).chat.completions.create(**HELLO)
    assert reply.choices[0].message.content == "done"
    assert [e.attempt for e in run.exchanges] == [0, 1]


def test_a_client_may_lose_patience(front: Gateway) -> None:
    run = front.open_run(Script([{**DONE, "delay": 30}]))
    with pytest.raises(openai.APITimeoutError):
        client(run, timeout=0.2).chat.completions.create(**HELLO)
    (exchange,) = run.exchanges
    assert (exchange.status, exchange.ms) == (None, None)


def test_closing_does_not_wait_for_an_open_request() -> None:
    waits = Waits()
    gateway = Gateway(waits).start()
    with ThreadPoolExecutor(1) as pool:
        open_request = pool.submit(send, gateway.url)
        assert waits.asked.wait(10)
        started = time.monotonic()
        gateway.close()
        assert time.monotonic() - started < 5
        failure = open_request.exception(timeout=5)
    assert failure or open_request.result().status >= 500
    with pytest.raises(OSError, match="refused"):
        send(gateway.url)


BROKEN = """
import http.client, threading
from urllib.parse import urlsplit
from equivalence.gateway import Gateway, Script

def ask(run):
    address = urlsplit(run.url)
    connection = http.client.HTTPConnection(address.netloc)
    connection.request("POST", address.path + "/chat/completions", "{}",
                       {"content-type": "application/json"})
    try:
        return connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return b""

class Late(Script):
    arrived = threading.Event()
    async def answer(self, request, authorization):
        self.arrived.set()
        return await super().answer(request, authorization)

with Gateway(Script([{}])) as gateway:
    cut = gateway.open_run(Script([{"message": {"content": "x"}, "cut": True}]))
    late = gateway.open_run(Late([{"message": {"content": "x"}, "delay": 60}]))
    ask(cut)
    ask(gateway.open_run())
    thread = threading.Thread(target=ask, args=(late,))
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
