"""Every mechanism scenario, in front of every implementation of the ladder.

A scenario is played once for each implementation; then its outcome is compared with
what is right, and its requests with those of the first implementation.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import pytest
from wire import EXACT, LADDER, ROOT

from equivalence.gateway import Gateway, Script
from equivalence.judge.compare import compare
from equivalence.matrix.expect import NAMES, unmet
from equivalence.matrix.player import Played, Player
from equivalence.matrix.scenarios import Scenario, read_scenarios
from equivalence.matrix.tools import SCENARIO_TOOLS
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import observe
from equivalence.settings import Settings
from tools import TOOLS

OURS = read_scenarios(ROOT / "scenarios/demo_tools")
"""The scenarios of the ladder's own tools; the others stand in the instrument."""
SCENARIOS = [*read_scenarios(), *OURS]
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
CALLERS = [each for each in LADDER if each.protocol == "tool_calls"]
(IN_TEXT,) = (each for each in LADDER if each.protocol == "text")

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

Play = Callable[[str, Implementation], Played]


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    """Plays a scenario once for each implementation."""
    ours = {tool.__name__: tool for tool in TOOLS}
    with Player() as player, Player(ours) as player_of_ours:

        def play(name: str, implementation: Implementation) -> Played:
            scenario = BY_NAME[name]
            by = player_of_ours if scenario in OURS else player
            return by.play(scenario, implementation)

        yield functools.cache(play)


@pytest.mark.parametrize("implementation", CALLERS, ids=lambda i: i.name)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_scenario(
    scenario: Scenario, implementation: Implementation, play: Play
) -> None:
    played = play(scenario.name, implementation)
    first = play(scenario.name, CALLERS[0])
    same_bytes = implementation.name in EXACT
    for body in played.bodies:
        assert json.loads(body)["messages"][0]["role"] == "system"
    found = [
        *unmet(scenario, played),
        *differences(first, played, same_bytes=same_bytes),
    ]
    reason = EXCEPTIONS.get((scenario.name, implementation.name))
    if reason:
        assert found, f"no longer so, take it out of EXCEPTIONS: {reason}"
    else:
        assert not found, "\n".join(found)


def differences(first: Played, other: Played, *, same_bytes: bool) -> Iterator[str]:
    """Yield each way in which two implementations differ: in the bytes of the requests,
    or, where those differ by spelling alone, in the JSON, ids and all."""
    if same_bytes and first.bodies != other.bodies:
        pairs = zip_longest(first.bodies, other.bodies, fillvalue=b"")
        left, right = next((a, b) for a, b in pairs if a != b)
        places = zip_longest(left, right)
        start = max(next(i for i, (a, b) in enumerate(places) if a != b) - 40, 0)
        yield f"bytes: {left[start:][:120]!r} and {right[start:][:120]!r}"
    elif [*map(json.loads, first.bodies)] != [*map(json.loads, other.bodies)]:
        yield "requests: not the same JSON"
    for left, right in zip(first.runs, other.runs, strict=True):
        if divergence := compare(left, right):
            yield f"judge: {divergence}"
        if left.error != right.error:
            yield f"errors: {left.error!r} and {right.error!r}"


# ------------------------------------------------------- the same for a model in text


def told_in_text(scenario: Scenario) -> Scenario | None:
    """The scenario for a model that asks for tools in text, one a reply; None where it
    is about what only a field of the wire can be."""
    expect = scenario.expect
    fields = {"seen", "settings", "server", "raw"}
    plain = replace(scenario, **{name: getattr(PLAIN, name) for name in fields})
    ran = all(step[2] != "not run" for step in expect.get("steps", ()))
    if plain != scenario_without_seen(scenario) or expect["status"] != "completed":
        return None
    if expect.get("repairs") or not ran or not expect.get("steps"):
        return None
    replies: list[str] = []
    for reply in scenario.replies:
        if isinstance(reply, str):
            replies.append(f"Final Answer: {reply}")
            continue
        if not isinstance(reply, dict) or not reply.keys() <= {"calls", "content"}:
            return None
        for call in reply["calls"]:
            if not isinstance(call, list) or not isinstance(call[1], str):
                return None
            thought = reply.get("content") or "go on"
            replies.append(
                f"Thought: {thought}\nAction: {call[0]}\nAction Input: {call[1]}"
            )
    return replace(scenario, replies=replies)


PLAIN = Scenario("", "", "", [])


def scenario_without_seen(scenario: Scenario) -> Scenario:
    return replace(scenario, seen="")


TOLD_IN_TEXT = {each.name: told for each in SCENARIOS if (told := told_in_text(each))}


@pytest.mark.parametrize("name", TOLD_IN_TEXT)
def test_scenario_in_text(name: str, play: Play) -> None:
    """Stage 5 comes to the same steps, results and answer, one call a turn."""
    scenario, ours = TOLD_IN_TEXT[name], {tool.__name__: tool for tool in TOOLS}
    with Player(ours if BY_NAME[name] in OURS else SCENARIO_TOOLS) as player:
        played = player.play(scenario, IN_TEXT, {"max_steps": 50})
    for left, right in zip(play(name, CALLERS[0]).runs, played.runs, strict=True):
        assert compare(left, right) is None
    assert played.runs[-1].answer == scenario.expect["answer"]


def test_many_scenarios_can_be_told_in_text() -> None:
    assert len(TOLD_IN_TEXT) > 40


# ------------------------------------------------------------- the scenarios themselves


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_scenario_is_complete(scenario: Scenario) -> None:
    assert scenario.name.isidentifier()
    assert scenario.why.endswith(".")
    assert numbers(scenario.seen) or scenario.seen == "matrix"
    assert {"status", "requests"} <= set(scenario.expect) <= NAMES
    if not scenario.raw and scenario.expect["status"] != "completed":
        assert {"answer", "error"} & set(scenario.expect)


def test_exceptions_name_scenarios_and_implementations() -> None:
    known = {(s.name, i.name) for s in SCENARIOS for i in CALLERS}
    assert set(EXCEPTIONS) <= known


REPORTS = ROOT / "scenarios" / "reports.md"
ROW = re.compile(r"^\| (R\d+) \| (https://[^|]+) \| ([^|]+\.) \| ([^|]+) \|$", re.M)


def numbers(text: str) -> set[str]:
    """The reports that a text names: "R08 matrix" names one, "like R08" a brother."""
    return set(re.findall(r"\bR\d{2,3}\b", text))


def test_every_number_of_a_report_leads_to_its_address() -> None:
    rows = ROW.findall(REPORTS.read_text(encoding="utf-8"))
    listed = [number for number, *_ in rows]
    assert listed == sorted(set(listed), key=lambda number: int(number[1:]))
    used: set[str] = set()
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        written = path.suffix in (".py", ".md", ".yaml") and path != REPORTS
        if written and not any(part.startswith(".") for part in parts):
            used |= numbers(path.read_text(encoding="utf-8"))
    assert used - set(listed) == set()


def test_every_report_is_tried_where_its_row_says() -> None:
    seen = {
        (number, f"{folder}/{scenario.kind}.yaml")
        for folder, scenarios in (
            ("scenarios/demo_tools", OURS),
            ("equivalence/matrix/scenarios", read_scenarios()),
        )
        for scenario in scenarios
        if not scenario.seen.startswith("like ")
        for number in numbers(scenario.seen)
    }
    for number, _, _, where in ROW.findall(REPORTS.read_text(encoding="utf-8")):
        for name in where.split():
            assert (ROOT / name).is_file(), name
            assert name.endswith(".py") or (number, name) in seen


# -------------------------------------------------------------------------- interrupts


@pytest.mark.parametrize("implementation", CALLERS, ids=lambda i: i.name)
def test_a_keyboard_interrupt_in_a_tool_passes(
    implementation: Implementation, gateway: Gateway, offline_settings: Settings
) -> None:
    def stop() -> str:
        """Stop."""
        raise KeyboardInterrupt

    script = Script([{"message": {"tool_calls": [call_of("stop")]}}])
    with pytest.raises(KeyboardInterrupt):
        observe(
            implementation, "go", offline_settings, gateway, [stop], upstream=script
        )


@pytest.mark.parametrize("implementation", CALLERS, ids=lambda i: i.name)
def test_a_tool_that_ends_the_program_fails_the_run(
    implementation: Implementation, gateway: Gateway, offline_settings: Settings
) -> None:
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    script = Script([{"message": {"tool_calls": [call_of("leave")]}}])
    observed = observe(
        implementation, "go", offline_settings, gateway, [leave], upstream=script
    )
    assert observed.run.status == "failed"
    assert observed.run.error == "it ended the program: SystemExit(3)"


def call_of(name: str) -> dict[str, Any]:
    return {
        "id": "a",
        "type": "function",
        "function": {"name": name, "arguments": "{}"},
    }
