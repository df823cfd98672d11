"""Messages as OpenAI's chat completions have them, made from what others write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Message = dict[str, Any]

ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
CHUNK = "MessageChunk"
FINISH = {"tool_call": "tool_calls"}
"""OpenTelemetry's own words for the ends of a reply, where they are others."""


def is_message(value: Any) -> bool:
    """Tell whether it is a message in one of the forms that `as_openai` takes."""
    if not isinstance(value, dict):
        return False
    plain = _fields(value)
    return _role(plain) in ROLES.values() and (
        "content" in plain or "tool_calls" in plain
    )


def as_openai(value: Mapping[str, Any]) -> Message:
    """Return a message of OpenAI's, agentevals' or LangChain's (model_dump,
    messages_to_dict, dumpd) in the first form; those of it that are so stay as they
    are."""
    plain = _fields(value)
    calls = [
        *(plain.get("tool_calls") or ()),
        *(plain.get("invalid_tool_calls") or ()),
    ]
    if "role" in plain and all("function" in call for call in calls):
        return dict(plain)
    found: Message = {"role": _role(plain), "content": plain.get("content")}
    if calls:
        found["tool_calls"] = [_call(call) for call in calls]
    for name in ("tool_call_id", "status", "refusal"):
        if plain.get(name) is not None:
            found[name] = plain[name]
    return found


def finish_reason(value: Mapping[str, Any]) -> str | None:
    """Return how the reply ended that became the message; None where none is told."""
    metadata = _fields(value).get("response_metadata")
    found = metadata.get("finish_reason") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else None


def from_parts(message: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the messages that one of OpenTelemetry's GenAI messages holds: each tool
    result of it is one."""
    texts: list[str] = []
    rest: list[Any] = []
    calls = []
    answered = False
    reasoning = ""
    for part in message.get("parts") or ():
        kind = part.get("type")
        if kind == "text":
            texts.append(str(part.get("content", "")))
        elif kind == "reasoning":
            reasoning += str(part.get("content", ""))
        elif kind == "tool_call":
            calls.append(_call(part))
        elif kind == "tool_call_response":
            result = part.get("response", part.get("result"))
            content = result if isinstance(result, str) else _json(result)
            answered = True
            yield {"role": "tool", "tool_call_id": part.get("id"), "content": content}
        else:
            rest.append(part)
    if answered and not texts and not calls:
        return
    text = "".join(texts) if texts else None
    blocks = [{"type": "text", "text": each} for each in texts]
    found: Message = {
        "role": message.get("role"),
        "content": [*blocks, *rest] if rest else text,
    }
    if reasoning:
        found["reasoning_content"] = reasoning
    if calls:
        found["tool_calls"] = calls
    yield found


def to_parts(message: Message) -> dict[str, Any]:
    """Return the message as one of OpenTelemetry's GenAI messages."""
    content = message.get("content")
    parts: list[dict[str, Any]] = []
    if isinstance(reasoning := message.get("reasoning_content"), str):
        parts.append({"type": "reasoning", "content": reasoning})
    if message.get("role") == "tool":
        identifier = message.get("tool_call_id")
        parts = [{"type": "tool_call_response", "id": identifier, "response": content}]
    elif isinstance(content, str):
        parts.append({"type": "text", "content": content})
    else:
        for block in content or ():
            text = block.get("type") == "text"
            parts.append(
                {"type": "text", "content": block.get("text")} if text else block
            )
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        parts.append(
            {
                "type": "tool_call",
                "id": call.get("id"),
                "name": function.get("name"),
                "arguments": _object(function.get("arguments")),
            }
        )
    return {"role": message.get("role"), "parts": parts}


def completion(
    message: Message, finish: str | None, model: str | None = None
) -> dict[str, Any]:
    """Return the message as a reply of chat completions."""
    reason = FINISH.get(finish or "", finish)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**({"model": model} if model else {}), "choices": [choice]}


def without_nulls(reply: Any) -> Any:
    """Return a reply as the openai client dumps it, without the fields that no server
    sent."""
    if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
        return reply
    choices = []
    for choice in reply["choices"]:
        message = choice.get("message") or {}
        kept = {k: v for k, v in message.items() if v is not None or k == "content"}
        choices.append({**choice, "message": kept})
    return {**reply, "choices": choices}


def _fields(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a message, wherever LangChain's ways of writing one put them."""
    if value.get("type") == "constructor" and isinstance(value.get("kwargs"), dict):
        kind = str((value.get("id") or ["?"])[-1]).removesuffix("Chunk")
        return {"type": kind.removesuffix("Message").lower(), **value["kwargs"]}
    if isinstance(value.get("data"), dict) and isinstance(value.get("type"), str):
        return {"type": value["type"], **value["data"]}
    return value


def _role(plain: Mapping[str, Any]) -> str:
    role = plain.get("role") or str(plain.get("type", "")).removesuffix(CHUNK).lower()
    return ROLES.get(role, "") if isinstance(role, str) else ""


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    """The call as OpenAI has it; arguments that were parsed are JSON again."""
    if "function" in call:
        return {"type": "function", **call}
    arguments = call.get("args", call.get("arguments"))
    written = arguments if isinstance(arguments, str) else _json(arguments)
    function = {"name": call.get("name"), "arguments": written}
    return {"id": call.get("id"), "type": "function", "function": function}


def _json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _object(arguments: Any) -> Any:
    """The arguments as an object where they are one, else as they were written."""
    try:
        found = json.loads(arguments)
    except (ValueError, TypeError, RecursionError):
        return arguments
    return found if isinstance(found, dict) else arguments


def all_openai(values: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Return the messages as OpenAI has them."""
    return [as_openai(value) for value in values]
