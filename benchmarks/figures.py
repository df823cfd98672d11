"""A figure beside its goal, and how times are taken: in turn, within one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import truediv
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One measured figure and the goal it is to reach."""

    what: str
    value: float
    unit: str
    goal: float | None = None
    """None where the figure only stands beside the others."""
    at_least: bool = False
    """Whether the goal is the smallest value; it is the largest one, if not."""

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def interleaved(
    works: Mapping[str, Callable[[], Any]], rounds: int, warm: int = 1
) -> dict[str, list[float]]:
    """Return the seconds that each work took, round by round: in each round all of them
    come in turn, so that what else the machine does counts for all. The first `warm`
    rounds do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + warm):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            if number >= warm:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def ratio(times: Iterable[float], floor: Iterable[float]) -> float:
    """Return the median of the ratios within a round."""
    return statistics.median(map(truediv, times, floor))


def table(figures: Iterable[Figure]) -> str:
    """Return the figures as lines: what, figure, goal, whether it is reached."""
    rows = [("what", "figure", "goal", "reached")]
    words = {True: "yes", False: "NO", None: ""}
    for each in figures:
        bound = "at least" if each.at_least else "at most"
        goal = "" if each.goal is None else f"{bound} {each.goal:g}"
        value = f"{each.value:,.{0 if each.value >= 100 else 2}f}"
        rows.append((each.what, f"{value} {each.unit}", goal, words[each.reached]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    )
