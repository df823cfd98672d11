"""What can stand behind the gateway: the offline model, a real endpoint, a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp

from gateway import offline
from gateway.streaming import to_stream
from gateway.strict import violation

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
    """One source of replies. `authorization` is the client's own header, if any."""

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


class OfflineModel:
    """The scripted stand-in for a model: no key, no download, no network."""

    def __init__(self, run_seed: int = 0) -> None:
        self.run_seed = run_seed

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        message = offline.reply(request, self.run_seed)
        return _as_asked(request, completion(message, request.get("model")))

    async def models(self, authorization: str | None) -> Reply:
        return model_list("offline")

    async def close(self) -> None:
        pass


class Script:
    """A fixed list of replies, one a request; the last one repeats.

    An item is a dict with one of: "message" (beside it, if wanted, "finish_reason"),
    "body" (any JSON, or a str sent as it is), "stream" (a list of deltas). Beside
    these: "status" (default 200), "headers" (of an error), "delay" in seconds, "cut"
    (the connection breaks in the middle). `strict` answers 400 to what strict providers
    refuse; `require` unless the request has these top-level fields; `require_reasoning`
    to an assistant message with tool calls that does not carry this reasoning_content.
    """

    def __init__(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        strict: bool = False,
        require: Mapping[str, Any] | None = None,
        require_reasoning: str | None = None,
    ) -> None:
        self.items = items
        self.strict = strict
        self.require = require or {}
        self.require_reasoning = require_reasoning
        self.answered = 0
        self.refusals: list[str] = []

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        refusal = violation(request) if self.strict else None
        for name, value in self.require.items():
            if request.get(name) != value:
                refusal = f"this server wants {name}={json.dumps(value)}"
        if self.require_reasoning:
            for message in request.get("messages") or ():
                carried = message.get("reasoning_content")
                if message.get("tool_calls") and carried != self.require_reasoning:
                    refusal = "this server wants the reasoning_content back"
        if refusal:
            self.refusals.append(refusal)
            return error_reply(400, refusal)
        item = self.items[min(self.answered, len(self.items) - 1)]
        self.answered += 1
        if delay := item.get("delay"):
            await asyncio.sleep(delay)
        return _scripted(item, request)

    async def models(self, authorization: str | None) -> Reply:
        return model_list("script")

    async def close(self) -> None:
        pass


class HttpUpstream:
    """A real endpoint. Without a key of its own it passes the client's on."""

    def __init__(self, base_url: str, key: str | None, timeout: float) -> None:
        self.base_url = base_url
        self.key = key
        self.timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        return await self._send("POST", "/chat/completions", request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self._send("GET", "/models", None, authorization)

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    async def _send(
        self, method: str, path: str, request: Any, authorization: str | None
    ) -> Reply:
        if self._session is None:  # here, because it belongs to the running event loop
            local = urlsplit(self.base_url).hostname in LOOPBACK
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self.timeout),
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
        except TimeoutError:
            return error_reply(
                504, f"no reply from {self.base_url} within {self.timeout:g} s"
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            return error_reply(502, f"cannot reach {self.base_url}: {reason}")


def model_list(name: str) -> Reply:
    """Return the answer to GET /models of an upstream with one model."""
    return Reply(
        200, dump({"object": "list", "data": [{"id": name, "object": "model"}]})
    )


def _as_asked(request: Mapping[str, Any], whole: dict[str, Any]) -> Reply:
    """The completion as one body, or as a stream where the request asked for one."""
    if request.get("stream"):
        return Reply(200, to_stream(whole, request), "text/event-stream")
    return Reply(200, dump(whole))


def _scripted(item: Mapping[str, Any], request: Mapping[str, Any]) -> Reply:
    cut = bool(item.get("cut"))
    status = item.get("status", 200)
    if "stream" in item:
        chunks = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            for delta in item["stream"]
        ]
        if "finish_reason" in item:
            end = {"index": 0, "delta": {}, "finish_reason": item["finish_reason"]}
            chunks.append({"choices": [end]})
        lines = [b"data: " + dump(chunk) + b"\n\n" for chunk in chunks]
        body = b"".join([*lines, b"data: [DONE]\n\n"])
        return Reply(status, body, "text/event-stream", cut=cut)
    if "body" in item or status != 200 or cut:
        body = item.get("body", {"error": {"message": f"scripted error {status}"}})
        headers = item.get("headers", {})
        if isinstance(body, str):
            return Reply(status, body.encode(), "text/html", headers, cut)
        return Reply(status, dump(body), headers=headers, cut=cut)
    whole = completion(item["message"], "script", item.get("finish_reason", ""))
    return _as_asked(request, whole)
