"""A run in words, for the terminal and for a stage's own command line."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from equivalence.gateway.canonical import ABSENT, shown
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs.record import STATUSES, Run, Step

LONGEST_VALUE = 300
MADE_UP = "made up: in no question and no earlier result"


def call(step: Step) -> str:
    """Return the call as it would be written in Python: get_weather(city="北京")."""
    if not isinstance(step.arguments, dict):
        return f"{step.tool}({step.arguments_text})"
    inner = (
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in step.arguments.items()
    )
    return f"{step.tool}({', '.join(inner)})"


def short(value: Any, limit: int = LONGEST_VALUE) -> str:
    """Return the value in one line of at most `limit` characters."""
    if value is ABSENT:
        return _("(absent)")
    text = value if isinstance(value, str) else shown(value)
    text = " ".join(visible(text).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def ungrounded(number: str) -> str:
    """Return the mark beside a call with a number that nobody had said."""
    return _("! {number} was made up: in no question and no earlier result").format(
        number=number
    )


def not_seen(step: Step) -> str:
    """Return what is said where no result was seen."""
    return _("(no result)") if step.ok is False else _("(result not known)")


def mark(step: Step) -> str:
    """Return the sign in front of a result: ✗ where the call did not work."""
    return "✗" if step.ok is False else "→"


def ending(run: Run) -> str:
    """Return the answer, or how the run ended where it has none."""
    if run.status == "completed":
        return run.answer
    meaning = _(STATUSES.get(run.status, ""))
    words = [f"[{run.status}] {meaning}"]
    words += [part for part in (translated(run.error), run.answer) if part]
    return "\n".join(words)


_JOINABLE = "\u0600-\u109f\u1780-\u18af\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
"""Arabic, the scripts of India and South-East Asia, Mongolian; emoji and what follows
one: there a joiner makes one sign of two."""
_MAYBE_INVISIBLE = re.compile(
    f"((?<=[{_JOINABLE}])[\u200c\u200d](?=[{_JOINABLE}]))|[^\\w \n\t]"
)


def visible(text: str) -> str:
    """Return the text with what cannot be seen shown as its code, \\x1b: what steers a
    terminal, turns the direction of writing or has no width, invisible tags too. Line
    breaks, tabs, and the joiners within an emoji or a word that needs them stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return _MAYBE_INVISIBLE.sub(_as_code, text)


def _as_code(found: re.Match[str]) -> str:
    sign = found[0]
    tag = "\U000e0000" <= sign <= "\U000e0fff"
    unseen = tag or unicodedata.category(sign) in ("Cc", "Cf", "Cs")
    return ascii(sign)[1:-1] if unseen and not found[1] else sign
