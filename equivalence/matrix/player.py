"""Play a mechanism scenario in front of one implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from equivalence.gateway import Gateway, Script
from equivalence.matrix.scenarios import Scenario
from equivalence.matrix.tools import SCENARIO_TOOLS
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import Observed, observe
from equivalence.runs.plan import CLOCK
from equivalence.runs.record import Run
from equivalence.runs.upstreams import new_gateway
from equivalence.settings import Settings


@dataclass
class Played:
    """What one implementation did with one scenario."""

    turns: list[Observed]
    """One for each question."""
    script: Script

    @property
    def runs(self) -> list[Run]:
        return [turn.run for turn in self.turns]

    @property
    def bodies(self) -> list[bytes]:
        """The requests as they were sent, byte for byte."""
        return [exchange.body for turn in self.turns for exchange in turn.run.exchanges]


@dataclass
class Player:
    """Plays scenarios; a context manager, because it keeps gateways open meanwhile."""

    tools: Mapping[str, Callable[..., Any]] = field(
        default_factory=lambda: SCENARIO_TOOLS
    )
    """Those that scenarios name, by their names."""
    _gateways: dict[tuple[Any, ...], Gateway] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def play(
        self,
        scenario: Scenario,
        implementation: Implementation,
        more: Mapping[str, Any] | None = None,
    ) -> Played:
        """Let the implementation answer the scenario's questions, one conversation;
        `more` are settings beside the scenario's own."""
        settings = scenario_settings(scenario, more or {})
        way = settings.repair, settings.echo_reasoning, settings.timeout
        if way not in self._gateways:
            self._gateways[way] = self._open.enter_context(
                new_gateway(settings, Script([]))
            )
        tools = [self.tools[name] for name in scenario.tools]
        played = Played([], scenario.script())
        for question in scenario.questions:
            observed = observe(
                implementation,
                question,
                settings,
                self._gateways[way],
                tools,
                upstream=played.script,
                after=played.turns[-1] if played.turns else None,
            )
            played.turns.append(observed)
        return played


def scenario_settings(scenario: Scenario, more: Mapping[str, Any]) -> Settings:
    """Return the settings of a scenario: the defaults, whatever the environment says,
    and no retries unless the scenario wants them."""
    fixed = {
        "clock": CLOCK,
        "retries": 0,
        "model": "script",
        "repair": not scenario.raw,
    }
    update = {**fixed, **more, **scenario.settings}
    return Settings.model_construct().model_copy(update=update)
