"""Values as text: cut short, set against each other, and JSON with a place marked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from equivalence.gateway.canonical import ABSENT
from equivalence.language import _
from equivalence.runs.words import visible

LONGEST_PART = 240
CONTEXT = 60
DEEPEST = 24
"""The deepest indent of a line of JSON; what lies deeper is not indented further."""


def text(value: Any) -> str:
    """Return the value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def short(value: Any, limit: int = LONGEST_PART) -> str:
    """Return the value as one line of at most `limit` characters."""
    line = value if isinstance(value, str) else text(value)
    line = " ".join(line[: 4 * limit].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def language_of(value: str) -> str:
    """Return the language of the text, as far as its script tells; "" for Latin."""
    if re.search(r"[\u3040-\u30ff]", value):
        return "ja"
    if re.search(r"[\uac00-\ud7af]", value):
        return "ko"
    return "zh" if re.search(r"[\u3400-\u9fff]", value) else ""


# ------------------------------------------------------------------------- in contrast


@dataclass(frozen=True)
class Part:
    """A value with the part in which it differs from another."""

    before: str
    differing: str = ""
    after: str = ""
    absent: bool = False


def contrast(left: Any, right: Any) -> tuple[Part, Part]:
    """Return both values with the part in which they differ set off: two texts as they
    are, everything else as JSON."""
    if left is ABSENT or right is ABSENT:
        return _alone(left), _alone(right)
    texts = isinstance(left, str) and isinstance(right, str)
    a, b = (value if texts else text(value) for value in (left, right))
    start = _common(a, b)
    end = min(_common(a[::-1], b[::-1]), min(len(a), len(b)) - start)
    alike = 2 * (start + end) >= min(len(a), len(b)) and start + end > 2
    if not alike and max(len(a), len(b)) <= LONGEST_PART:
        return Part(a), Part(b)
    return _part(a, start, end), _part(b, start, end)


def _alone(value: Any) -> Part:
    if value is ABSENT:
        return Part("", absent=True)
    return Part(short(value, 2 * LONGEST_PART))


def _common(a: str, b: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


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
        differing = differing.replace(" ", "␣").replace("\n", "⏎\n")
    return Part(before, differing, after)


# -------------------------------------------------------------------------------- JSON


@dataclass(frozen=True)
class Fold:
    """Lines of JSON that stand elsewhere on the page already, as one line."""

    anchor: str
    """The element that holds them."""
    words: str
    items: int | None = None
    """How many items of a list they are, from its beginning; None: the whole value."""


@dataclass(frozen=True)
class _Line:
    path: str
    depth: int
    html: Markup
    absent: bool = False


def json_html(
    value: Any,
    marks: Iterable[str] = (),
    folds: Mapping[str, Fold] | None = None,
    anchors: Mapping[str, str] | None = None,
) -> Markup:
    """Return the value as pretty JSON in HTML.

    Each path of `marks` is set off: the value there, or, where it is absent, a line
    that says so. What `folds` names by its path is one line, unless a mark lies in it;
    the items of a list that `anchors` names by its path are one element with that id.
    """
    marks = list(marks)
    lines = list(_lines(value, "$", 0, "", "", marks, folds or {}))
    targets = {_nearest(lines, path) or path: path for path in marks}
    return Markup('<div class="json">{}</div>').format(
        Markup().join(_marked(lines, targets, anchors or {}))
    )


def _lines(
    value: Any,
    path: str,
    depth: int,
    key: str,
    comma: str,
    marks: list[str],
    folds: Mapping[str, Fold],
) -> Iterator[_Line]:
    def line(what: Any, at: str = path, by: int = 0) -> _Line:
        name = Markup('<span class="k">{}</span>').format(visible(key)) if key else ""
        return _Line(at, depth + by, Markup("{}{}").format("" if by else name, what))

    fold = folds.get(path)
    if fold and fold.items is None and not any(_within(m, path) for m in marks):
        yield line(_folded(fold) + comma)
        return
    if not isinstance(value, dict | list) or not value:
        yield line(visible(text(value)) + comma)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield line(opening)
    if isinstance(value, dict):
        inner = [(f"{text(k)}: ", f"{path}.{k}", v) for k, v in value.items()]
    else:
        inner = [("", f"{path}[{i}]", v) for i, v in enumerate(value)]
    begin = fold.items or 0 if fold else 0
    if any(_within(m, place) for m in marks for _, place, _ in inner[:begin]):
        begin = 0
    if fold and begin:
        more = "," if begin < len(inner) else ""
        yield line(_folded(fold) + more, inner[0][1], 1)
    for number, (name, place, each) in enumerate(inner[begin:], begin + 1):
        more = "," if number < len(inner) else ""
        yield from _lines(each, place, depth + 1, name, more, marks, folds)
    for mark in marks:  # a path that leads into this container and is not there
        known = any(_within(mark, place) for _, place, _ in inner)
        if mark != path and _within(mark, path) and not known:
            name = visible(mark.removeprefix(path).lstrip("."))
            yield _Line(
                mark,
                depth + 1,
                escape(_("{name}: (absent)").format(name=name)),
                absent=True,
            )
    yield _Line(path, depth, escape(closing + comma))


def _folded(fold: Fold) -> Markup:
    return Markup('<a data-fold href="#{}">{}</a>').format(fold.anchor, fold.words)


def _marked(
    lines: list[_Line], targets: Mapping[str, str], anchors: Mapping[str, str]
) -> Iterator[Markup]:
    """The lines as HTML: around those that lie in an anchored list, and around those
    that are marked, one element each."""
    regions: list[tuple[str, Callable[[str], bool]]] = []
    for path, anchor in anchors.items():
        tag = Markup('<span id="{}">').format(anchor)
        regions.append((tag, lambda at, path=path: at.startswith(f"{path}[")))  # type: ignore[misc]
    for path, told in targets.items():
        tag = Markup('<mark class="path" data-path="{}">').format(visible(told))
        regions.append((tag, lambda at, path=path: _within(at, path)))  # type: ignore[misc]
    inside: list[tuple[str, Callable[[str], bool]]] = []
    for line in [*lines, _Line("", 0, Markup())]:
        while inside and not inside[-1][1](line.path):
            opening, _region = inside.pop()
            yield Markup("</span>" if opening.startswith("<span") else "</mark>")
        for region in regions:
            if region not in inside and region[1](line.path):
                inside.append(region)
                yield Markup(region[0])
        if line.path:
            yield _line_html(line)


def _line_html(line: _Line) -> Markup:
    depth, absent = min(line.depth, DEEPEST), " absent" if line.absent else ""
    return Markup('<span class="l d{}{}">{}{}\n</span>').format(
        depth, absent, "  " * line.depth, line.html
    )


def _nearest(lines: list[_Line], path: str) -> str:
    """The path, or the nearest one above it that has a line: arguments are one string
    on the wire and are compared inside."""
    found = [line.path for line in lines if _within(path, line.path)]
    return max(found, key=len, default="")


def _within(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))
