"""The gateway's server: one port on loopback, many runs, each exchange recorded."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import uvicorn
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from equivalence.gateway.exchange import Exchange
from equivalence.gateway.kept import Kept
from equivalence.gateway.limits import TooDeep, parse
from equivalence.gateway.passing import Passing
from equivalence.gateway.repairs import (
    BROKEN_OFF,
    Unusable,
    error_words,
    odd_history,
    offered_names,
    repair,
)
from equivalence.gateway.responses import answer_about, answer_as_chat
from equivalence.gateway.run import OpenRun
from equivalence.gateway.shapes import (
    REASONING,
    began_inside,
    first_choice,
    read_content,
    whole_characters,
)
from equivalence.gateway.streaming import (
    Events,
    Merger,
    delta_event,
    event,
    merge_stream,
    to_stream,
)
from equivalence.gateway.upstreams import (
    LOOPBACK,
    BrokenReply,
    Reply,
    Streamed,
    Upstream,
    dump,
    error_reply,
)

MODELS_REMEMBERED = 100
"""Models of which the gateway knows that their text begins in a think block."""


class Gateway:
    """A loopback OpenAI-compatible server in a thread of this process.

        with Gateway(upstream) as gateway, gateway.open_run() as run:
            …a client at run.url…
            run.exchanges

    Each run has an address of its own, which nobody can guess. A client that cannot be
    told one uses the standing address: its requests belong to the one run that is open
    there. It binds 127.0.0.1 only and keeps no key. It alone keeps the time limit of a
    reply, in seconds; None is no limit. `address` is that of `url`; None makes one up.

    What a server attached to a message or a call goes back to it (`echo_attached`), its
    thoughts only where it wants them (`echo_reasoning`): many refuse them. The output
    limit of a client that asks for responses goes there as `limit_field`.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        port: int = 0,
        repair: bool = True,
        echo_reasoning: bool = False,
        echo_attached: bool = True,
        timeout: float | None = None,
        limit_field: str = "max_tokens",
        address: str | None = None,
        on_exchange: Callable[[Exchange], None] | None = None,
    ) -> None:
        self.upstream = upstream
        self.on_exchange = on_exchange
        self.repair = repair
        self.echo_reasoning = echo_reasoning
        self.echo_attached = echo_attached
        self.timeout = timeout
        self.limit_field = limit_field
        self._kept = Kept(shared=True)
        self._begin_inside: dict[tuple[str, str], bool] = {}
        """Whether a model's text begins in a think block: one that did may again."""
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
            ws="none",
            proxy_headers=False,
            access_log=False,
            timeout_graceful_shutdown=1,
            log_config=None,
            log_level="critical",  # a reply scripted to break is no news
        )
        self._server = _Server(config)
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
        self._server.end()
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
        on_text: Callable[[str], None] | None = None,
        read_along: bool = True,
        standing: bool = False,
    ) -> OpenRun:
        """Open a run, until its `close`. `kept`: of the run whose conversation it
        continues. `on_exchange` is called with each exchange once it is complete,
        `on_text` with each piece of the text of a streamed reply as it goes to the
        client, both from the gateway's thread. `read_along` False: nobody reads a
        stream while it is written, so the first text of a model waits until it is known
        whether it began in a think block. `standing`: what comes to the standing
        address is its too; while two such runs are open, that address refuses."""
        address = secrets.token_urlsafe(12)
        run = OpenRun(
            address,
            self._url(f"/{address}"),
            upstream or self.upstream,
            kept=kept,
            on_exchange=on_exchange,
            on_text=on_text,
            read_along=read_along,
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

    def _app(self) -> ASGIApp:
        router = Router(
            routes=[
                Route("/{address}/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/{address}/v1/responses", self._responses, methods=["POST"]),
                Route(
                    "/{address}/v1/responses/{identifier}",
                    self._response,
                    methods=["GET", "DELETE"],
                ),
                Route("/{address}/v1/models", self._models),
            ],
            default=_not_found,
            lifespan=self._lifespan,
        )
        # A web page that names another host for loopback must not reach the key.
        return TrustedHostMiddleware(router, allowed_hosts=[*LOOPBACK])

    @asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncIterator[None]:
        yield
        for upstream in {self.upstream, *(run.upstream for run in self._runs.values())}:
            await upstream.close()

    def _run_at(self, address: str) -> OpenRun | Reply:
        """The run of that address, or why there is none."""
        if address in self._runs:
            return self._runs[address]
        if address == self._unrecorded:
            return OpenRun(
                address,
                self.url,
                self.upstream,
                kept=self._kept,
                on_exchange=self.on_exchange,
                forget=self._forget,
            )
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

    async def _responses(self, http: Request) -> Response:
        run = self._run_at(http.path_params["address"])
        if isinstance(run, Reply):
            return _respond(run)
        remembered = run.kept.responses
        return await answer_as_chat(http, self._chat, remembered, self.limit_field)

    async def _response(self, http: Request) -> Response:
        run = self._run_at(http.path_params["address"])
        if isinstance(run, Reply):
            return _respond(run)
        return answer_about(http, run.kept.responses)

    async def _chat(self, http: Request) -> Response:
        run = self._run_at(http.path_params["address"])
        if isinstance(run, Reply):
            return _respond(run)
        try:
            body = await http.body()
        except ClientDisconnect:
            return _GONE
        try:
            request = parse(body)
        except TooDeep as error:
            return _respond(error_reply(400, f"the request is refused: {error}"))
        except ValueError:
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
        return _Answering(self, run, exchange, http.headers.get("authorization"))

    async def answer(
        self, run: OpenRun, exchange: Exchange, authorization: str | None, out: _Out
    ) -> Reply:
        """Ask the upstream and fill the exchange. Return what is to be sent to the
        client beyond what went `out` while it was being written."""
        try:
            async with asyncio.timeout(self.timeout):
                came = await self._ask(run, exchange, authorization, out)
        except TimeoutError:
            words = f"no reply from {run.upstream} within {self.timeout:g} s"
            came = error_reply(504, words, retry=False)
        except BrokenReply as broken:
            came = broken.reply
        except Exception as error:  # a bug on this side must not pass for the model's
            came = _own_failure(error)
        try:
            sent = self._take_in(came, exchange, out)
        except Exception as error:
            exchange.repairs = []
            sent = _as_it_came(_own_failure(error), exchange)
        if out.began and sent.status >= 300:  # its 200 is already there
            sent = Reply(200, event(exchange.reply), "text/event-stream", cut=sent.cut)
        exchange.status = sent.status
        exchange.ms = round(run.milliseconds() - exchange.began, 1)
        run.kept.keep(exchange.request, exchange.raw_reply, exchange.reply)
        if self.repair and sent.status == 200:
            self._learn(run, exchange)
        return sent

    def _learn(self, run: OpenRun, exchange: Exchange) -> None:
        """Remember how the texts of the model begin. A text that was cut off, or is
        none, does not tell."""
        came, sent = first_choice(exchange.raw_reply), first_choice(exchange.reply)
        text = read_content(came["message"].get("content")).text if came else ""
        if not sent or not text.strip():
            return
        inside = "think_block" in exchange.repairs and began_inside(text)
        inside = inside or "late_think_block" in exchange.repairs
        if not inside and sent.get("finish_reason") in BROKEN_OFF:
            return
        model, known = _model(run, exchange), self._begin_inside
        if model not in known and len(known) >= MODELS_REMEMBERED:
            known.clear()
        known[model] = inside or known.get(model, False)

    async def _ask(
        self, run: OpenRun, exchange: Exchange, authorization: str | None, out: _Out
    ) -> Reply:
        if self.repair and (odd := odd_history(exchange.request)):
            return error_reply(400, odd, retry=False)
        request = run.kept.put_back(
            exchange.request, reasoning=self.echo_reasoning, attached=self.echo_attached
        )
        request = _as_servers_take_it(request)
        stream = getattr(run.upstream, "stream", None)
        if stream is None or request.get("stream") is not True:
            return await run.upstream.answer(request, authorization)
        came: Reply | Streamed = await stream(request, authorization)
        if isinstance(came, Reply):
            return came
        try:
            if self.repair:
                return await self._pass_on(came, run, exchange, out)
            pieces = []
            async for piece in came.pieces:
                pieces.append(piece)
                if b"[DONE]" in piece:  # behind it clients hang up: first the record
                    out.last = piece
                    break
                await out.send(piece)
            return Reply(200, b"".join(pieces), "text/event-stream")
        finally:
            came.close()

    async def _pass_on(
        self, came: Streamed, run: OpenRun, exchange: Exchange, out: _Out
    ) -> Reply:
        """Send what is certain of the stream on as it comes; return it merged."""
        events, merger = Events(), Merger()
        unknown = False if run.read_along else None
        inside = self._begin_inside.get(_model(run, exchange), unknown)
        passing = Passing(offered_names(exchange.request), inside=inside)
        pieces = []
        async for data in came.pieces:
            pieces.append(data)
            for one in events.feed(data):
                try:
                    piece = merger.add(one)
                except ValueError:
                    return Reply(200, one.encode(), "text/plain")
                delta = {}
                if text := passing.feed(piece.text):
                    delta["content"] = text
                if piece.thoughts == whole_characters(piece.thoughts) != "":
                    delta[REASONING[0]] = piece.thoughts
                if delta:
                    await out.send(delta_event(merger.head, delta), **delta)
            if merger.done:
                break
            await asyncio.sleep(0)  # a fast stream must not keep the others waiting
        return Reply(200, b"".join(pieces), "text/event-stream")

    def _take_in(self, came: Reply, exchange: Exchange, out: _Out) -> Reply:
        """Fill the exchange from what came; return what is sent on."""
        sent = _as_it_came(came, exchange)
        if not self.repair:
            sent_already = came.status == 200 and out.began
            return replace(sent, body=out.last) if sent_already else sent
        if came.cut:
            return sent
        if came.status >= 300:
            return _in_usual_shape(came, exchange)
        try:
            if isinstance(exchange.raw_reply, str):
                start = " ".join(exchange.raw_reply.split())[:200]
                raise Unusable(f"the reply is not JSON: {start!r}")
            whole, exchange.repairs = repair(
                exchange.raw_reply, exchange.request, passed_on=out.text
            )
        except Unusable as problem:
            message = f"the model's server answered {came.status}, but {problem}"
            failed = error_reply(502, message, retry=False)
            exchange.reply = json.loads(failed.body)
            return failed
        exchange.reply = whole
        if exchange.request.get("stream") is not True:
            return Reply(200, dump(whole))
        out.rest = (whole["choices"][0]["message"]["content"] or "")[len(out.text) :]
        rest = to_stream(
            whole,
            exchange.request,
            text_sent=len(out.text),
            thoughts_sent=len(out.thoughts),
        )
        return Reply(200, rest, "text/event-stream")


class _Server(uvicorn.Server):
    """uvicorn's server, ended at once: its own looks every 0.1 s whether it is to end,
    and waits for as long before it looks whether anybody is still connected."""

    _loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """End it, from any thread."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._told.set)

    async def main_loop(self) -> None:
        """Serve until the end."""
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        serving = asyncio.ensure_future(super().main_loop())
        told = asyncio.ensure_future(self._told.wait())
        await asyncio.wait((serving, told), return_when=asyncio.FIRST_COMPLETED)
        serving.cancel()
        told.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the connections go."""
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        for _ in range(3):  # turns of the loop, for those that were idle
            await asyncio.sleep(0)
        if state.connections or state.tasks:
            return await super().shutdown(sockets)
        for place in (*self.servers, *(sockets or ())):
            place.close()
        await self.lifespan.shutdown()
        return None


class _Out:
    """The way to the client, for what goes on while it is being written."""

    def __init__(self, run: OpenRun, send: Send) -> None:
        self._run = run
        self._send = send
        self.began = False
        self.last = b""
        """What the upstream sent last, where it goes on as it came."""
        self.rest = ""
        """The text that goes with the end of the stream."""
        self._texts: list[str] = []
        self._thoughts: list[str] = []

    @property
    def text(self) -> str:
        """The text that has been sent."""
        return "".join(self._texts)

    @property
    def thoughts(self) -> str:
        """The thoughts that have been sent."""
        return "".join(self._thoughts)

    async def send(
        self, data: bytes, *, content: str = "", reasoning_content: str = ""
    ) -> None:
        if not self.began:
            self.began = True
            kind = (b"content-type", b"text/event-stream; charset=utf-8")
            start = {"type": "http.response.start", "status": 200, "headers": [kind]}
            await self._send(start)
        self._texts.append(content)
        self._thoughts.append(reasoning_content)
        self._run.written(content)
        body = {"type": "http.response.body", "body": data, "more_body": True}
        await self._send(body)


class _Answering(Response):
    """A reply on its way: the answer to one request, until it is complete, its client
    goes away, or its run ends."""

    def __init__(
        self,
        gateway: Gateway,
        run: OpenRun,
        exchange: Exchange,
        authorization: str | None,
    ) -> None:
        super().__init__()
        self._gateway = gateway
        self._run = run
        self._exchange = exchange
        self._authorization = authorization

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        out = _Out(self._run, send)
        work = asyncio.ensure_future(
            self._gateway.answer(self._run, self._exchange, self._authorization, out)
        )
        watch = asyncio.ensure_future(_hung_up(receive, work))
        done = await self._run.answering(work)
        watch.cancel()
        if not done:  # the client went away, or the run has ended
            if not out.began:
                await _GONE(scope, receive, send)
            return
        self._run.written(out.rest)
        self._run.observed(self._exchange)
        sent = work.result()
        if not out.began:
            await _respond(sent)(scope, receive, send)
        elif sent.cut or (sent.status >= 300 and not self._gateway.repair):
            raise ConnectionResetError("the reply broke off on its way")
        else:
            await send({"type": "http.response.body", "body": sent.body})


async def _hung_up(receive: Receive, work: asyncio.Task[Any]) -> None:
    """Cancel the work when the client goes away: nobody would get the reply."""
    while (await receive())["type"] != "http.disconnect":
        pass
    work.cancel()


def _model(run: OpenRun, exchange: Exchange) -> tuple[str, str]:
    return str(run.upstream), str(exchange.request.get("model"))


_OF_TOOLS = ("parallel_tool_calls", "tool_choice")


def _as_servers_take_it(request: dict[str, Any]) -> dict[str, Any]:
    """The request without fields that are null, which mean the same as none: so a
    setting can take a field out; and those that belong to tools only beside tools."""
    return {
        name: value
        for name, value in request.items()
        if value is not None and (name not in _OF_TOOLS or request.get("tools"))
    }


def _own_failure(error: Exception) -> Reply:
    words = f"the gateway itself failed, {type(error).__name__}: {error}"
    return error_reply(500, words, retry=False)


def _in_usual_shape(came: Reply, exchange: Exchange) -> Reply:
    """An error with its words where OpenAI has them and clients look for them."""
    words, usual = error_words(exchange.raw_reply)
    if usual or not words:
        return came
    exchange.repairs = ["error_shape"]
    sent = error_reply(came.status, words, kind="upstream_error")
    exchange.reply = json.loads(sent.body)
    return replace(sent, headers=came.headers)


def _as_it_came(came: Reply, exchange: Exchange) -> Reply:
    try:
        streamed = came.content_type == "text/event-stream"
        exchange.raw_reply = (merge_stream if streamed else parse)(came.body)
    except TooDeep as error:
        came = error_reply(502, f"the reply is not usable: {error}", retry=False)
        exchange.raw_reply = json.loads(came.body)
    except ValueError:
        exchange.raw_reply = came.body.decode("utf-8", "replace")
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


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    message = (
        f"{scope['path']} is not here; POST to /v1/chat/completions or /v1/responses"
    )
    await _respond(error_reply(404, message))(scope, receive, send)
