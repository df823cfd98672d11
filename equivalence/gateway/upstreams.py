"""What can stand behind the gateway: a real endpoint, a script, a model of your own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp

from equivalence.gateway.streaming import to_stream

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Reply:
    """What an upstream answered, as it came."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    """The connection broke before the whole body had come."""


class Upstream(Protocol):
    """One source of replies; its str() names it in errors. `authorization` is the
    client's own header, if any."""

    async def answer(
        self, request: dict[str, Any], authorization: str | None
    ) -> Reply: ...

    async def models(self, authorization: str | None) -> Reply: ...

    async def close(self) -> None: ...


def error_reply(status: int, message: str, *, retry: bool = True) -> Reply:
    """Return an error in OpenAI's form; `retry` False asks clients not to."""
    body = {"error": {"message": message, "type": "gateway_error", "code": None}}
    headers = {} if retry else {"x-should-retry": "false"}
    return Reply(status, dump(body), headers=headers)


def dump(value: Any) -> bytes:
    """Return the value as one line of UTF-8 JSON."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def completion(message: Any, model: Any, finish_reason: Any = "") -> dict[str, Any]:
    """Return a chat completion around the message; an empty `finish_reason` stands for
    the one that fits."""
    if isinstance(message, Mapping):
        message = {"role": "assistant", **message}
        fitting = "tool_calls" if message.get("tool_calls") else "stop"
    else:  # a script may put anything there
        fitting = "stop"
    finish = fitting if finish_reason == "" else finish_reason
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }


class HttpUpstream:
    """A real endpoint. Without a key of its own it passes the client's on."""

    def __init__(self, base_url: str, key: str | None = None) -> None:
        self.base_url = base_url
        self.key = key
        self._session: aiohttp.ClientSession | None = None

    def __str__(self) -> str:
        return self.base_url

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        return await self._send("POST", "/chat/completions", request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self._send("GET", "/models", None, authorization)

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None  # another gateway may ask again

    async def _send(
        self, method: str, path: str, request: Any, authorization: str | None
    ) -> Reply:
        if self._session is None:  # here, because it belongs to the running event loop
            local = urlsplit(self.base_url).hostname in LOOPBACK
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None),
                connector=aiohttp.TCPConnector(limit=0),  # the clients set the limit
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=not local,
            )
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        elif authorization:
            headers["Authorization"] = authorization
        try:
            async with self._session.request(
                method,
                self.base_url + path,
                data=None if request is None else dump(request),
                headers=headers,
                allow_redirects=False,  # a POST would arrive as a GET, or the key leak
            ) as response:
                body = await response.read()
                if place := response.headers.get("location"):
                    words = f"{self.base_url} has moved to {place}: set LLM_BASE_URL"
                    return error_reply(response.status, words, retry=False)
                kept = {
                    name: response.headers[name]
                    for name in ("retry-after", "retry-after-ms", "x-should-retry")
                    if name in response.headers
                }
                return Reply(response.status, body, response.content_type, kept)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            return error_reply(502, f"cannot reach {self.base_url}: {reason}")


def model_list(name: str) -> Reply:
    """Return the answer to GET /models of an upstream with one model."""
    return Reply(
        200, dump({"object": "list", "data": [{"id": name, "object": "model"}]})
    )


def as_asked(request: Mapping[str, Any], whole: dict[str, Any]) -> Reply:
    """The completion as one body, or as a stream where the request asked for one."""
    if request.get("stream"):
        return Reply(200, to_stream(whole, request), "text/event-stream")
    return Reply(200, dump(whole))
