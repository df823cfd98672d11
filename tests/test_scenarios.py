"""Every mechanism scenario, in front of every implementation of the ladder.

A scenario is played once for each implementation; then its outcome is compared with
what is right, and its requests with those of the first implementation, byte for byte.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import pytest

from config import load_settings
from equivalence.gateway import Gateway, Script
from equivalence.judge.compare import compare
from equivalence.matrix.player import Played, Player
from equivalence.matrix.scenarios import Scenario, read_scenarios
from equivalence.runs.implementation import LADDER, Implementation, load
from equivalence.runs.observe import observe
from equivalence.runs.record import Step
from equivalence.runs.steps import as_messages, text_of

SCENARIOS = read_scenarios()
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
CALLERS = [each for each in LADDER if each.protocol != "text"]

EXCEPTIONS: dict[tuple[str, str], str] = {
    **{
        ("raw_name_of_the_assistant", name): "create_react_agent alone, which is the"
        " first, takes the server's name off the message"
        for name in ("successor", "stage2", "stage3")
    },
    **{
        (name, "stage4"): "it reads replies itself, and what langchain's client fails"
        " on or drops without repairs it answers"
        for name in (
            "raw_malformed_arguments",
            "raw_malformed_then_a_question_on_that_history",
            "raw_arguments_as_an_object",
            "raw_id_null",
            "raw_choices_empty",
            "raw_page_with_200",
        )
    },
}
if version("langchain") >= "1.5":
    EXCEPTIONS["raw_malformed_then_a_question_on_that_history", "successor"] = (
        "create_agent itself puts a tool message behind a call that did not parse"
    )
"""(scenario, implementation) that cannot be equal, each with the reason."""

ELSEWHERE = {
    "R16": "two tools of one name: construction of each implementation",
    "R58": "noise of a server: the judge",
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


Play = Callable[[str, Implementation], Played]


@pytest.fixture(scope="session")
def play() -> Iterator[Play]:
    """Plays a scenario once a session for each implementation."""
    with Player() as player:
        yield functools.cache(lambda name, each: player.play(BY_NAME[name], each))


@pytest.mark.parametrize("implementation", CALLERS, ids=lambda i: i.name)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_scenario(
    scenario: Scenario, implementation: Implementation, play: Play
) -> None:
    played = play(scenario.name, implementation)
    first = play(scenario.name, CALLERS[0])
    found = [
        *unmet(scenario, played),
        *differences(first, played, same_bytes=implementation.exact),
    ]
    reason = EXCEPTIONS.get((scenario.name, implementation.name))
    if reason:
        assert found, f"no longer so, take it out of EXCEPTIONS: {reason}"
    else:
        assert not found, "\n".join(found)


def unmet(scenario: Scenario, played: Played) -> Iterator[str]:
    """Yield each way in which the outcome is not what is right."""
    expect, run = scenario.expect, played.runs[-1]
    exchanges = [exchange for turn in played.turns for exchange in turn.exchanges]
    requests = [exchange.request for exchange in exchanges]
    messages = requests[-1]["messages"]
    told = tool_messages(played, messages)
    is_equal = {
        "status": run.status,
        "answer": run.answer,
        "requests": len(requests),
        "steps": [as_expected(step) for each in played.runs for step in each.steps],
        "told": told,
        "repairs": [name for exchange in exchanges for name in exchange.repairs],
        "echoed": [
            call["function"]["arguments"]
            for message in messages
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
    for part in expect.get("sent", ()):
        if part not in as_json(requests[-1]):
            yield f"sent: {part!r} is not in {as_json(messages)}"
    for part in expect.get("not_sent", ()):
        if any(part in as_json(request) for request in requests):
            yield f"not_sent: {part!r} is sent"
    said = [*told, run.answer, run.error or ""]
    for part in expect.get("not_said", ()):
        if any(part in text for text in said):
            yield f"not_said: {part!r} is in {said}"
    for refusal in played.script.refusals:
        if refusal not in (run.error or ""):
            yield f"the strict server refused: {refusal}"
    if scenario.settings.get("tool_concurrency", 1) == 1:
        executed = [step.order for step in run.steps if step.order is not None]
        if executed != list(range(len(executed))):
            yield f"executed out of order: {executed}"
    if not scenario.raw:
        yield from out_of_order(messages)


def as_expected(step: Step) -> list[Any]:
    """The step as a scenario writes it."""
    not_run = step.order is None and step.ok is False
    return [step.tool, step.arguments, "not run" if not_run else step.ok]


def tool_messages(played: Played, sent: list[dict[str, Any]]) -> list[str]:
    """From the conversation; from the wire where none was returned."""
    last = played.turns[-1]
    messages = sent if last.run.error else as_messages(last.conversation)
    return [text_of(m["content"]) for m in messages if m["role"] == "tool"]


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
        pairs = zip_longest(first.bodies, other.bodies, fillvalue=b"")
        left, right = next((a, b) for a, b in pairs if a != b)
        places = zip_longest(left, right)
        start = max(next(i for i, (a, b) in enumerate(places) if a != b) - 40, 0)
        yield f"bytes: {left[start:][:120]!r} and {right[start:][:120]!r}"
    for left, right in zip(first.runs, other.runs, strict=True):
        if divergence := compare(left, right):
            yield f"judge: {divergence}"
        if left.error != right.error:
            yield f"errors: {left.error!r} and {right.error!r}"


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
    interrupt: type[BaseException], implementation: Implementation
) -> None:
    def stop() -> str:
        """Stop."""
        raise interrupt

    agent = load(implementation.target)
    settings = load_settings()
    script = Script([{"message": {"tool_calls": [call_of("stop")]}}])
    with Gateway(script) as gateway, pytest.raises(interrupt):
        observe(implementation.name, agent, "go", settings, gateway, [stop])


def call_of(name: str) -> dict[str, Any]:
    return {
        "id": "a",
        "type": "function",
        "function": {"name": name, "arguments": "{}"},
    }
