"""An implementation in front of itself: with the model and the tools the same, it must
never be different, whatever its threads do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Any

from equivalence.judge.compare import Verdict, judge
from equivalence.language import _
from equivalence.matrix.player import Player
from equivalence.matrix.scenarios import Scenario
from equivalence.runs.implementation import Implementation

CONCURRENT = {"tool_concurrency": 32}
"""The calls of one turn may run at the same time, as frameworks run them."""


@dataclass
class Selfsame:
    """How often an implementation was different from itself."""

    implementation: str
    total: int = 0
    different: list[tuple[str, Verdict]] = field(default_factory=list)
    """The scenario and the verdict of each comparison that came out so."""

    def __str__(self) -> str:
        return _("{implementation}: {count} different of {total}").format(
            implementation=self.implementation,
            count=len(self.different),
            total=self.total,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in JSON."""
        return {
            "implementation": self.implementation,
            "different": len(self.different),
            "total": self.total,
            "verdicts": [
                {"scenario": name, **verdict.to_json()}
                for name, verdict in self.different
            ],
        }


def fit(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return the scenarios with several calls in one reply, where order may be chance;
    without those whose tools tell what ran beside them, because their results differ in
    earnest."""
    return [
        scenario
        for scenario in scenarios
        if not scenario.raw
        and "alone" not in scenario.tools
        and any(
            isinstance(reply, dict) and len(reply.get("calls") or ()) > 1
            for reply in scenario.replies
        )
    ]


def against_itself(
    implementation: Implementation,
    scenarios: Sequence[Scenario],
    count: int,
    player: Player,
) -> Iterator[Selfsame]:
    """Play the scenarios in turn, each twice, until `count` comparisons are made; yield
    the tally after each."""
    tally = Selfsame(implementation.name)
    other = replace(implementation, name=f"{implementation.name} (2)")
    for scenario in islice(cycle(scenarios), count):
        left, right = (
            player.play(scenario, each, CONCURRENT) for each in (implementation, other)
        )
        verdicts = [judge(*runs) for runs in zip(left.runs, right.runs, strict=True)]
        apart = next((v for v in verdicts if v.divergence), None)
        tally.total += 1
        if apart:
            tally.different.append((scenario.name, apart))
        yield tally
