"""Pictures, drawn as SVG from what the agents do: traces side by side, and a plot.

A page shows a picture by its file. `make docs` draws the file anew; where PAGES_CHECK
is set, a file that would be drawn differently is an error instead.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from unicodedata import east_asian_width

import cog

from blocks.page import ROOT, importable, language, said, up

FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'Noto Sans CJK SC', sans-serif"
INK, PALE, PAPER = "#1f2430", "#5b6472", "#ffffff"
CARD, LINE, GOOD, BAD = "#f3f5f9", "#cdd3de", "#1a7f4b", "#c4321f"
COLOURS = ("#c4321f", "#1d5fa8", "#1a7f4b")
QUESTION = "北京和上海今天哪个更暖和？"


class Drawing:
    """Shapes on white paper; text is cut into lines that fit."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.shapes: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, edge: str
    ) -> None:
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"'
            f' fill="{fill}" stroke="{edge}"/>'
        )

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, width: float = 1
    ):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}"'
            f' stroke-width="{width:g}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 13,
        colour: str = INK,
        bold: bool = False,
        anchor: str = "start",
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"'
            f' text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def svg(self, height: float, title: str) -> str:
        inside = "\n".join(self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width}'
            f' {height:g}" width="{self.width}" height="{height:g}" role="img"'
            f' font-family="{FONT}">\n<title>{escape(title)}</title>\n'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n{inside}\n</svg>\n'
        )


def wrapped(words: str, width: float, size: int = 13) -> list[str]:
    """Return the words in lines of at most so many pixels."""
    lines = [""]
    used = 0.0
    for piece in _pieces(words):
        wide = sum(size * (1.0 if east_asian_width(c) in "WF" else 0.56) for c in piece)
        if used + wide > width and lines[-1]:
            lines.append("")
            used, piece = 0.0, piece.lstrip()
        lines[-1] += piece
        used += wide
    return [line.rstrip() for line in lines]


def _pieces(words: str) -> list[str]:
    """The words in pieces between which a line may end."""
    pieces = [""]
    for character in words:
        wide = east_asian_width(character) in "WF"
        if wide or character == " " or (pieces[-1][-1:] and _is_wide(pieces[-1])):
            pieces.append("")
        pieces[-1] += character
    return [piece for piece in pieces if piece]


def _is_wide(piece: str) -> bool:
    return east_asian_width(piece[-1]) in "WF"


@functools.cache
def _observed(names: tuple[str, ...], question: str) -> list[Any]:
    """What the implementations do with the question, offline; once for all pages."""
    importable()
    from config import load_settings
    from equivalence.gateway import Gateway
    from equivalence.runs.observe import observe
    from equivalence.table import read_table
    from offline_model import OfflineModel
    from tools import TOOLS

    known = read_table(ROOT)
    with Gateway(OfflineModel()) as gateway:
        return [
            observe(known.find(name), question, load_settings(), gateway, TOOLS).run
            for name in names
        ]


def side_by_side(
    file: str, alt: str, names: tuple[str, ...], labels: Mapping[str, str]
) -> None:
    """Draw what the implementations do with QUESTION, and show the picture: columns are
    implementations, those that do the same share one; below stand the judge's words."""
    from equivalence.judge.compare import compare
    from equivalence.runs.words import call, ending, mark, short

    runs = _observed(names, QUESTION)
    columns: dict[tuple[Any, ...], list[str]] = {}
    for run in runs:
        trace = tuple(
            tuple(
                (call(s), f"{mark(s)} {s.result}") for s in run.steps if s.turn == turn
            )
            for turn in range(1, len(run.model_calls) + 1)
        )
        columns.setdefault((*trace[:-1], ending(run)), []).append(run.implementation)
    weights = [len(found) for found in columns.values()]
    drawing = Drawing(960)
    drawing.text(
        24,
        34,
        said("Question: {question}").format(question=QUESTION),
        size=16,
        bold=True,
    )
    places = [compare(runs[0], run) for run in runs[1:]]
    place = next((found for found in places if found), None)
    left, bottom, room = 24.0, 0.0, 960 - 24 * (len(columns) + 1)
    for (*turns, end), found in columns.items():
        wide = room * (0.5 if len(columns) == 2 else len(found) / sum(weights))
        heads, y = found, 58.0
        slot = wide / len(heads)
        for number, name in enumerate(heads):
            drawing.box(left + slot * number, y, slot - 6, 48, "#e6ecf7", LINE)
            x = left + slot * number + (slot - 6) / 2
            drawing.text(x, y + 20, name, bold=True, anchor="middle")
            drawing.text(
                x, y + 38, labels.get(name, ""), size=11, colour=PALE, anchor="middle"
            )
        y += 62
        for number, calls in enumerate(turns, 1):
            wrong = place is not None and found[-1] == runs[-1].implementation
            wrong = wrong and number == place.model_call
            turn = said("turn {number}: the model asks, the tools answer")
            lines = [(turn.format(number=number), PALE)]
            for asked, result in calls:
                lines += [(line, INK) for line in wrapped(asked, wide - 34)]
                lines += [(line, PALE) for line in wrapped(short(result), wide - 34)]
            y = _card(drawing, left, y, wide - 6, lines, BAD if wrong else LINE)
        lines = [
            (said("answer"), PALE),
            *((line, INK) for line in wrapped(end, wide - 34)),
        ]
        y = _card(drawing, left, y, wide - 6, lines, LINE)
        left, bottom = left + wide + 24, max(bottom, y)
    verdict = said("The judge: {left} vs {right}: equivalent")
    colour = GOOD
    cause = number = ""
    if place is not None:
        verdict = said(
            "The judge: {left} vs {right}: different,"
            " cause: {cause}, model call {number}"
        )
        colour, cause, number = BAD, place.cause, str(place.model_call)
    verdict = verdict.format(
        left=runs[0].implementation,
        right=", ".join(names[1:]),
        cause=cause,
        number=number,
    )
    drawing.text(24, bottom + 24, verdict, colour=colour, bold=True)
    if place is not None:
        for row, (run, sent) in enumerate(
            ((runs[0], place.left), (runs[-1], place.right))
        ):
            words = said("{name} sent: {value}").format(
                name=run.implementation, value=short(sent, 110)
            )
            drawing.text(24, bottom + 46 + 18 * row, words, size=12, colour=PALE)
        bottom += 40
    show(file, alt, drawing.svg(bottom + 44, alt))


def _card(
    drawing: Drawing,
    x: float,
    y: float,
    width: float,
    lines: Sequence[tuple[str, str]],
    edge: str,
) -> float:
    """Draw lines of text in a box; return where the next one may begin."""
    height = 14 + 19 * len(lines)
    drawing.box(x, y, width, height, CARD, edge)
    for number, (words, colour) in enumerate(lines):
        drawing.text(x + 12, y + 22 + 19 * number, words, colour=colour)
    return y + height + 10


def plot(
    file: str,
    alt: str,
    series: Mapping[str, Sequence[int]],
    across: str,
    up_: str,
    limit: tuple[int, str],
) -> None:
    """Draw one line for each series of numbers, and a grey one for a limit; show it."""
    drawing, height = Drawing(760), 380.0
    longest = max(map(len, series.values()))
    top = max([limit[0], *(number for s in series.values() for number in s)])
    step = 500

    def at(index: float, number: float) -> tuple[float, float]:
        x = 70 + 520 * index / max(longest - 1, 1)
        return round(x, 1), round(320 - 280 * number / (top * 1.05), 1)

    for number in range(0, top + 1, step):
        drawing.line([at(0, number), at(longest - 1, number)], "#e6e9ef")
        x, y = at(0, number)
        drawing.text(x - 8, y + 4, f"{number:,}", size=11, colour=PALE, anchor="end")
    for index in range(longest):
        if index in (0, longest - 1) or (index + 1) % 5 == 0:
            x, y = at(index, 0)
            drawing.text(
                x, y + 18, str(index + 1), size=11, colour=PALE, anchor="middle"
            )
    drawing.text(330, 356, across, size=12, colour=PALE, anchor="middle")
    drawing.text(20, 24, up_, size=12, colour=PALE)
    lines = list(zip(series.items(), COLOURS, strict=False))
    ends = [(said(name), numbers[-1], colour) for (name, numbers), colour in lines]
    drawing.line([at(0, limit[0]), at(longest - 1, limit[0])], PALE)
    labels = sorted([*ends, (limit[1], limit[0], PALE)], key=lambda each: -each[1])
    last = 0.0
    for name, number, colour in labels:
        x, y = at(longest - 1, number)
        last = max(y + 4, last + 16)
        drawing.text(x + 10, last, name, size=12, colour=colour, bold=colour != PALE)
    for (_, numbers), colour in lines:
        drawing.line([at(i, n) for i, n in enumerate(numbers)], colour, 2.5)
    show(file, alt, drawing.svg(height, alt))


def show(file: str, alt: str, svg: str) -> None:
    """Write the picture's file, and the line that shows it."""
    of_language = "zh/" if language() == "zh" else ""
    path = ROOT / "docs" / "pictures" / f"{of_language}{file}"
    if os.environ.get("PAGES_CHECK"):
        assert path.read_text(encoding="utf-8") == svg, f"{file} is out of date"
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(svg, encoding="utf-8")
    cog.outl(f"![{alt}]({up()}docs/pictures/{of_language}{file})")
