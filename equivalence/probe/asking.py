"""How the probe asks: through gateways of its own, so that each exchange holds both
what the server sent and what the agents would get.

A server that refuses a request over one field is asked again with the setting that may
help.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from equivalence.gateway import Exchange, Gateway
from equivalence.runs.upstreams import http_upstream, new_gateway
from equivalence.settings import Settings

GRACE = 5.0
"""Seconds that the probe waits longer than the gateway, which keeps the time limit."""

REFUSED = (400, 422)
"""What servers answer to a request that holds something they do not take."""

Message = dict[str, Any]


class NoMoreRequests(Exception):
    """The bound on the number of requests is reached."""


class Endpoint:
    """The endpoint of the settings, asked `most` times at most. A context manager.

    `settings` are those with which it answers: the given ones, changed where it refused
    a request over a field. `changed` holds the changes alone.
    """

    def __init__(self, settings: Settings, most: int) -> None:
        self.settings = settings
        self.changed: dict[str, Any] = {}
        self.most = most
        self.asked = 0
        self.exchanges: list[Exchange] = []
        repairing = settings.model_copy(update={"repair": True})
        raw = settings.model_copy(update={"repair": False})
        self._repairing: Gateway = new_gateway(repairing, http_upstream(settings))
        self._raw: Gateway = new_gateway(raw, http_upstream(settings))

    def __enter__(self) -> Endpoint:
        self._repairing.start()
        self._raw.start()
        self._run = self._repairing.open_run()
        self._raw_run = self._raw.open_run()
        return self

    def __exit__(self, *exception: object) -> None:
        for running in (self._run, self._raw_run, self._repairing, self._raw):
            running.close()

    def models(self) -> tuple[int, Any]:
        """Return the status and the body with which it lists its models."""
        self._count()
        response, body = self._send(self._run.url, "GET", "/models", None)
        try:
            return response.status, json.loads(body)
        except ValueError:
            return response.status, body.decode("utf-8", "replace")

    def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        stop: Sequence[str] = (),
    ) -> Exchange:
        """Ask for a reply; what came of it, an error included."""
        while True:
            exchange, _ = self._chat(messages, tools, stop, self.settings.stream)
            change = self._remedy(exchange)
            if not change:
                return exchange
            before = self.settings, self.changed
            self._change(change)
            again, _ = self._chat(messages, tools, stop, self.settings.stream)
            if again.status == 200 or words_of(again) != words_of(exchange):
                if again.status == 200:
                    return again
                continue  # this helped, and something else is in the way
            self.settings, self.changed = before  # it did not help
            self._repairing.echo_reasoning = self.settings.echo_reasoning
            return exchange

    def ask_for_a_stream(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]
    ) -> tuple[Exchange, bool]:
        """Ask for a stream, unrepaired; return what came of it, and whether it was an
        event stream."""
        exchange, kind = self._chat(messages, tools, (), True, raw=True)
        return exchange, kind.startswith("text/event-stream")

    def _chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        stop: Sequence[str],
        stream: bool,
        *,
        raw: bool = False,
    ) -> tuple[Exchange, str]:
        self._count()
        settings = self.settings
        request: dict[str, Any] = {
            "model": settings.model,
            "temperature": settings.temperature,
            "messages": list(messages),
        }
        if settings.seed is not None:
            request["seed"] = settings.seed
        if tools:
            request["tools"] = list(tools)
        if stop:
            request["stop"] = list(stop)
        if stream:
            request["stream"] = True
        if settings.max_tokens:
            request[settings.max_tokens_field] = settings.max_tokens
        request |= settings.extra_body
        run = self._raw_run if raw else self._run
        response, _ = self._send(run.url, "POST", "/chat/completions", request)
        exchange = run.exchanges[-1]
        self.exchanges.append(exchange)
        return exchange, response.headers.get("content-type") or ""

    def _count(self) -> None:
        if self.asked >= self.most:
            raise NoMoreRequests
        self.asked += 1

    def _send(
        self, url: str, method: str, path: str, body: Any
    ) -> tuple[http.client.HTTPResponse, bytes]:
        address = urlsplit(url)
        wait = self.settings.timeout + GRACE
        connection = http.client.HTTPConnection(address.netloc, timeout=wait)
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        try:
            connection.request(method, address.path + path, data, headers)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def _remedy(self, exchange: Exchange) -> dict[str, Any] | None:
        """The change of settings that may help against a refusal, None where none is
        known or there is no request left to try it."""
        if exchange.raw_status not in REFUSED or self.asked >= self.most:
            return None
        words = words_of(exchange).lower()
        for pattern, change in REMEDIES:
            if re.search(pattern, words):
                update = change(self.settings, exchange.request)
                if update and any(
                    getattr(self.settings, name) != value
                    for name, value in update.items()
                ):
                    return update
        return None

    def _change(self, update: dict[str, Any]) -> None:
        self.settings = self.settings.model_copy(update=update)
        self.changed = {**self.changed, **update}
        self._repairing.echo_reasoning = self.settings.echo_reasoning


Change = Callable[[Settings, Mapping[str, Any]], dict[str, Any]]


def _with(**fields: Any) -> Change:
    """Fields of every request; None takes one out."""
    return lambda settings, request: {"extra_body": {**settings.extra_body, **fields}}


def _without(name: str) -> Change:
    """A field taken out, where the request has it."""
    take_out = _with(**{name: None})
    return lambda settings, request: (
        take_out(settings, request) if request.get(name) is not None else {}
    )


def _other_field(settings: Settings, request: Mapping[str, Any]) -> dict[str, Any]:
    names = ("max_tokens", "max_completion_tokens")
    other = names[settings.max_tokens_field == names[0]]
    return {"max_tokens_field": other} if settings.max_tokens else {}


REMEDIES: tuple[tuple[str, Change], ...] = (
    # "parameter.enable_thinking must be set to false for non-streaming calls"
    (r"enable_thinking", _with(enable_thinking=False)),
    (
        r"only supports? stream|stream mode|stream=`?false",
        lambda s, r: {"stream": True},
    ),
    # "The reasoning_content in the thinking mode must be passed back to the API."
    (r"reasoning", lambda s, r: {"echo_reasoning": True}),
    (r"max_(completion_)?tokens", _other_field),
    (r"\btemperature\b", _without("temperature")),
    (r"\bstop\b", _without("stop")),
    (r"\bseed\b", _without("seed")),
)
"""Words of a refusal, in lower case, and the settings to try then."""


def words_of(exchange: Exchange) -> str:
    """Return the words of an error, "" where it is none."""
    if exchange.status == 200:
        return ""
    error = exchange.reply.get("error") if isinstance(exchange.reply, dict) else None
    told = error.get("message") if isinstance(error, dict) else exchange.reply
    text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
    return " ".join(text.split()) or "no words"
