"""What stands behind the gateway, and the replies it gives."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

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


class BrokenReply(Exception):
    """A reply broke off, or was too heavy to be read; `reply` says so."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply


@dataclass(frozen=True)
class Streamed:
    """An event stream that is still being written."""

    pieces: AsyncIterator[bytes]
    """Its bytes as they come. Raises BrokenReply if it breaks off."""
    close: Callable[[], None] = lambda: None
    """To be called when nobody wants more of it."""


class Upstream(Protocol):
    """One source of replies; its str() names it in errors. `authorization` is the
    client's own header, if any.

    One that can pass a stream on while it is being written has a method more, with the
    parameters of `answer`, for requests that ask for a stream:

        async def stream(self, request, authorization) -> Reply | Streamed
    """

    async def answer(
        self, request: dict[str, Any], authorization: str | None
    ) -> Reply: ...

    async def models(self, authorization: str | None) -> Reply: ...

    async def close(self) -> None: ...


GATEWAY_ERROR = "gateway_error"
"""The type of an error of the gateway's own: no server said it."""


def error_reply(
    status: int, message: str, *, retry: bool = True, kind: str = GATEWAY_ERROR
) -> Reply:
    """Return an error in OpenAI's form, of the type `kind`; `retry` False asks clients
    not to try again."""
    body = {"error": {"message": message, "type": kind, "code": None}}
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
