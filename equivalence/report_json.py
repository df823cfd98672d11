"""JSON for the report page: as lines that know their path, and values in contrast."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

from equivalence.trace import first_choice
from gateway.canonical import ABSENT

LONGEST_PART = 240
CONTEXT = 60
JOINERS = "\u200c\u200d"
"""Format characters that scripts and emoji need; the others are shown escaped."""


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
class Part:
    """A value with the part in which it differs from another."""

    before: str
    differing: str
    after: str
    absent: bool = False


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
    if exchange["status"] == 200 and first_choice(exchange["reply"]):
        return re.sub(r"^\$\.(message|finish_reason)\b", r"$.choices[0].\1", path)
    return re.sub(r"^\$\.body\b", "$", path)


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


def tools_of(request: Any) -> tuple[dict[str, Any], ...]:
    """Return the tools of the request, () where they are not a list of tools."""
    tools = request.get("tools") if isinstance(request, dict) else None
    if not isinstance(tools, list) or not all(isinstance(t, dict) for t in tools):
        return ()
    return tuple(tools)


def tool_names(tools: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names of the tools."""
    functions = (tool.get("function") for tool in tools)
    return [
        str(function.get("name")) if isinstance(function, dict) else "?"
        for function in functions
    ]


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
