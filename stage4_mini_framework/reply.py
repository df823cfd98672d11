"""The reply: from what the openai client gives to a message of the conversation.

The gateway has brought each reply into the usual shape. What it cannot mend is here:
no message at all, and, where its repairs are off, arguments that do not parse.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from openai import OpenAIError, Stream

from equivalence.gateway.repairs import INVALID_ARGUMENTS

Message = dict[str, Any]


def read_reply(reply: Any) -> Message:
    """Return the assistant message as it goes back over the wire with the next request.
    Raises OpenAIError if there is no message in the reply."""
    message = _merged(reply) if isinstance(reply, Stream) else _message(reply)
    content = message.get("content") or ""
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    if not calls:
        return {"role": "assistant", "content": content}
    return {"role": "assistant", "content": content or None, "tool_calls": calls}


def _message(reply: Any) -> Message:
    try:
        message: Message = reply.choices[0].message.to_dict(warnings=False)
    except (AttributeError, IndexError, TypeError):
        raise OpenAIError("the server answered without a message") from None
    return message


def _merged(chunks: Iterable[Any]) -> Message:
    """The pieces of a stream as one message; the pieces of a call share an index."""
    content = ""
    calls: dict[int, Message] = {}
    for delta in (chunk.choices[0].delta for chunk in chunks if chunk.choices):
        content += delta.content or ""
        for piece in delta.tool_calls or ():
            new = {"id": piece.id, "function": {"name": "", "arguments": ""}}
            function = calls.setdefault(piece.index, new)["function"]
            function["name"] += piece.function.name or ""
            function["arguments"] += piece.function.arguments or ""
    return {"content": content, "tool_calls": [*calls.values()]}


def _call(call: Message) -> Message:
    """The call with arguments that are the JSON text of an object, whatever came."""
    function = call["function"]
    arguments = json.dumps(_arguments(function["arguments"]), ensure_ascii=False)
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _arguments(written: Any) -> dict[str, Any]:
    """The arguments as an object; what is none goes where the tool policy answers."""
    try:
        value = json.loads(written or "{}", strict=False) or {}
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    reason = "its arguments are not a JSON object"
    return {INVALID_ARGUMENTS: str(written), "reason": reason}
