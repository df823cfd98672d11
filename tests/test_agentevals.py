"""Our comparison beside agentevals' four match modes.

Wherever ours says equal, all four of theirs must say so too. The other way round ours
is stricter on purpose: theirs look past message texts, results and, where asked to,
arguments, which is right for scoring and wrong for telling two versions apart.
"""

from __future__ import annotations

import json
from itertools import product

import pytest
from agentevals.trajectory.match import create_trajectory_match_evaluator
from hypothesis import given, settings
from hypothesis import strategies as st

from equivalence.judge.compare import compare
from equivalence.runs.record import Run, Step

MODES = ("strict", "unordered", "subset", "superset")

Turn = list[tuple[str, dict, str]]
"""The calls of one reply: tool, arguments, result."""


def messages(question: str, turns: list[Turn], answer: str) -> list[dict]:
    """The conversation as OpenAI-style dicts."""
    found: list[dict] = [{"role": "user", "content": question}]
    number = 0
    for turn in turns:
        calls = []
        results = []
        for tool, arguments, result in turn:
            number += 1
            function = {"name": tool, "arguments": json.dumps(arguments)}
            identifier = f"call_{number}"
            calls.append({"id": identifier, "type": "function", "function": function})
            results.append(
                {"role": "tool", "tool_call_id": identifier, "content": result}
            )
        found += [{"role": "assistant", "content": "", "tool_calls": calls}, *results]
    return [*found, {"role": "assistant", "content": answer}]


def run(question: str, turns: list[Turn], answer: str) -> Run:
    """The same as a run record."""
    whole = messages(question, turns, answer)
    exchanges = [
        {
            "request": {"model": "m", "messages": whole[:index]},
            "reply": {"choices": [{"message": message, "finish_reason": None}]},
            "status": 200,
            "repairs": [],
            "ms": 1.0,
            "attempt": 0,
        }
        for index, message in enumerate(whole)
        if message["role"] == "assistant"
    ]
    flat = [(n, *call) for n, turn in enumerate(turns, 1) for call in turn]
    steps = [
        Step(turn, tool, arguments, json.dumps(arguments), result, True, order)
        for order, (turn, tool, arguments, result) in enumerate(flat)
    ]
    return Run(
        "x",
        question,
        status="completed",
        answer=answer,
        steps=steps,
        exchanges=exchanges,
    )


def theirs(left: list[dict], right: list[dict], **options) -> dict[str, bool]:
    """What each of their modes says."""
    return {
        mode: bool(
            create_trajectory_match_evaluator(trajectory_match_mode=mode, **options)(
                outputs=left, reference_outputs=right
            )["score"]
        )
        for mode in MODES
    }


def weather(city: str, result: str) -> tuple[str, dict, str]:
    return "get_weather", {"city": city}, result


SF = weather("SF", "80 degrees and sunny in SF")
FULL = weather("San Francisco", "80 degrees and sunny in San Francisco")
LONDON = weather("London", "90 degrees and rainy in London")
BOTH = weather("SF and London", "80 and sunny, 90 and rainy")
OTHER = ("accuweather_forecast", {"city": "San Francisco"}, "80 degrees and sunny")

# The kinds of case of their own suite: left, right, and what their modes say of it when
# arguments are looked past, which is how the suite runs most of them.
THEIR_CASES = {
    "other words for a city": ([[SF]], [[FULL]], (True, True, True, True)),
    "order within a turn": (
        [[SF, LONDON]],
        [[LONDON, SF]],
        (True, True, True, True),
    ),
    "two turns for one": ([[SF], [LONDON]], [[LONDON, SF]], (False, True, True, True)),
    "one call less": ([[SF]], [[LONDON, SF]], (False, False, True, False)),
    "another tool": ([[SF]], [[OTHER]], (False, False, False, False)),
    "one call more": ([[FULL, LONDON]], [[BOTH]], (False, False, False, True)),
}


@pytest.mark.parametrize("name", THEIR_CASES)
def test_their_cases_are_different_for_us_and_the_place_is_named(name):
    left, right, says = THEIR_CASES[name]
    a, b = messages("q", left, "It is sunny."), messages("q", right, "It's sunny.")
    ignoring = theirs(a, b, tool_args_match_mode="ignore")
    assert ignoring == dict(zip(MODES, says, strict=True))
    found = compare(run("q", left, "It is sunny."), run("q", right, "It's sunny."))
    assert found.cause == "reply"
    assert found.path.startswith("$.message.tool_calls[")


def test_only_ours_sees_another_answer_after_the_same_calls():
    a, b = ([[SF]], "80 degrees"), ([[SF]], "80˚")
    assert all(theirs(messages("q", *a), messages("q", *b)).values())
    found = compare(run("q", *a), run("q", *b))
    assert (found.cause, found.path) == ("reply", "$.message.content")


def test_only_ours_sees_another_result_of_the_same_call():
    a, b = ([[("t", {}, "1")]], "done"), ([[("t", {}, "2")]], "done")
    assert all(theirs(messages("q", *a), messages("q", *b)).values())
    assert compare(run("q", *a), run("q", *b)).cause == "tool"


calls = st.tuples(
    st.sampled_from(["get_weather", "calculate"]),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, 1.0, "x", True])),
    st.sampled_from(["1", "2"]),
)
trajectories = st.lists(st.lists(calls, min_size=1, max_size=2), max_size=2)


@settings(max_examples=300, deadline=None, database=None)
@given(st.lists(trajectories, min_size=2, max_size=4), st.sampled_from(["a", "b"]))
def test_what_is_equal_for_us_is_equal_for_all_of_their_modes(several, answer):
    for left, right in product([*several, several[0]], repeat=2):
        a, b = ("q", left, answer), ("q", right, answer)
        if compare(run(*a), run(*b)) is None:
            assert all(theirs(messages(*a), messages(*b)).values())
