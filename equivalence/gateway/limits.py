"""What one message on the wire may weigh, and how deep it may be nested."""

from __future__ import annotations

import json
from typing import Any

HEAVIEST = 16 * 1024 * 1024
"""Bytes of one reply, after inflating: what is heavier is no reply of a model."""

DEEPEST = 100
"""Levels of nesting that requests, replies and arguments may have. Parsers and the
comparison follow each level with a call, so a bound keeps all of them standing."""


class TooDeep(ValueError):
    """A JSON text is nested more than DEEPEST levels."""

    def __init__(self) -> None:
        super().__init__(f"it is nested more than {DEEPEST} levels deep")


def parse(text: str | bytes, **how: Any) -> Any:
    """Return the JSON value of a text; `how` as for json.loads. Raises TooDeep if it is
    nested too deeply, ValueError if it is no JSON in UTF-8."""
    try:
        value = json.loads(text, **how)
    except RecursionError:
        raise TooDeep from None
    if is_too_deep(value):
        raise TooDeep
    return value


def is_too_deep(value: Any) -> bool:
    """Tell whether a JSON value has more than DEEPEST levels. It goes level by level:
    a function that calls itself would not come back from a very deep one."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
