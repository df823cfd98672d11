"""What one message on the wire may weigh, and how deep it may be nested."""

from __future__ import annotations

import json
import re
from itertools import accumulate
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
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    if _is_too_deep(text):
        raise TooDeep
    try:
        return json.loads(text, **how)
    except RecursionError:  # the caller itself stands at the end of the stack
        raise TooDeep from None


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LEVEL = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _LEVEL)


def _is_too_deep(text: str) -> bool:
    """Whether a JSON text has more than DEEPEST levels, told before any parser has
    followed them: one that gave up half way would leave a full stack behind."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    written = _STRING.sub(b"", text.encode("utf-8", "surrogatepass"))
    brackets = written.translate(None, delete=_NO_BRACKETS)
    return max(accumulate(map(_LEVEL.__getitem__, brackets)), default=0) > DEEPEST
