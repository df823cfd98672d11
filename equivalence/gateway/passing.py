"""What of a stream can go to the client while it is still being written.

The repairs need the whole reply, so only what is certain goes on early: text that, come
what may, is the beginning of the repaired text. What may still become a call written as
text or a think block waits, and so do blanks that may be its last. Structured calls
wait for the end: until then nobody knows whether they were cut off.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from equivalence.gateway.shapes import (
    THINK_BEGIN,
    THINK_BLOCKS,
    THINK_END,
    began_inside,
    whole_characters,
)
from equivalence.gateway.text_calls import OPENING, may_become_calls

_MAY_BEGIN_A_BLOCK = re.compile(
    r"(?:<[a-z:]{0,12}|\[[A-Z]{0,6}|◁[^▷]{0,6}|[\ud800-\udbff])?\s*\Z"
)
_MAY_BEGIN_A_MARK = re.compile(  # a fence in front of it goes with the mark
    r"(?:`{1,3}[\w-]*\s*)?(?:<(?:[a-zA-Z:/|\uff5c][^<>]{0,200})?|\[[A-Z_/]{0,30}"
    r"|<[|\uff5c]channel[|\uff5c]>[^<>]{0,60}|◁[^▷]{0,6}|[\ud800-\udbff])?\s*\Z"
)
_LONGEST_MARK = 300
_PATIENCE = 10_000
"""Characters that may wait for a decision; a text that makes more of them wait goes on
at its end, as a whole."""


class Passing:
    """Takes the text of a stream piece by piece and gives back what can go on.

    `offered`: the tools that a call in the text may name. `inside`: whether the text
    begins in a think block, as the chat templates of some models make it; None: it may,
    so all waits for the first mark of such a block, or for the end.
    """

    def __init__(
        self, offered: Collection[str], *, inside: bool | None = False
    ) -> None:
        self._offered = offered
        self._waiting = ""
        self._close: re.Pattern[str] | None = THINK_END if inside else None
        self._undecided = inside is None
        self._gap: str | None = None
        """The blanks in front of the block that has just ended; None behind none."""
        self._at_start = True
        self._held = False

    def feed(self, piece: str) -> str:
        """Return the text that can go on now."""
        if self._held:
            return ""
        self._waiting += piece
        if self._undecided:
            inside = began_inside(self._waiting)
            self._undecided = inside is None
            self._close = THINK_END if inside else None
            self._held = inside is None and len(self._waiting) > _PATIENCE
            if inside is None:
                return ""
        parts: list[str] = []
        while self._go_on(parts):
            pass
        self._held = self._held or len(self._waiting) > _PATIENCE
        return whole_characters("".join(parts))

    def _go_on(self, parts: list[str]) -> bool:
        """Take one step through what waits; return whether there is another."""
        if self._close is not None:
            end = self._close.search(self._waiting)
            if not end:
                self._waiting = self._waiting[-_LONGEST_MARK:]
                return False
            self._waiting, self._close = self._waiting[end.end() :], None
            self._gap = self._gap or ""
        if not self._waiting.strip():
            return False
        if self._gap is not None:  # the blanks behind a block go with it
            self._waiting, self._gap = self._gap + self._waiting.lstrip(), None
        if self._at_start:
            calls = may_become_calls(self._waiting, self._offered)
            self._held = bool(calls)
            if calls is not False:
                return False
        think = THINK_BEGIN.search(self._waiting)
        call = OPENING.search(self._waiting) if self._offered else None
        if call and not (think and think.start() < call.start()):
            self._held = True
            self._pass(self._sure(self._waiting[: call.start()]), parts)
            return False
        if not think:
            self._pass(self._sure(self._waiting), parts)
            return False
        before = self._waiting[: think.start()]
        self._pass(before.rstrip(), parts)
        self._gap = "" if self._at_start else before[len(before.rstrip()) :]
        self._close = re.compile(re.escape(THINK_BLOCKS[think[0]]))
        self._waiting = self._waiting[think.end() - len(before.rstrip()) :]
        return True

    def _pass(self, sure: str, parts: list[str]) -> None:
        if sure:
            self._at_start = False
            self._waiting = self._waiting[len(sure) :]
            parts.append(sure)

    def _sure(self, text: str) -> str:
        """The text less an end that may begin a mark, and less blanks at its end."""
        pattern = _MAY_BEGIN_A_MARK if self._offered else _MAY_BEGIN_A_BLOCK
        end = pattern.search(text, max(0, len(text) - _LONGEST_MARK))
        return (text[: end.start()] if end else text).rstrip()
