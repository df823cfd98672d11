"""The form in which requests are compared and recorded, and the way back to the wire.

Two requests mean the same when their canonical forms are equal: ids are numbered in
order of appearance and arguments are parsed, so neither made-up ids nor spacing count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

ABSENT = "(absent)"


def canonical_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request in the form in which requests are compared."""
    plain = dict(request)
    messages = plain.get("messages")
    if isinstance(messages, list):
        ids: dict[Any, str] = {}
        plain["messages"] = [canonical_message(message, ids) for message in messages]
    return plain


def canonical_message(message: Any, ids: dict[Any, str]) -> Any:
    """Return the message with ids numbered in order of appearance, arguments parsed;
    `ids` remembers the numbers given so far."""
    if not isinstance(message, dict):
        return message
    plain = dict(message)
    if isinstance(calls := plain.get("tool_calls"), list):
        plain["tool_calls"] = [_call(call, ids) for call in calls]
    if "tool_call_id" in plain:
        plain["tool_call_id"] = _number(plain["tool_call_id"], ids)
    return plain


def wire_request(canonical: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request, as a client might have sent it, whose canonical form this is:
    arguments are JSON text again."""
    plain = dict(canonical)
    messages = plain.get("messages")
    if isinstance(messages, list):
        plain["messages"] = [_wire_message(message) for message in messages]
    return plain


def differences(
    left: Any, right: Any, path: str = "$"
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (JSON path, left value, right value) of each difference, in order."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in dict.fromkeys([*left, *right]):
            yield from differences(
                left.get(key, ABSENT), right.get(key, ABSENT), f"{path}.{key}"
            )
    elif isinstance(left, list) and isinstance(right, list):
        for index in range(max(len(left), len(right))):
            a, b = (
                side[index] if index < len(side) else ABSENT for side in (left, right)
            )
            yield from differences(a, b, f"{path}[{index}]")
    elif not _equal(left, right):
        yield path, left, right


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    both_nan = left != left and right != right  # raw replies may hold NaN
    return bool(left == right) or both_nan


def excerpts(left: Any, right: Any, limit: int) -> tuple[str, str]:
    """Return the two values as JSON, each in at most `limit` characters, which begin
    shortly before the first one in which they differ."""
    texts = [json.dumps(value, ensure_ascii=False) for value in (left, right)]
    pairs = enumerate(zip(*texts, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(map(len, texts)))
    start = max(0, same - limit // 4) if max(map(len, texts)) > limit else 0
    parts = [text[start : start + limit] for text in texts]
    a, b = (
        f"{'…' * bool(start)}{part}{'…' * (start + limit < len(text))}"
        for part, text in zip(parts, texts, strict=True)
    )
    return a, b


def _call(call: Any, ids: dict[Any, str]) -> Any:
    if not isinstance(call, dict):
        return call
    plain = {**call, "id": _number(call.get("id"), ids)}
    if isinstance(function := plain.get("function"), dict):
        arguments = _arguments(function.get("arguments"))
        plain["function"] = {**function, "arguments": arguments}
    return plain


def _number(identifier: Any, ids: dict[Any, str]) -> str:
    return ids.setdefault(json.dumps(identifier), f"call {len(ids) + 1}")


def _arguments(arguments: Any) -> Any:
    if arguments is None or arguments == "":
        return {}
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _wire_message(message: Any) -> Any:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [_wire_call(call) for call in calls]}


def _wire_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    text = json.dumps(function.get("arguments"), ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}
