"""A value in one line of text: cut short, made visible, in contrast to another."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from equivalence.gateway.canonical import ABSENT

LONGEST_PART = 240


CONTEXT = 60


JOINERS = "\u200c\u200d"
"""Format characters that scripts and emoji need; the others are shown escaped."""


@dataclass(frozen=True)
class Part:
    """A value with the part in which it differs from another."""

    before: str
    differing: str
    after: str
    absent: bool = False


def text(value: Any) -> str:
    """Return the value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def short(value: Any, limit: int = LONGEST_PART) -> str:
    """Return the value as one line of at most `limit` characters."""
    line = " ".join((value if isinstance(value, str) else text(value)).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def visible(value: str) -> str:
    """Return the text with what cannot be seen escaped: controls, and characters that
    turn the direction of the text or have no width."""
    return value if value.isascii() and value.isprintable() else _shown(value)


def _shown(value: str) -> str:
    return "".join(
        f"\\u{ord(c):04x}"
        if c not in "\n\t" + JOINERS and unicodedata.category(c) in ("Cc", "Cf", "Cs")
        else c
        for c in value
    )


def language(value: str) -> str:
    """Return the language of the text, as far as its script tells; "" for Latin."""
    if re.search(r"[\u3040-\u30ff]", value):
        return "ja"
    if re.search(r"[\uac00-\ud7af]", value):
        return "ko"
    return "zh" if re.search(r"[\u3400-\u9fff]", value) else ""


def contrast(left: Any, right: Any) -> tuple[Part, Part]:
    """Return both values as text, with the part in which they differ set off."""
    a, b = (ABSENT if value == ABSENT else text(value) for value in (left, right))
    start = _common(a, b)
    end = min(_common(a[::-1], b[::-1]), min(len(a), len(b)) - start)
    alike = 2 * (start + end) >= min(len(a), len(b)) and start + end > 2
    if ABSENT in (left, right) or not alike:
        return Part(short(a), "", "", left == ABSENT), Part(
            short(b), "", "", right == ABSENT
        )
    return _part(a, start, end), _part(b, start, end)


def _common(a: str, b: str) -> int:
    """How many characters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b)))  # noqa: B905


def _part(whole: str, start: int, end: int) -> Part:
    stop = len(whole) - end
    before, differing, after = whole[:start], whole[start:stop], whole[stop:]
    if len(before) > CONTEXT:
        before = "…" + re.sub(r"^\S{0,20}\s", "", before[-CONTEXT:])
    if len(after) > CONTEXT:
        after = re.sub(r"\s\S{0,20}$", "", after[:CONTEXT]) + "…"
    if len(differing) > LONGEST_PART:
        differing, after = differing[:LONGEST_PART] + "…", ""
    if differing and not differing.strip():
        differing = differing.replace(" ", "␣")
    return Part(before, differing, after)
