"""The matrix: every mechanism scenario in front of every implementation.

Two groups, each compared with its first column: the aligned implementations, which the
project makes equal, behind the gateway's repairs; and the stock ones, as frameworks and
articles ship them, on the raw replies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from equivalence.gateway.canonical import shown
from equivalence.judge.compare import Divergence, compare
from equivalence.matrix.player import Played, Player
from equivalence.matrix.scenarios import Scenario
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Run
from equivalence.table import Table

FRAMEWORK_THREADS = 32
"""The stock agents may run the calls of one turn at the same time, as frameworks do."""


@dataclass(frozen=True)
class Group:
    """Implementations compared with each other, the first being the baseline."""

    name: str
    implementations: tuple[Implementation, ...]
    settings: dict[str, Any]
    """What holds for the whole group."""


def groups(table: Table) -> list[Group]:
    """Return the implementations of the table that ask in tool calls, and its variants
    as they come; no group that is empty."""
    callers = [
        each for each in table.implementations.values() if each.protocol == "tool_calls"
    ]
    as_they_come = {"repair": False, "tool_concurrency": FRAMEWORK_THREADS}
    found = [
        Group("aligned", tuple(callers), {}),
        Group("stock", tuple(table.variants.values()), as_they_come),
    ]
    return [group for group in found if group.implementations]


@dataclass
class Cell:
    """One implementation in front of one scenario, beside the baseline of its group."""

    group: str
    scenario: str
    implementation: str
    runs: list[Run]
    same_bytes: bool
    """Whether each request has the same bytes as the baseline's."""
    divergence: Divergence | None
    """The first one, in the first question that has one; None: equal."""

    @property
    def equal(self) -> bool:
        return self.divergence is None

    def to_json(self) -> dict[str, Any]:
        place = self.divergence
        return {
            "group": self.group,
            "scenario": self.scenario,
            "implementation": self.implementation,
            "status": self.runs[-1].status,
            "equal": self.equal,
            "same_bytes": self.same_bytes,
            "cause": place.cause if place else None,
            "model_call": place.model_call if place else None,
            "path": place.path if place else None,
            "left_value": shown(place.left) if place else None,
            "right_value": shown(place.right) if place else None,
        }


def matrix(
    scenarios: Sequence[Scenario], groups: Sequence[Group], player: Player
) -> Iterator[list[Cell]]:
    """Yield the cells of one scenario after another, in the order of the groups."""
    for scenario in scenarios:
        cells: list[Cell] = []
        for group in groups:
            baseline: Played | None = None
            for each in group.implementations:
                played = player.play(scenario, each, group.settings)
                baseline = baseline or played
                cells.append(_cell(group, scenario, each, baseline, played))
        yield cells


def _cell(
    group: Group,
    scenario: Scenario,
    implementation: Implementation,
    baseline: Played,
    played: Played,
) -> Cell:
    pairs = zip(baseline.runs, played.runs, strict=True)
    places = (compare(left, right) for left, right in pairs)
    return Cell(
        group=group.name,
        scenario=scenario.name,
        implementation=implementation.name,
        runs=played.runs,
        same_bytes=baseline.bodies == played.bodies,
        divergence=next((place for place in places if place), None),
    )


def tally(cells: Sequence[Cell]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return, for each (group, implementation), in how many of how many scenarios it
    was equal to the baseline of its group."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for cell in cells:
        equal, total = counts.get((cell.group, cell.implementation), (0, 0))
        counts[cell.group, cell.implementation] = (equal + cell.equal, total + 1)
    return counts
