"""A plot of the growth, as SVG: milliseconds a model call over the length of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from equivalence.language import _
from equivalence.runs.words import visible

if TYPE_CHECKING:
    from equivalence.cost.measuring import Cost

FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'Noto Sans CJK SC', sans-serif"
INK, PALE, GRID = "#1f2430", "#5b6472", "#e6e9ef"
COLOURS = (
    *("#c4321f", "#1d5fa8", "#1a7f4b", "#8a4fb5", "#b07a00", "#0f8b8d"),
    *("#d6478f", "#6b4a2b", "#7a8b00", "#e0702a"),
)
WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 590, 40, 340


def growth(costs: Sequence[Cost]) -> str:
    """Return the plot: one line for each that has figures, grey and broken for a floor;
    both axes are logarithmic."""
    drawn = [cost for cost in costs if cost.growth]
    lengths = sorted({calls for cost in drawn for calls in cost.growth})
    times = [ms for cost in drawn for ms in cost.growth.values()]
    title = _("Milliseconds a model call, by the number of model calls of a run")
    shapes = [_text(LEFT - 46, 24, title, PALE)]
    if drawn:
        low = math.floor(math.log10(min(times)))
        high = math.ceil(math.log10(max(times)))
        high = max(high, low + 1)
        widest = math.log(max(lengths[-1], 2))

        def at(calls: int, ms: float) -> tuple[float, float]:
            x = LEFT + (RIGHT - LEFT) * math.log(calls) / widest
            share = (math.log10(ms) - low) / (high - low)
            return round(x, 1), round(BOTTOM - (BOTTOM - TOP) * share, 1)

        for power in range(low, high + 1):
            y = at(1, 10**power)[1]
            shapes.append(_line([(LEFT, y), (RIGHT, y)], GRID))
            shapes.append(_text(LEFT - 8, y + 4, f"{10.0**power:g}", PALE, "end"))
        for calls in lengths:
            x = at(calls, 10**low)[0]
            shapes.append(_text(x, BOTTOM + 18, str(calls), PALE, "middle"))
        across = _("model calls of a run")
        shapes.append(_text((LEFT + RIGHT) / 2, BOTTOM + 42, across, PALE, "middle"))
        colours = iter(COLOURS * (len(drawn) // len(COLOURS) + 1))
        ends = []
        for cost in drawn:
            colour = PALE if cost.floor else next(colours)
            points = [at(calls, ms) for calls, ms in sorted(cost.growth.items())]
            shapes.append(_line(points, colour, 2, broken=cost.floor))
            ends.append((points[-1], cost.name, colour))
        last = 0.0
        for (_x, y), name, colour in sorted(ends, key=lambda end: end[0][1]):
            last = max(y + 4, last + 16)  # labels stand below each other
            shapes.append(_text(RIGHT + 10, last, name, colour))
    inside = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" role="img" font-family="{FONT}"'
        f' font-size="12">\n<title>{escape(title)}</title>\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{inside}\n</svg>\n'
    )


def _line(
    points: Sequence[tuple[float, float]],
    colour: str,
    width: int = 1,
    *,
    broken: bool = False,
) -> str:
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    dashes = ' stroke-dasharray="6 4"' if broken else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}"'
        f' stroke-width="{width}"{dashes}/>'
    )


def _text(x: float, y: float, words: str, colour: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{colour}" text-anchor="{anchor}">'
        f"{escape(visible(words))}</text>"
    )
