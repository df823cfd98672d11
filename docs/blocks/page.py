"""The page that is being made: what is written to it, and where its links lead."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cog

from blocks.words import CHINESE

ROOT = Path(__file__).resolve().parent.parent.parent


def fence(language: str, lines: Iterable[str]) -> None:
    cog.outl(f"```{language}")
    for line in lines:
        cog.outl(line)
    cog.outl("```")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; a column of numbers stands to the right."""
    rows = [list(row) for row in rows]
    numeric = [all(isinstance(row[i], int) for row in rows) for i, _ in enumerate(head)]
    cog.outl(_row(head))
    cog.outl(_row("---:" if right else "---" for right in numeric))
    for row in rows:
        cog.outl(_row(row))


def _row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def value(text: Any, limit: int = 60) -> str:
    """Return a value as code for a cell of a table, in one line."""
    plain = " ".join(str(text).split())
    plain = plain if len(plain) <= limit else f"{plain[: limit - 1]}…"
    return (
        f"`{plain.replace('`', chr(39)).replace('|', '¦')}`"
        if plain
        else said("nothing")
    )


def up() -> str:
    """What leads from the page that is being made to the project's folder."""
    folder = Path(cog.inFile).resolve().parent
    if not folder.is_relative_to(ROOT):
        return "../"  # a page that a test makes up
    return "../" * len(folder.relative_to(ROOT).parts)


def language() -> str:
    """The language of the page, and of what is printed on it."""
    page = Path(cog.inFile)
    return "zh" if page.parent.name == "zh" or page.stem.endswith(".zh-CN") else "en"


def said(text: str) -> str:
    """Return a sentence of ours in the language of the page: as the catalogue of what
    is printed has it, else as blocks/words.py does. Raises LookupError if neither has
    it."""
    if language() == "en":
        return text
    importable()
    from equivalence.language import _

    told = CHINESE.get(text, "") if _(text) == text else _(text)
    if not told:
        raise LookupError(f"no Chinese for {text!r} in blocks/words.py")
    return told


def importable() -> None:
    """Let the project's modules be imported, and speak the language of the page; cog
    resets the path with each page."""
    os.environ["LLM_LANG"] = language()
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
