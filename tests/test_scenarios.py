"""Every mechanism scenario, in front of every implementation of the ladder.

A scenario is played once for each implementation; then its outcome is compared with
what is right, and its requests with those of the first implementation, byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from config import load_settings, make_gateway
from equivalence.compare import compare
from equivalence.implementations import LADDER, Implementation, load
from equivalence.observe import Observed, observe
from equivalence.record import Run, Step
from equivalence.run import CLOCK
from equivalence.scenario_tools import SCENARIO_TOOLS
from equivalence.scenarios import Scenario, read_scenarios
from equivalence.trace import as_messages, text_of
from gateway import Gateway, Script
from tools import TOOLS

TEXT_REACT = ("stage5",)  # has no tool calls, so a reply with one means nothing to it
OTHER_CLIENT = ("stage4",)  # the same JSON, but not LangChain's bytes

SCENARIOS = read_scenarios()
CALLERS = [i for i in LADDER if i.name not in TEXT_REACT]

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(scenario, implementation) that cannot be equal, each with the reason."""

ELSEWHERE = {
    "R16": "two tools of one name: construction of each implementation",
    "R58": "noise of a server: the judge",
    "R82 R83": "thousands, per cent: arithmetic",
    "R89 R90 R91 R92 R93 R96 R98 R99": "text ReAct: stage 5",
    "R100 R101 R104": "the comparison",
    "R105 R106 R107 R110": "endpoint, key and proxy: configuration",
    "R115 R116 R118": "console, encodings and deprecation: the command line",
}
"""Reports that no scripted model can show, and what tests them."""

# fmt: off
REPORTS = (
    1, 2, 3, 6, 7, 8, 10, 11, 12, 14, 16, 17, 18, 21, 22, 23, 24, 25, 28, 29, 31, 33,
    35, 36, 37, 38, 39, 41, 42, 44, 45, 46, 48, 50, 52, 53, 54, 55, 56, 58, 60, 61, 63,
    65, 67, 68, 69, 71, 72, 73, 75, 76, 78, 79, 80, 82, 83, 84, 86, 88, 89, 90, 91, 92,
    93, 96, 98, 99, 100, 101, 104, 105, 106, 107, 109, 110, 112, 114, 115, 116, 118,
)
# fmt: on
"""All reports, by number."""

EXPECTATIONS = {
    *("status", "answer", "error", "requests", "steps", "results", "told", "repairs"),
    *("warnings", "echoed", "sent", "not_sent", "not_said"),
}


@dataclass
class Played:
    """What one implementation did with one scenario."""

    turns: list[Observed]
    """One for each question."""
    script: Script

    @property
    def last(self) -> Run:
        return self.turns[-1].run

    @property
    def bodies(self) -> list[bytes]:
        return [exchange.body for turn in self.turns for exchange in turn.exchanges]

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [e.request for turn in self.turns for e in turn.exchanges]

    @property
    def steps(self) -> list[Step]:
        return [step for turn in self.turns for step in turn.run.steps]

    @property
    def repairs(self) -> list[str]:
        return [r for t in self.turns for e in t.exchanges for r in e.repairs]

    @property
    def tool_messages(self) -> list[str]:
        """From the conversation; from the wire where none was returned."""
        messages = as_messages(self.turns[-1].conversation)
        if self.last.error:
            messages = self.requests[-1]["messages"]
        return [text_of(m["content"]) for m in messages if m["role"] == "tool"]


@dataclass
class Player:
    """Plays scenarios, each once a session for each implementation."""

    gateways: dict[tuple[bool, bool], Gateway] = field(default_factory=dict)
    played: dict[tuple[str, str], Played] = field(default_factory=dict)
    open: ExitStack = field(default_factory=ExitStack)

    def play(self, scenario: Scenario, implementation: Implementation) -> Played:
        key = scenario.name, implementation.name
        if key not in self.played:
            self.played[key] = self._play(scenario, implementation)
        return self.played[key]

    def _play(self, scenario: Scenario, implementation: Implementation) -> Played:
        settings = load_settings(
            **{"retries": 0, "clock": CLOCK, **scenario.settings},
            repair=not scenario.raw,
            _env_file="",
        )
        way = settings.repair, settings.echo_reasoning
        if way not in self.gateways:
            self.gateways[way] = self.open.enter_context(make_gateway(settings))
        tools = TOOLS
        if scenario.tools is not None:
            tools = tuple(SCENARIO_TOOLS[name] for name in scenario.tools)
        played = Played([], scenario.script())
        for number, question in enumerate(scenario.questions):
            observed = observe(
                implementation.name,
                load(implementation.target),
                question,
                settings,
                self.gateways[way],
                tools,
                upstream=played.script,
                history=played.turns[-1].conversation if played.turns else [],
                earlier=scenario.questions[:number],
            )
            played.turns.append(observed)
        return played


@pytest.fixture(scope="session")
def player() -> Iterator[Player]:
    player = Player()
    with player.open:
        yield player


@pytest.mark.parametrize("implementation", CALLERS, ids=lambda i: i.name)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_scenario(
    scenario: Scenario, implementation: Implementation, player: Player
) -> None:
    played = player.play(scenario, implementation)
    first = player.play(scenario, CALLERS[0])
    same_client = implementation.name not in OTHER_CLIENT
    found = [
        *unmet(scenario, played),
        *differences(first, played, same_bytes=same_client),
    ]
    reason = EXCEPTIONS.get((scenario.name, implementation.name))
    if reason:
        assert found, f"no longer so, take it out of EXCEPTIONS: {reason}"
    else:
        assert not found, "\n".join(found)


def unmet(scenario: Scenario, played: Played) -> Iterator[str]:
    """Yield each way in which the outcome is not what is right."""
    expect, run = scenario.expect, played.last
    told = played.tool_messages
    executed = [step.order for step in run.steps if step.order is not None]
    steps = [
        [s.tool, s.arguments, "not run" if s.order is None and s.ok is False else s.ok]
        for s in played.steps
    ]
    is_equal = {
        "status": run.status,
        "answer": run.answer,
        "requests": len(played.requests),
        "steps": steps,
        "told": told,
        "repairs": played.repairs,
        "echoed": [
            call["function"]["arguments"]
            for message in played.requests[-1]["messages"]
            for call in message.get("tool_calls") or ()
        ],
    }
    for name, got in is_equal.items():
        wanted = expect.get(name, [] if name in ("steps", "repairs") else got)
        if as_json(got) != as_json(wanted):
            yield f"{name}: {as_json(got)}, not {as_json(wanted)}"
    if "results" in expect:
        if len(expect["results"]) != len(told):
            yield f"results: {len(told)} tool messages, not {len(expect['results'])}"
        for part, text in zip(expect["results"], told, strict=False):
            if part not in text:
                yield f"results: {part!r} is not in {text!r}"
    for part in expect.get("warnings", ()):
        if not any(part in warning for warning in run.warnings):
            yield f"warnings: {part!r} is not in {run.warnings}"
    if (expect.get("error") or "\0") not in (run.error or "\0"):
        yield f"error: {expect.get('error')!r} is not in {run.error!r}"
    requests = [as_json(request) for request in played.requests]
    for part in expect.get("sent", ()):
        if part not in requests[-1]:
            yield f"sent: {part!r} is not in {requests[-1]}"
    for part in expect.get("not_sent", ()):
        if any(part in request for request in requests):
            yield f"not_sent: {part!r} is in {requests}"
    said = [*told, run.answer, run.error or ""]
    for part in expect.get("not_said", ()):
        if any(part in text for text in said):
            yield f"not_said: {part!r} is in {said}"
    for refusal in played.script.refusals:
        if not run.error or expect.get("error", "\0") not in refusal:
            yield f"the strict server refused: {refusal}"
    concurrent = scenario.settings.get("tool_concurrency", 1) > 1
    if executed != list(range(len(executed))) and not concurrent:
        yield f"executed out of order: {executed}"
    if not scenario.raw:
        yield from out_of_order(played.requests[-1]["messages"])


def out_of_order(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each place where results do not stand in the order of their calls."""
    asked: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] != asked.pop(0):
                yield f"out of order: the result of {message['tool_call_id']}"
        else:
            asked = [call["id"] for call in message.get("tool_calls") or ()]


def differences(first: Played, other: Played, *, same_bytes: bool) -> Iterator[str]:
    """Yield each way in which two implementations differ."""
    if same_bytes and first.bodies != other.bodies:
        yield f"bytes: {first.bodies}\n  other: {other.bodies}"
    for left, right in zip(first.turns, other.turns, strict=True):
        if divergence := compare(left.run, right.run):
            yield f"judge: {divergence}"
        if left.run.error != right.run.error:
            yield f"errors: {left.run.error!r} and {right.run.error!r}"


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_scenario_is_complete(scenario: Scenario) -> None:
    assert scenario.name.isidentifier()
    assert scenario.why.endswith(".")
    assert scenario.seen == "matrix" or numbers(scenario.seen) <= set(REPORTS)
    assert numbers(scenario.seen) or scenario.seen == "matrix"
    assert {"status", "requests"} <= set(scenario.expect) <= EXPECTATIONS
    if not scenario.raw and scenario.expect["status"] != "completed":
        assert {"answer", "error"} & set(scenario.expect)


def test_every_report_is_seen() -> None:
    seen = set()
    for scenario in SCENARIOS:
        if not scenario.seen.startswith("like "):
            seen |= numbers(scenario.seen)
    elsewhere = numbers(" ".join(ELSEWHERE))
    assert set(REPORTS) - elsewhere - seen == set()
    assert elsewhere & seen == set()


def numbers(seen: str) -> set[int]:
    """The reports that are named: "R08 matrix" names one, "like R08" a brother."""
    return {int(number) for number in re.findall(r"R(\d+)", seen)}


def test_exceptions_name_scenarios_and_implementations() -> None:
    known = {(s.name, i.name) for s in SCENARIOS for i in CALLERS}
    assert set(EXCEPTIONS) <= known


@pytest.mark.parametrize("implementation", CALLERS, ids=lambda i: i.name)
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_tool_passes(
    interrupt: type[BaseException], implementation: Implementation, player: Player
) -> None:
    def stop() -> str:
        """Stop."""
        raise interrupt

    settings = load_settings(_env_file="")
    with make_gateway(settings) as gateway, pytest.raises(interrupt):
        observe(
            implementation.name,
            load(implementation.target),
            "go",
            settings,
            gateway,
            [stop],
            upstream=Script([{"message": {"tool_calls": [call_of("stop")]}}]),
        )


def call_of(name: str) -> dict[str, Any]:
    return {
        "id": "a",
        "type": "function",
        "function": {"name": name, "arguments": "{}"},
    }
