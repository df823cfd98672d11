"""The form in which requests are compared and recorded, and the way back to the wire.

Two requests mean the same when their canonical forms are equal: ids are numbered in
order of appearance and arguments are parsed, so neither made-up ids nor spacing count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import zip_longest
from typing import Any

import msgspec


class Absent:
    """Stands where one side of a difference has nothing; no JSON value equals it."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = Absent()


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


def differences(
    left: Any, right: Any, path: str = "$"
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (JSON path, left value, right value) of each difference, in order."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in left if left.keys() == right.keys() else {**left, **right}:
            a, b = left.get(key, ABSENT), right.get(key, ABSENT)
            if not same_letters(a, b):
                yield from differences(a, b, f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list):
        for index, (a, b) in enumerate(zip_longest(left, right, fillvalue=ABSENT)):
            if not same_letters(a, b):
                yield from differences(a, b, f"{path}[{index}]")
    elif not _equal(left, right):
        yield path, left, right


def same_letters(left: Any, right: Any) -> bool:
    """Tell, at the speed of C, whether two JSON values are the same to the letter, so
    that nobody need walk them. Their bytes are compared, because for == true is 1. Some
    that mean the same are not: objects in another order, 100 and 100.0."""
    if left is right:
        return True
    if type(left) is str or type(right) is str:
        return bool(left == right)
    try:
        return bool(_letters(left) == _letters(right))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False  # something that is no JSON


_letters = msgspec.msgpack.Encoder().encode


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    both_nan = left != left and right != right  # raw replies may hold NaN
    return bool(left == right) or both_nan


@cache
def path_pattern(path: str) -> re.Pattern[str]:
    """Return what fits a path as `differences` writes it, and all that stands below it;
    [*] is any place of a list."""
    return re.compile(re.escape(path).replace(r"\[\*\]", r"\[\d+\]") + r"(?!\w)")


def excerpts(left: Any, right: Any, limit: int) -> tuple[str, str]:
    """Return the two values as JSON, each in at most `limit` characters, which begin
    shortly before the first one in which they differ."""
    texts = [shown(value) for value in (left, right)]
    pairs = enumerate(zip(*texts, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(map(len, texts)))
    start = max(0, same - limit // 4) if max(map(len, texts)) > limit else 0
    parts = [text[start : start + limit] for text in texts]
    a, b = (
        f"{'…' * bool(start)}{part}{'…' * (start + limit < len(text))}"
        for part, text in zip(parts, texts, strict=True)
    )
    return a, b


def shown(value: Any) -> str:
    """Return the value as JSON, "(absent)" where there is none."""
    return repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=False)


def text_offset(left: Any, right: Any) -> int | None:
    """Return the place, in characters from 0, at which two texts begin to differ; None
    where not both are texts."""
    if not isinstance(left, str) or not isinstance(right, str):
        return None
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))


def spelling_alone(left: Any, right: Any) -> bool:
    """Tell whether two texts are the same but for blanks: "1+2" and "1 + 2"."""
    texts = isinstance(left, str) and isinstance(right, str)
    return texts and left != right and "".join(left.split()) == "".join(right.split())


def _call(call: Any, ids: dict[Any, str]) -> Any:
    if not isinstance(call, dict):
        return call
    plain = {**call, "id": _number(call.get("id"), ids)}
    if isinstance(function := plain.get("function"), dict):
        arguments = _arguments(function.get("arguments"))
        plain["function"] = {**function, "arguments": arguments}
    return plain


def _number(identifier: Any, ids: dict[Any, str]) -> str:
    text = isinstance(identifier, str)
    key = identifier if text else (json.dumps(identifier),)  # 1 is not "1"
    return ids.setdefault(key, f"call {len(ids) + 1}")


def _arguments(arguments: Any) -> Any:
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments
