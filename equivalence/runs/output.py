"""What both command lines print to: a console that is never too poor, a reader that may
leave, a device that may be full. Importing this module loads nothing that draws.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any
from unicodedata import east_asian_width

from equivalence.errors import UsageError
from equivalence.language import _

if TYPE_CHECKING:
    from rich.console import Console


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Breaks lines by the columns they take, which in Chinese are two a character."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrapped(" ".join(text.split()), width)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        # argparse indents what follows by the characters of the prefix.
        prefix = _("usage: ") if prefix is None else prefix
        blank = "\0" * columns(prefix)
        return (
            super()
            ._format_usage(usage, actions, groups, blank)
            .replace(blank, prefix, 1)
        )


class FilledHelpFormatter(HelpFormatter):
    """Breaks description and epilog into lines, too."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = wrapped(" ".join(text.split()), width - len(indent))
        return "\n".join(indent + line for line in lines)


def columns(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    return sum(1 + (east_asian_width(character) in "WF") for character in text)


_WIDE, _CLOSING = "\u3000-\u9fff\uff00-\uffef", "，。：；？！、）」"
_WORD = re.compile(rf"\s*(?:[{_WIDE}]|[^\s{_WIDE}]+)[{_CLOSING}]*")
"""What a line is not broken in: one Chinese character, or a word."""


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of at most `width` columns, broken at blanks and between
    Chinese characters, never before a sign that closes."""
    places = [0, *breaks(text, width), len(text)]
    return [text[a:b].strip() for a, b in pairwise(places)]


def breaks(text: str, width: int) -> list[int]:
    """Return where lines of at most `width` columns begin, but for the first one and
    those that begin on their own."""
    found, used = [], 0
    for word in _WORD.finditer(text):
        blanks, wide = word[0].count("\n"), columns(word[0])
        used = wide if blanks else used + wide
        if used > width and used > wide:
            found.append(word.end() - len(word[0].lstrip()))
            used = columns(word[0].lstrip())
    return found


def run_command(work: Callable[[], int]) -> int:
    """Return the exit code of `work`, with all it printed written out.

    A character that a console lacks becomes "?". It is 0 where the reader of the output
    has left (`… | head`); 2, with one line on standard error, for what the user gave
    and for what cannot be read or written.
    """
    # A framework makes 300,000 objects that stay: to look through them for garbage,
    # again and again on import and once more at the end, takes a fifth of a second.
    gc.set_threshold(20_000, 20)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    _fill_closed_descriptors()
    for stream in (sys.stdin, sys.stdout, sys.stderr):  # each None where it is closed
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    try:
        code = work()
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:
        code = 0
    except (UsageError, OSError) as error:
        from equivalence.phrases import translated

        print(
            _("error: {error}").format(error=translated(one_line(error))),
            file=sys.stderr,
        )
        code = 2
    _drop_what_cannot_be_written()
    return code


_document: IO[str] | None = None


def json_stream() -> IO[str]:
    """Return where the JSON document of a command goes."""
    return _document or sys.stdout


@contextmanager
def nothing_but_the_document() -> Iterator[None]:
    """Keep standard output for the JSON document: what an agent, a tool or a module of
    the user's prints meanwhile goes to standard error."""
    global _document
    kept, nowhere = sys.stdout, None
    if kept is None:  # it is closed
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    _document, sys.stdout = kept or nowhere, sys.stderr
    try:
        yield
    finally:
        sys.stdout, _document = kept, None
        if nowhere:
            nowhere.close()


def one_line(error: Exception) -> str:
    """Return the words of the error in one line that steers no terminal."""
    from equivalence.phrases import translated
    from equivalence.runs.words import visible

    words = str(error)
    if isinstance(error, OSError) and error.strerror:
        words = ": ".join(
            filter(None, (str(error.filename or ""), translated(error.strerror)))
        )
    return visible(" ".join(words.split()))


def console(file: IO[str] | None = None) -> Console:
    """Return a console of rich's; where its reader has left it raises BrokenPipeError,
    not SystemExit, which would end the thread that happens to print."""
    from rich.console import Console
    from rich.text import Text

    from equivalence.runs.hanging import hanging

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich calls it while it handles the error

        def print(self, *objects: Any, **options: Any) -> None:
            if not options.get("soft_wrap"):
                objects = tuple(map(self._in_lines, objects))
            super().print(*objects, **options)

        def _in_lines(self, each: Any) -> Any:
            if isinstance(each, str):
                each = self.render_str(each)
            if isinstance(each, Text):
                return Text("\n").join(hanging(each, self, self.width))
            return each

    return Output(file=file, highlight=False, emoji=False)


def _fill_closed_descriptors() -> None:
    """Else a socket gets the number of a standard stream, at which libuv aborts."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free


def _drop_what_cannot_be_written() -> None:
    """Else Python tries again as it ends, and complains on its own."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
