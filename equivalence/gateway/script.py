"""A script: a fixed list of replies in the place of a model.

In a YAML file it is a list; the last reply repeats:

    - calls: [[get_weather, '{"city": "北京"}', a]]   # name, arguments, id
      content: text beside the calls
      finish_reason: length                # default: the one that fits
      message: {reasoning_content: more fields of the message}
    - done                                 # short for {content: done}
    - {status: 500, body: {}, headers: {}, cut: true, delay: 1.0}
    - {stream: [{content: a delta}], finish_reason: stop}

"body" is any JSON, or a text sent as it is; "delay" is in seconds; "cut" breaks the
connection in the middle of the reply.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway.strict import violation
from equivalence.gateway.upstreams import (
    Reply,
    Streamed,
    as_asked,
    completion,
    dump,
    error_reply,
    model_list,
)
from equivalence.language import _
from equivalence.phrases import translated

SCRIPTED = ("status", "body", "headers", "stream", "cut", "delay")
FIELDS = (*SCRIPTED, "calls", "content", "message", "finish_reason")


def read_script(path: Path) -> list[dict[str, Any]]:
    """Return the replies of a YAML file. Raises UsageError if it is no such list."""
    import yaml

    try:
        replies = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: {translated(error.strerror)}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())
        raise UsageError(
            _("{path} is not YAML in UTF-8: {words}").format(path=path, words=words)
        ) from None
    if not isinstance(replies, list) or not replies:
        raise UsageError(_("{path} holds no list of replies").format(path=path))
    try:
        return [item(reply, number) for number, reply in enumerate(replies, 1)]
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def item(reply: Any, number: int = 1) -> dict[str, Any]:
    """Return the reply of a file as an item of a Script; its `number` there makes the
    ids of its calls its own. Raises ValueError if a field is not known."""
    if not isinstance(reply, Mapping):
        return {"message": {"content": reply}}
    if unknown := [name for name in reply if name not in FIELDS]:
        raise ValueError(
            _("a reply has no field {unknown!r}: {fields}").format(
                unknown=unknown[0], fields=", ".join(FIELDS)
            )
        )
    if reply.keys() & {*SCRIPTED} and not reply.keys() & {"calls", "content"}:
        return dict(reply)
    message: dict[str, Any] = {"content": reply.get("content")}
    if "calls" in reply:
        message["tool_calls"] = _calls(reply["calls"], number)
    message |= reply.get("message", {})
    rest = {k: v for k, v in reply.items() if k in (*SCRIPTED, "finish_reason")}
    return {**rest, "message": message}


def _calls(calls: Sequence[Any], reply: int) -> list[Any]:
    """Calls as the wire has them; an entry that is no list stays as it is."""
    return [
        {
            "id": call[2] if len(call) > 2 else f"call{reply:03}{number:02}",
            "type": "function",
            "function": {"name": call[0], "arguments": call[1]},
        }
        if isinstance(call, list)
        else call
        for number, call in enumerate(calls, 1)
    ]


class Script:
    """A fixed list of replies, one a request; the last one repeats.

    An item is a dict with one of: "message" (beside it, if wanted, "finish_reason"),
    "body" (any JSON, or a str sent as it is), "stream" (a list of deltas). Beside
    these: "status" (default 200), "headers" (of an error), "delay" in seconds, "cut"
    (the connection breaks in the middle). `strict` answers 400 to what strict providers
    refuse; `require` unless the request has these top-level fields; `require_reasoning`
    to an assistant message with tool calls that does not carry this reasoning_content;
    `require_attached` unless each such message carries these fields, and each of its
    calls those of "call".
    """

    def __init__(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        strict: bool = False,
        require: Mapping[str, Any] | None = None,
        require_reasoning: str | None = None,
        require_attached: Mapping[str, Any] | None = None,
    ) -> None:
        self.items = items
        self.strict = strict
        self.require = require or {}
        self.require_reasoning = require_reasoning
        self.require_attached = require_attached
        self.answered = 0
        self.refusals: list[str] = []

    def __str__(self) -> str:
        return "the script"

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
        refusal = refusal or self._not_attached(request)
        if refusal:
            self.refusals.append(refusal)
            return error_reply(400, refusal, kind="invalid_request_error")
        item = self.items[min(self.answered, len(self.items) - 1)]
        self.answered += 1
        if delay := item.get("delay"):
            await asyncio.sleep(delay)
        return _scripted(item, request)

    def _not_attached(self, request: dict[str, Any]) -> str | None:
        if not self.require_attached:
            return None
        wanted = dict(self.require_attached)
        to_calls = wanted.pop("call", {})
        for message in request.get("messages") or ():
            for call in message.get("tool_calls") or ():
                for fields, carrier in ((wanted, message), (to_calls, call)):
                    for name, value in fields.items():
                        if carrier.get(name) != value:
                            return f"this server wants the {name} back"
        return None

    async def stream(
        self, request: dict[str, Any], authorization: str | None
    ) -> Reply | Streamed:
        reply = await self.answer(request, authorization)
        if reply.content_type != "text/event-stream" or reply.cut:
            return reply
        return Streamed(_one_by_one(reply.body))

    async def models(self, authorization: str | None) -> Reply:
        return model_list("script")

    async def close(self) -> None:
        pass


async def _one_by_one(stream: bytes) -> AsyncIterator[bytes]:
    """The events of a stream, each as it would come from a model."""
    for event in stream.split(b"\n\n"):
        if event:
            yield event + b"\n\n"


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
    return as_asked(request, whole)
