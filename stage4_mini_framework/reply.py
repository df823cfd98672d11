"""The reply: from what the openai client gives to a message of the conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from openai import OpenAIError, Stream

from equivalence.gateway.repairs import INVALID_ARGUMENTS

Message = dict[str, Any]


def read_reply(reply: Any) -> Message:
    """Return the assistant message as it goes back over the wire with the next request.
    OpenAIError where there is no message in the reply."""
    message = _merged(reply) if isinstance(reply, Stream) else _first(reply, "message")
    if not message:
        raise OpenAIError("the server answered without a message")
    content = _text(message.get("content"))
    calls = [_call(call) for call in _list(message.get("tool_calls"))]
    if not calls:
        return {"role": "assistant", "content": content}
    return {"role": "assistant", "content": content or None, "tool_calls": calls}


def _merged(chunks: Iterable[Any]) -> Message:
    """The pieces of a stream as one message; the pieces of a call share an index."""
    content = ""
    calls: dict[Any, Message] = {}
    for chunk in chunks:
        delta = _first(chunk, "delta")
        content += _text(delta.get("content"))
        for piece in _list(delta.get("tool_calls")):
            call = calls.setdefault(piece.get("index"), {"id": piece.get("id")})
            function = call.setdefault("function", {"name": "", "arguments": ""})
            for name, text in _dict(piece.get("function")).items():
                function[name] = function.get(name, "") + (text or "")
    return {"content": content, "tool_calls": [*calls.values()]}


def _first(reply: Any, part: str) -> Message:
    """The message or the delta in the first choice; {} where there is none."""
    data = reply.to_dict(warnings=False) if hasattr(reply, "to_dict") else {}
    choices = _list(data.get("choices"))
    return _dict(choices[0].get(part)) if choices else {}


def _call(call: Message) -> Message:
    """The call with arguments that are the JSON text of an object, whatever came."""
    function = _dict(call.get("function"))
    arguments = json.dumps(_arguments(function.get("arguments")), ensure_ascii=False)
    return {
        "id": call.get("id"),
        "type": "function",
        "function": {"name": function.get("name") or "", "arguments": arguments},
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


# Behind the gateway's repairs every field has its type; without them anything may come.


def _text(content: Any) -> str:
    """The text of a content, also of one in blocks."""
    blocks = content if isinstance(content, list) else [content]
    texts = (b.get("text") if isinstance(b, dict) else b for b in blocks)
    return "".join(text for text in texts if isinstance(text, str))


def _list(value: Any) -> list[Message]:
    """The dicts of a list; [] for anything else."""
    items = value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, dict)]


def _dict(value: Any) -> Message:
    return value if isinstance(value, dict) else {}
