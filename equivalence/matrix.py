"""The matrix: every mechanism scenario in front of every implementation.

Two groups, each compared with its first column: the aligned implementations, which the
project makes equal, behind the gateway's repairs; and the stock ones, as frameworks and
articles ship them, on the raw replies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from config import Settings
from equivalence.compare import Divergence, compare
from equivalence.implementations import LADDER, STOCK, Implementation, load
from equivalence.observe import observe
from equivalence.record import Run
from equivalence.run import CLOCK
from equivalence.scenario_tools import SCENARIO_TOOLS
from equivalence.scenarios import Scenario
from gateway import Gateway, OfflineModel
from tools import TOOLS


@dataclass(frozen=True)
class Group:
    """Implementations that are compared with each other, the first being the measure."""

    name: str
    implementations: tuple[Implementation, ...]
    raw: bool
    """Whether the gateway's repairs are off."""


GROUPS = (Group("aligned", LADDER, raw=False), Group("stock", STOCK, raw=True))


@dataclass
class Cell:
    """One implementation in front of one scenario, beside the measure of its group."""

    group: str
    scenario: str
    implementation: str
    runs: list[Run]
    same_bytes: bool
    """Whether each request has the same bytes as the measure's."""
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
            "left_value": place.left if place else None,
            "right_value": place.right if place else None,
        }


@dataclass
class Played:
    """What one implementation did with one scenario: a run for each question."""

    runs: list[Run]
    bodies: list[bytes]
    refusals: list[str]
    """What the strict server refused."""


def play(
    scenario: Scenario,
    name: str,
    agent: Callable[..., Any],
    gateway: Gateway,
) -> Played:
    """Let one implementation answer the scenario's questions, one conversation."""
    tools: Sequence[Callable[..., Any]] = TOOLS
    if scenario.tools is not None:
        tools = [SCENARIO_TOOLS[tool] for tool in scenario.tools]
    upstream = scenario.script()
    settings = scenario_settings(scenario)
    history: list[Any] = []
    played = Played([], [], upstream.refusals)
    for number, question in enumerate(scenario.questions):
        observed = observe(
            name,
            agent,
            question,
            settings,
            gateway,
            tools,
            upstream=upstream,
            history=history,
            earlier=scenario.questions[:number],
        )
        history = observed.conversation
        played.runs.append(observed.run)
        played.bodies += [exchange.body for exchange in observed.exchanges]
    return played


def scenario_settings(scenario: Scenario) -> Settings:
    """Return the settings of a scenario: the defaults, whatever the environment says,
    and no retries unless the scenario wants them."""
    fields = Settings.model_fields.items()
    defaults = {
        name: field.get_default(call_default_factory=True) for name, field in fields
    }
    fixed = {"clock": CLOCK, "retries": 0, "model": "script"}
    return Settings(**{**defaults, **fixed, **scenario.settings})


def matrix(
    scenarios: Sequence[Scenario], groups: Sequence[Group]
) -> Iterator[list[Cell]]:
    """Yield the cells of one scenario after another, in the order of the groups."""
    agents = {
        implementation.name: load(implementation.target)
        for group in groups
        for implementation in group.implementations
    }
    repaired, raw = (Gateway(OfflineModel(), repair=on) for on in (True, False))
    with repaired, raw:
        for scenario in scenarios:
            cells: list[Cell] = []
            for group in groups:
                gateway = raw if group.raw or scenario.raw else repaired
                measure: Played | None = None
                for each in group.implementations:
                    played = play(scenario, each.name, agents[each.name], gateway)
                    measure = measure or played
                    cells.append(
                        _cell(group.name, scenario, each.name, measure, played)
                    )
            yield cells


def _cell(
    group: str, scenario: Scenario, name: str, measure: Played, played: Played
) -> Cell:
    pairs = zip(measure.runs, played.runs, strict=True)
    places = (compare(left, right) for left, right in pairs)
    return Cell(
        group=group,
        scenario=scenario.name,
        implementation=name,
        runs=played.runs,
        same_bytes=measure.bodies == played.bodies,
        divergence=next((place for place in places if place), None),
    )


def tally(cells: Sequence[Cell]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return, for each (group, implementation), in how many of how many scenarios it
    was equal to the measure of its group."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for cell in cells:
        equal, total = counts.get((cell.group, cell.implementation), (0, 0))
        counts[cell.group, cell.implementation] = (equal + cell.equal, total + 1)
    return counts
