"""JSON as lines that know their path, so that a difference can be marked in place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from equivalence.gateway.canonical import ABSENT
from equivalence.runs.steps import first_choice
from equivalence.show.page.tool_lists import tools_of
from equivalence.show.page.values import text


@dataclass(frozen=True)
class Line:
    """One line of pretty JSON: `key` with its quotes and colon, then `text`."""

    depth: int
    key: str
    text: str
    tools: tuple[dict[str, Any], ...] = ()
    """The tools that stand in this line, folded."""
    absent: bool = False
    """Not in the JSON: what the other side has and this one lacks."""


@dataclass(frozen=True)
class Block:
    """Lines that belong together; `path` where the other side differs there."""

    lines: list[Line]
    path: str = ""


@dataclass(frozen=True)
class _Placed:
    line: Line
    path: str


def blocks(value: Any, marks: Iterable[str] = (), *, fold: bool = True) -> list[Block]:
    """Return the value as pretty JSON in blocks. Each path of `marks` is a block of its
    own: the value there, or, where it is absent, a line that says so. A list of tools
    is folded to one line, unless a mark lies in it."""
    placed = list(_lines(value, "", "$", 0, "", tuple(marks) if fold else None))
    targets = {_existing(placed, path) or path: path for path in marks}
    found: list[Block] = []
    plain: list[Line] = []
    marked: list[Line] = []
    inside = ""
    for each, after in pairwise([*placed, _Placed(Line(0, "", ""), "")]):
        if not inside and each.path in targets:
            inside = each.path
        (marked if inside else plain).append(each.line)
        if inside and not _within(after.path, inside):
            if plain:
                found.append(Block(plain))
            found.append(Block(marked, targets[inside]))
            plain, marked, inside = [], [], ""
    return [*found, Block(plain)] if plain else found


def reply_path(path: str, exchange: dict[str, Any]) -> str:
    """Return the path in the reply as it was sent for one in its compared form."""
    if exchange.status == 200 and first_choice(exchange.reply):
        return re.sub(r"^\$\.(message|finish_reason)\b", r"$.choices[0].\1", path)
    return re.sub(r"^\$\.body\b", "$", path)


def _lines(
    value: Any,
    key: str,
    path: str,
    depth: int,
    comma: str,
    marks: tuple[str, ...] | None,
) -> Iterator[_Placed]:
    """The lines of a value; `marks` None: no list of tools is folded."""
    tools = tools_of({"tools": value}) if path == "$.tools" else ()
    if tools and marks is not None and not any(_within(m, path) for m in marks):
        yield _Placed(Line(depth, key, comma, tools), path)
        return
    if not isinstance(value, dict | list) or not value:
        yield _Placed(Line(depth, key, text(value) + comma), path)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield _Placed(Line(depth, key, opening), path)
    if isinstance(value, dict):
        inner = [(f"{text(k)}: ", f"{path}.{k}", v) for k, v in value.items()]
    else:
        inner = [("", f"{path}[{i}]", v) for i, v in enumerate(value)]
    for number, (name, place, each) in enumerate(inner, 1):
        more = "," if number < len(inner) else ""
        yield from _lines(each, name, place, depth + 1, more, marks)
    for mark in marks or ():  # a path that leads into this container and is not there
        known = any(_within(mark, place) for _, place, _ in inner)
        if mark != path and _within(mark, path) and not known:
            name = mark.removeprefix(path).lstrip(".")
            line = Line(depth + 1, f"{name}: ", ABSENT, absent=True)
            yield _Placed(line, mark)
    yield _Placed(Line(depth, "", closing + comma), path)


def _existing(placed: list[_Placed], path: str) -> str:
    """The path, or the nearest one above it that has a line: arguments are one string
    on the wire and are compared inside."""
    found = [each.path for each in placed if _within(path, each.path)]
    return max(found, key=len, default="")


def _within(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))
