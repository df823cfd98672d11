"""The gateway's server: one port on loopback, many runs, each exchange recorded."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.repairs import Unusable, error_words, repair
from gateway.streaming import merge_stream, to_stream
from gateway.upstreams import LOOPBACK, Reply, Upstream, dump, error_reply


@dataclass
class Exchange:
    """One request to the model and what came back; `ms` is None while it is open."""

    request: dict[str, Any]
    """As the implementation sent it."""
    body: bytes
    """The same, byte for byte."""
    attempt: int = 0
    """How often the client had tried this request before."""
    raw_reply: Any = None
    """What the upstream answered: a JSON value, or text where it was none."""
    raw_status: int | None = None
    """The status with which it did."""
    reply: Any = None
    """What the implementation got: the repaired reply, or the error body."""
    status: int | None = None
    repairs: list[str] = field(default_factory=list)
    ms: float | None = None


@dataclass
class RunLog:
    """The exchanges of one run, in order, and what answers them."""

    name: str
    upstream: Upstream
    exchanges: list[Exchange] = field(default_factory=list)
    on_exchange: Callable[[Exchange], None] | None = None
    """Called with each exchange once it is complete, from the gateway's thread."""


class Gateway:
    """A loopback OpenAI-compatible server in a thread of this process.

        with Gateway(OfflineModel()) as gateway:
            log = gateway.open_run("stage3")
            …a client at gateway.url("stage3")…
            log.exchanges

    Requests under a name that no run has opened are answered but not recorded. It binds
    127.0.0.1 only and keeps no key.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        port: int = 0,
        repair: bool = True,
        echo_reasoning: bool = False,
    ) -> None:
        self.upstream = upstream
        self.repair = repair
        self.echo_reasoning = echo_reasoning
        self._runs: dict[str, RunLog] = {}
        self._reasoning: dict[str, str] = {}
        self._socket = socket.socket()
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

    def url(self, run: str | None = None) -> str:
        """Return the base URL for the clients of the run."""
        prefix = f"/{run}" if run else ""
        return f"http://127.0.0.1:{self.port}{prefix}/v1"

    def open_run(
        self,
        name: str,
        upstream: Upstream | None = None,
        on_exchange: Callable[[Exchange], None] | None = None,
    ) -> RunLog:
        """Begin an empty log under the name; a former run of that name is let go."""
        run = RunLog(name, upstream or self.upstream, on_exchange=on_exchange)
        self._runs[name] = run
        return run

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/{run}/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/{run}/v1/models", self._models),
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

    async def _models(self, http: Request) -> Response:
        run = self._runs.get(http.path_params.get("run", ""))
        upstream = run.upstream if run else self.upstream
        return _respond(await upstream.models(http.headers.get("authorization")))

    async def _chat(self, http: Request) -> Response:
        body = await http.body()
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            request = None
        kind = http.headers.get("content-type", "").lower()
        if not isinstance(request, dict) or not kind.startswith("application/json"):
            # The type matters: a web page can send text/plain here, but not JSON.
            return _respond(error_reply(400, "send a JSON object as application/json"))
        name = http.path_params.get("run", "")
        run = self._runs.get(name) or RunLog(name, self.upstream)
        attempt = http.headers.get("x-stainless-retry-count", "")
        exchange = Exchange(request, body, int(attempt) if attempt.isdecimal() else 0)
        run.exchanges.append(exchange)
        started = time.perf_counter()
        try:
            came = await run.upstream.answer(
                self._with_reasoning(name, request), http.headers.get("authorization")
            )
            sent = take_in(came, exchange, repaired=self.repair)
        except Exception as error:  # a bug on this side must not pass for the model's
            words = f"the gateway itself failed, {type(error).__name__}: {error}"
            failure = error_reply(500, words, retry=False)
            sent = take_in(failure, exchange, repaired=False)
        exchange.ms = round((time.perf_counter() - started) * 1000, 1)
        self._keep_reasoning(name, exchange.reply)
        if run.on_exchange:
            run.on_exchange(exchange)
        return _respond(sent)

    def _with_reasoning(self, run: str, request: dict[str, Any]) -> dict[str, Any]:
        """The request as it goes upstream: where a server wants a model's reasoning
        back, the assistant messages that clients strip of it get it again."""
        if not self.echo_reasoning:
            return request
        messages = []
        for message in request.get("messages") or ():
            if reasoning := self._reasoning.get(_reasoning_key(run, message)):
                message = {**message, "reasoning_content": reasoning}
            messages.append(message)
        return {**request, "messages": messages}

    def _keep_reasoning(self, run: str, reply: Any) -> None:
        if not self.echo_reasoning:
            return
        try:
            message = reply["choices"][0]["message"]
        except (TypeError, LookupError):
            return  # an error, or, without repairs, anything
        if key := _reasoning_key(run, message):
            self._reasoning[key] = message.get("reasoning_content") or ""


def _reasoning_key(run: str, message: Any) -> str:
    """The run and the first call; "" for a message without calls: no server wants the
    reasoning of a finished answer back."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    first = calls[0] if isinstance(calls, list) and calls else None
    return f"{run}/{first.get('id')}" if isinstance(first, dict) else ""


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
