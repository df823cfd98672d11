"""The gateway's server: one port on loopback, many runs, each exchange recorded."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from equivalence.gateway.exchange import Exchange
from equivalence.gateway.repairs import Unusable, error_words, repair
from equivalence.gateway.run import Kept, OpenRun
from equivalence.gateway.streaming import merge_stream, to_stream
from equivalence.gateway.upstreams import LOOPBACK, Reply, Upstream, dump, error_reply


class Gateway:
    """A loopback OpenAI-compatible server in a thread of this process.

        with Gateway(upstream) as gateway, gateway.open_run() as run:
            …a client at run.url…
            run.exchanges

    Each run has an address of its own, which nobody can guess. A client that cannot be
    told one uses the standing address: its requests belong to the one run that is open
    there. It binds 127.0.0.1 only and keeps no key. It alone keeps the time limit of a
    reply, in seconds; None is no limit. `address` is that of `url`; None makes one up.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        port: int = 0,
        repair: bool = True,
        echo_reasoning: bool = False,
        timeout: float | None = None,
        address: str | None = None,
    ) -> None:
        self.upstream = upstream
        self.repair = repair
        self.echo_reasoning = echo_reasoning
        self.timeout = timeout
        self._runs: dict[str, OpenRun] = {}
        self._unrecorded = address or secrets.token_urlsafe(12)
        self._standing = secrets.token_urlsafe(12)
        self._standing_runs: list[OpenRun] = []
        self._socket = socket.socket()
        if sys.platform == "win32":  # there, SO_REUSEADDR lets another take the port
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen(128)  # what comes before the server is up waits here
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self._app(),
            lifespan="on",
            timeout_graceful_shutdown=1,
            log_config=None,
            log_level="critical",  # a reply scripted to break is no news
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.serve, name="gateway", daemon=True)

    def start(self) -> Gateway:
        """Serve in a thread of this process."""
        self._thread.start()
        return self

    def serve(self) -> None:
        """Serve in this thread until it is told to end."""
        self._server.run(sockets=[self._socket])

    def close(self) -> None:
        """End the server and the thread; open requests are dropped."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()

    def __enter__(self) -> Gateway:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The base URL under which requests are answered and nothing is recorded."""
        return self._url(f"/{self._unrecorded}")

    @property
    def standing_url(self) -> str:
        """The base URL for a client that cannot be told the address of a run."""
        return self._url(f"/{self._standing}")

    def _url(self, prefix: str) -> str:
        return f"http://127.0.0.1:{self.port}{prefix}/v1"

    def open_run(
        self,
        upstream: Upstream | None = None,
        *,
        kept: Kept | None = None,
        on_exchange: Callable[[Exchange], None] | None = None,
        standing: bool = False,
    ) -> OpenRun:
        """Open a run, until its `close`. `kept`: of the run whose conversation it
        continues. `on_exchange` is called with each exchange once it is complete, from
        the gateway's thread. `standing`: what comes to the standing address is its too;
        while two such runs are open, that address refuses."""
        address = secrets.token_urlsafe(12)
        run = OpenRun(
            address,
            self._url(f"/{address}"),
            upstream or self.upstream,
            kept=kept,
            on_exchange=on_exchange,
            forget=self._forget,
        )
        self._runs[address] = run
        if standing:
            self._standing_runs.append(run)
        return run

    def _forget(self, run: OpenRun) -> None:
        self._runs.pop(run.address, None)
        if run in self._standing_runs:
            self._standing_runs.remove(run)

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/{address}/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/{address}/v1/models", self._models),
            ],
            # A web page that names another host for loopback must not reach the key.
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK])],
            exception_handlers={404: _not_found},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        for upstream in {self.upstream, *(run.upstream for run in self._runs.values())}:
            await upstream.close()

    def _run_at(self, address: str) -> OpenRun | Reply:
        """The run of that address, or why there is none."""
        if address in self._runs:
            return self._runs[address]
        if address == self._unrecorded:
            return OpenRun(address, self.url, self.upstream, forget=self._forget)
        if address == self._standing:
            if len(self._standing_runs) == 1:
                return self._standing_runs[0]
            words = "no run is open at" if not self._standing_runs else "two runs share"
            return error_reply(
                409, f"{words} this address, so this request is nobody's", retry=False
            )
        words = "no run is open at this address: it has ended, or never was"
        return error_reply(410, words, retry=False)

    async def _models(self, http: Request) -> Response:
        run = self._run_at(http.path_params["address"])
        if isinstance(run, Reply):
            return _respond(run)
        return _respond(await run.upstream.models(http.headers.get("authorization")))

    async def _chat(self, http: Request) -> Response:
        run = self._run_at(http.path_params["address"])
        if isinstance(run, Reply):
            return _respond(run)
        try:
            body = await http.body()
        except ClientDisconnect:
            return _GONE
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            request = None
        kind = http.headers.get("content-type", "").lower()
        if not isinstance(request, dict) or not kind.startswith("application/json"):
            # The type matters: a web page can send text/plain here, but not JSON.
            return _respond(error_reply(400, "send a JSON object as application/json"))
        if run.closed:  # while the body was coming
            return _respond(error_reply(410, "the run has ended", retry=False))
        attempt = http.headers.get("x-stainless-retry-count", "")
        exchange = Exchange(
            request,
            attempt=int(attempt) if attempt.isdecimal() else 0,
            began=round(run.milliseconds(), 1),
            body=body,
        )
        run.exchanges.append(exchange)
        authorization = http.headers.get("authorization")
        work = asyncio.ensure_future(self._answer(run, exchange, authorization))
        watch = asyncio.ensure_future(_hung_up(http, work))
        done = await run.answering(work)
        watch.cancel()
        if not done:  # the client went away, or the run has ended
            return _GONE
        run.observed(exchange)
        return _respond(work.result())

    async def _answer(
        self, run: OpenRun, exchange: Exchange, authorization: str | None
    ) -> Reply:
        """Ask the upstream, fill the exchange, and return what is sent on."""
        try:
            request = self._with_kept(run.kept, exchange.request)
            async with asyncio.timeout(self.timeout):
                came = await run.upstream.answer(request, authorization)
        except TimeoutError:
            words = f"no reply from {run.upstream} within {self.timeout:g} s"
            came = error_reply(504, words, retry=False)
        except Exception as error:  # a bug on this side must not pass for the model's
            came = _own_failure(error)
        try:
            sent = take_in(came, exchange, repaired=self.repair)
        except Exception as error:
            sent = take_in(_own_failure(error), exchange, repaired=False)
        exchange.ms = round(run.milliseconds() - exchange.began, 1)
        self._keep(run.kept, exchange.reply)
        return sent

    def _with_kept(self, kept: Kept, request: dict[str, Any]) -> dict[str, Any]:
        """The request as it goes upstream: where a server wants a model's reasoning
        back, the assistant messages that clients strip of it get it again."""
        if not self.echo_reasoning or not kept.by_call:
            return request
        messages = [
            {**message, **kept.by_call.get(_first_call(message), {})}
            if isinstance(message, dict)
            else message
            for message in request.get("messages") or ()
        ]
        return {**request, "messages": messages}

    def _keep(self, kept: Kept, reply: Any) -> None:
        if not self.echo_reasoning:
            return
        try:
            message = reply["choices"][0]["message"]
        except (TypeError, LookupError):
            return  # an error, or, without repairs, anything
        reasoning = message.get("reasoning_content")
        if (first := _first_call(message)) and reasoning:
            kept.by_call[first] = {"reasoning_content": reasoning}


def _first_call(message: Any) -> str:
    """The id of the first call; "" for a message without calls: no server wants the
    reasoning of a finished answer back."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    first = calls[0] if isinstance(calls, list) and calls else None
    return str(first.get("id") or "") if isinstance(first, dict) else ""


async def _hung_up(http: Request, work: asyncio.Task[Any]) -> None:
    """Cancel the work when the client goes away: nobody would get the reply."""
    while (await http.receive())["type"] != "http.disconnect":
        pass
    work.cancel()


def _own_failure(error: Exception) -> Reply:
    words = f"the gateway itself failed, {type(error).__name__}: {error}"
    return error_reply(500, words, retry=False)


def take_in(came: Reply, exchange: Exchange, *, repaired: bool) -> Reply:
    """Fill the exchange from what came; return what is sent on."""
    sent = _repaired(came, exchange) if repaired else _as_it_came(came, exchange)
    exchange.status = sent.status
    return sent


def _repaired(came: Reply, exchange: Exchange) -> Reply:
    sent = _as_it_came(came, exchange)
    if came.cut:
        return sent
    if came.status >= 300:
        return _in_usual_shape(came, exchange)
    try:
        if isinstance(exchange.raw_reply, str):
            start = " ".join(exchange.raw_reply.split())[:200]
            raise Unusable(f"the reply is not JSON: {start!r}")
        whole, exchange.repairs = repair(exchange.raw_reply, exchange.request)
    except Unusable as problem:
        message = f"the model's server answered {came.status}, but {problem}"
        sent = error_reply(502, message, retry=False)
        exchange.reply = json.loads(sent.body)
        return sent
    exchange.reply = whole
    if exchange.request.get("stream") is True:
        return Reply(200, to_stream(whole, exchange.request), "text/event-stream")
    return Reply(200, dump(whole))


def _in_usual_shape(came: Reply, exchange: Exchange) -> Reply:
    """An error with its words where OpenAI has them and clients look for them."""
    words, usual = error_words(exchange.raw_reply)
    if usual or not words:
        return came
    exchange.repairs = ["error_shape"]
    sent = error_reply(came.status, words)
    exchange.reply = json.loads(sent.body)
    return replace(sent, headers=came.headers)


def _as_it_came(came: Reply, exchange: Exchange) -> Reply:
    text = came.body.decode("utf-8", "replace")
    try:
        streamed = came.content_type == "text/event-stream"
        exchange.raw_reply = merge_stream(text) if streamed else json.loads(text)
    except (ValueError, RecursionError):
        exchange.raw_reply = text
    exchange.raw_status = came.status
    exchange.reply = exchange.raw_reply
    return came


def _respond(reply: Reply) -> Response:
    if reply.cut:
        return _CutResponse(reply.body, reply.status)
    return Response(
        reply.body, reply.status, dict(reply.headers), media_type=reply.content_type
    )


_GONE = Response(status_code=499)
"""For a client that is not there any more."""


class _CutResponse(Response):
    """A reply that breaks off: half the promised bytes, then a closed line."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        half = self.body[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        raise ConnectionResetError("this reply was scripted to break")


def _not_found(http: Request, error: Exception) -> Response:
    message = f"{http.url.path} is not here; POST to /v1/chat/completions"
    return _respond(error_reply(404, message))
