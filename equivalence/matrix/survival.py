"""Anybody's agent in front of the scenarios: which peculiarities of models and servers
it survives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from equivalence.language import N_
from equivalence.matrix.expect import unmet
from equivalence.matrix.player import Played, Player
from equivalence.matrix.scenarios import Scenario
from equivalence.runs.implementation import Implementation

OUTCOMES = (N_("survived"), N_("not survived"), N_("not applicable"))

KEPT_BY_THE_GATEWAY = frozenset(("timeout", "repair", "echo_reasoning"))
"""Settings that hold whatever the agent knows of them."""
IN_THE_ENVIRONMENT = frozenset(("model", "temperature", "max_steps"))
"""Settings that a command finds in its environment."""


@dataclass(frozen=True)
class Outcome:
    """What became of one agent in front of one scenario."""

    implementation: str
    scenario: Scenario
    outcome: str
    """One of OUTCOMES."""
    reasons: list[str] = field(default_factory=list)
    """What was not as the scenario expects it; why it cannot be played."""

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in JSON."""
        return {
            "implementation": self.implementation,
            "kind": self.scenario.kind,
            "scenario": self.scenario.name,
            "why": self.scenario.why,
            "outcome": self.outcome,
            "reasons": self.reasons,
        }


def survival(
    scenarios: Sequence[Scenario],
    implementations: Sequence[Implementation],
    player: Player,
    *,
    raw: bool = False,
) -> Iterator[list[Outcome]]:
    """Yield what became of the agents in front of one scenario after another. `raw`:
    the replies reach them as they came, unrepaired. Raises UsageError if an agent
    cannot be one, and whatever its module raises."""
    limits = [limits_of(implementation) for implementation in implementations]
    for scenario in scenarios:
        yield [
            _outcome(scenario, implementation, limit, player, raw)
            for implementation, limit in zip(implementations, limits, strict=True)
        ]


@dataclass(frozen=True)
class Limits:
    """What an agent cannot be given."""

    tools: str = ""
    """Why it cannot be given a scenario's tools; "" where it can."""
    conversation: str = ""
    """Why it cannot be asked a second question; "" where it can."""
    told: frozenset[str] | None = None
    """The settings that it can be told; None: all."""
    at_all: str = ""
    """Why no scenario fits; "" where some do."""


def limits_of(implementation: Implementation) -> Limits:
    """Return what the agent cannot be given. Raises UsageError if it cannot be one, and
    whatever its module raises."""
    if implementation.protocol == "text":
        return Limits(at_all="its model asks for tools in text")
    if implementation.command:
        return Limits(
            "a command brings its own tools",
            "a command answers single questions",
            IN_THE_ENVIRONMENT,
        )
    takes = implementation.load().takes
    return Limits(
        "" if "tools" in takes else "it takes no tools",
        "" if takes & {"history", "thread_id"} else "it takes no history",
        None if "settings" in takes else frozenset(),
    )


def not_applicable(scenario: Scenario, limits: Limits) -> str:
    """Return why the scenario cannot be played with these limits; "" where it can."""
    if limits.at_all:
        return limits.at_all
    if scenario.raw:
        return "it shows what clients make of an unrepaired reply, and nothing is right"
    if limits.conversation and len(scenario.questions) > 1:
        return limits.conversation
    if limits.tools and scenario.expect.get("steps"):
        return limits.tools
    if limits.tools and not scenario.tools:
        return f"{limits.tools}, and here there are to be none"
    if limits.told is not None:
        wanted = scenario.settings.keys() - limits.told - KEPT_BY_THE_GATEWAY
        if wanted:
            return f"it cannot be told {', '.join(sorted(wanted))}"
    return ""


def _outcome(
    scenario: Scenario,
    implementation: Implementation,
    limits: Limits,
    player: Player,
    raw: bool,
) -> Outcome:
    def outcome(name: str, *reasons: str) -> Outcome:
        return Outcome(implementation.name, scenario, name, list(reasons))

    if reason := not_applicable(scenario, limits):
        return outcome("not applicable", reason)
    played = player.play(scenario, implementation, {"repair": False} if raw else {})
    if _left_the_tools(played):
        return outcome("not applicable", "it did not look at the tools it was given")
    found = list(unmet(scenario, played, own_words=True))
    return outcome("not survived", *found) if found else outcome("survived")


def _left_the_tools(played: Played) -> bool:
    """Whether tools were called that could not be watched."""
    return any(step.ok is None for run in played.runs for step in run.steps)


def exit_code_of(outcomes: Sequence[Outcome]) -> int:
    """Return 0 where all applicable scenarios were survived, 1 where one was not, 2
    where none applied to one of the agents."""
    applied: dict[str, bool] = {}
    for each in outcomes:
        applied.setdefault(each.implementation, False)
        applied[each.implementation] |= each.outcome != "not applicable"
    if not all(applied.values()):
        return 2
    return int(any(each.outcome == "not survived" for each in outcomes))
