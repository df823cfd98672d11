"""Text in a narrow window: a line that is too long goes on below its own beginning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.containers import Lines
from rich.text import Text

from equivalence.runs.output import breaks

__all__ = ["Hanging", "hanging"]


class Hanging(Text):
    """Text that a table or a console breaks into lines as `hanging` does."""

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        if options.get("no_wrap"):
            return super().wrap(console, width, **options)
        return hanging(self, console, width)


def hanging(text: Text, console: Console, width: int) -> Lines:
    """Return the text in lines of at most `width` columns. Lines break at blanks and
    between Chinese characters and end in no blank; what goes on is indented by two more
    than the line it belongs to, if that line is indented itself."""
    return Lines(_lines(text, console, width))


def _lines(text: Text, console: Console, width: int) -> Iterator[Text]:
    for line in text.split(allow_blank=True):
        lead = len(line.plain) - len(line.plain.lstrip(" "))
        indent = lead + 2 if 0 < lead + 2 <= width // 2 and lead else 0
        head, rest = line[:indent], line[indent:]
        parts = rest.divide(breaks(rest.plain, width - indent))
        folded = [
            piece  # a word may be longer than a line
            for part in parts
            for piece in Text.wrap(part, console, width - indent, overflow="fold")
        ]
        for number, piece in enumerate(folded):
            whole = (head if number == 0 else Text(" " * indent)) + piece
            whole.rstrip()
            yield whole
