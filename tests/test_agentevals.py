"""Our comparison beside agentevals 0.0.9: every kind of case of its own suite.

Both read the same messages: theirs as they are, ours through the reader of chat
messages. Theirs scores a trajectory against a reference, so it looks past what a text
says, past results and, where asked to, past arguments; ours tells two versions apart.
Each disagreement is listed with who is right for which purpose.

Where ours says equal by requests, all four of their modes say so as well, unless they
cannot read the arguments: on "" and on broken JSON they raise. By steps alone, ours
does not see how many model calls the same steps took, nor the system message; strict
does.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import product
from typing import Annotated, Any, TypedDict

import pytest
from agentevals.graph_trajectory.strict import graph_trajectory_strict_match
from agentevals.graph_trajectory.utils import extract_langgraph_trajectory_from_thread
from agentevals.trajectory.match import (
    create_async_trajectory_match_evaluator,
    create_trajectory_match_evaluator,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from equivalence.judge.compare import Divergence, compare
from equivalence.runs.record import Run
from equivalence.traces import chat

MODES = ("strict", "unordered", "subset", "superset")

Turn = list[tuple[str, dict[str, Any], str]]
"""The calls of one reply: tool, arguments, result."""


def messages(turns: list[Turn], answer: str = "done", question: str = "q") -> list[Any]:
    """The conversation as OpenAI's dicts."""
    found: list[dict[str, Any]] = [{"role": "user", "content": question}]
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


def run(whole: list[Any]) -> Run:
    """The run that the reader of chat messages makes of it."""
    plain = [m if isinstance(m, dict) else messages_to_dict([m])[0] for m in whole]
    found = chat.conversations([plain])
    assert found
    (read,) = chat.read(found, "x")
    return read


def ours(left: list[Any], right: list[Any]) -> Divergence | None:
    return compare(run(left), run(right))


def by_requests(left: list[Any], right: list[Any]) -> Divergence | None:
    """What ours says where the messages are what was sent."""
    a, b = (replace(run(whole), rebuilt="") for whole in (left, right))
    return compare(a, b)


def theirs(left: list[Any], right: list[Any], **options: Any) -> dict[str, bool]:
    """What each of their modes says."""
    return {
        mode: bool(
            create_trajectory_match_evaluator(trajectory_match_mode=mode, **options)(
                outputs=left, reference_outputs=right
            )["score"]
        )
        for mode in MODES
    }


def says(*modes: str) -> dict[str, bool]:
    """Which of their modes take the two for the same."""
    return {mode: mode in modes for mode in MODES}


def flight(**arguments: Any) -> tuple[str, dict[str, Any], str]:
    return "book_flight", arguments, "booked"


ROME = ("look_up", {"city": "Rome"}, "18 °C")
OSLO = ("look_up", {"city": "Oslo"}, "3 °C")
ROMA = ("look_up", {"city": "Roma"}, "18 °C")
NEWS = ("read_news", {"topic": "Rome"}, "nothing new")
SUBSET = flight(to="Rome", seats=2)
SUPERSET = flight(to="Rome", seats=2, meal="none")
NESTED = flight(to="Rome", who={"name": "Ada", "row": 3})
NESTED_OTHER_ROW = flight(to="Oslo", who={"name": "Ada", "row": 9})
NESTED_OTHER_NAME = flight(to="Rome", who={"name": "Bob", "row": 3})

SWAPPED = (
    "their subset and unordered swap the sides before they compare arguments, so what"
    " is asked to be a subset is held to be a superset; ours has one way to compare"
)

# What agentevals says (which of its modes accept, under which options), what ours says
# (where it finds the first difference; None: equal), and who is right.
CASES: dict[str, tuple[list[Turn], list[Turn], dict[str, Any], Any, Any, str]] = {
    "the same": (
        [[ROME], [OSLO]], [[ROME], [OSLO]], {}, MODES, None,
        "both: nothing differs",
    ),
    "another argument": (
        [[ROME]], [[ROMA]], {}, (), "steps[0].arguments.city",
        "both: exact arguments differ",
    ),
    "another argument, ignored": (
        [[ROME]], [[ROMA]], {"tool_args_match_mode": "ignore"}, MODES,
        "steps[0].arguments.city",
        "theirs for scoring; ours for telling apart. `--ignore` says the same of ours",
    ),
    "order within a turn": (
        [[ROME, OSLO]], [[OSLO, ROME]], {}, MODES, "steps[0].arguments.city",
        "ours: two versions that ask in another order send other requests; theirs takes"
        " even strict for a set within a turn",
    ),
    "order of turns": (
        [[ROME], [OSLO]], [[OSLO], [ROME]], {}, ("unordered", "subset", "superset"),
        "steps[0].arguments.city",
        "both strict and ours; the other modes are asked not to look",
    ),
    "two turns for one": (
        [[ROME, OSLO]], [[ROME], [OSLO]], {}, ("unordered", "subset", "superset"), None,
        "theirs: strict sees the second model call; ours by steps counts steps, and a"
        " trace with requests shows it",
    ),
    "one call less": (
        [[ROME]], [[ROME, OSLO]], {}, ("subset",), "status",
        "both: subset is asked to accept it",
    ),
    "one call more": (
        [[ROME, OSLO]], [[ROME]], {}, ("superset",), "status",
        "both: superset is asked to accept it",
    ),
    "another tool": (
        [[ROME]], [[NEWS]], {"tool_args_match_mode": "ignore"}, (), "steps[0].tool",
        "both: names always count",
    ),
    "no call for one": (
        [], [[ROME]], {}, ("subset",), "status",
        "both: subset is asked to accept it",
    ),
    "fewer arguments": (
        [[SUBSET]], [[SUPERSET]], {}, (), "steps[0].arguments.meal",
        "both: exact arguments differ",
    ),
    "fewer arguments, as a subset": (
        [[SUBSET]], [[SUPERSET]], {"tool_args_match_mode": "subset"},
        ("strict", "superset"),
        "steps[0].arguments.meal",
        "ours: " + SWAPPED,
    ),
    "fewer arguments, as a superset": (
        [[SUBSET]], [[SUPERSET]], {"tool_args_match_mode": "superset"},
        ("subset",),
        "steps[0].arguments.meal",
        "ours: " + SWAPPED,
    ),
    "more arguments, as a superset": (
        [[SUPERSET]], [[SUBSET]], {"tool_args_match_mode": "superset"},
        ("strict", "superset"),
        "steps[0].arguments.meal",
        "ours: " + SWAPPED,
    ),
    "more arguments, as a subset": (
        [[SUPERSET]], [[SUBSET]], {"tool_args_match_mode": "subset"},
        ("subset",),
        "steps[0].arguments.meal",
        "ours: " + SWAPPED,
    ),
    "a tool looked past": (
        [[ROME]], [[ROMA]], {"tool_args_match_overrides": {"look_up": "ignore"}}, MODES,
        "steps[0].arguments.city",
        "theirs for scoring; of ours, `--accept` takes it for one tool",
    ),
    "another tool looked past": (
        [[ROME]], [[ROMA]], {"tool_args_match_overrides": {"read_news": "ignore"}}, (),
        "steps[0].arguments.city",
        "both: the override is not about this tool",
    ),
    "a tool held to be exact": (
        [[ROME]], [[ROMA]],
        {"tool_args_match_mode": "ignore",
         "tool_args_match_overrides": {"look_up": "exact"}},
        (), "steps[0].arguments.city",
        "both",
    ),
    "a matcher of one's own": (
        [[ROME]], [[ROMA]],
        {"tool_args_match_overrides": {
            "look_up": lambda a, b: a["city"][:3] == b["city"][:3]}},
        MODES, "steps[0].arguments.city",
        "theirs for scoring: ours has no function that says what is the same",
    ),
    "a field that counts": (
        [[SUBSET]], [[SUPERSET]],
        {"tool_args_match_overrides": {"book_flight": ["to", "seats"]}}, MODES,
        "steps[0].arguments.meal",
        "theirs for scoring; `--ignore 'steps[*].arguments.meal'` does it for ours",
    ),
    "a nested field that counts, the same": (
        [[NESTED]], [[NESTED_OTHER_ROW]],
        {"tool_args_match_overrides": {"book_flight": ["who.name"]}}, MODES,
        "steps[0].arguments.to",
        "theirs for scoring; ours for telling apart",
    ),
    "a nested field that counts, another": (
        [[NESTED]], [[NESTED_OTHER_NAME]],
        {"tool_args_match_overrides": {"book_flight": ["who.name"]}}, (),
        "steps[0].arguments.who.name",
        "both",
    ),
    "a nested field that is not there": (
        [[NESTED]], [[NESTED_OTHER_NAME]],
        {"tool_args_match_overrides": {"book_flight": ["who.nmae"]}}, MODES,
        "steps[0].arguments.who.name",
        "ours: theirs takes a field that is in neither, as a slip of the pen makes it,"
        " for the same",
    ),
    "true for 1": (
        [[flight(seats=1)]], [[flight(seats=True)]], {}, MODES,
        "steps[0].arguments.seats",
        "ours: JSON has two kinds of value; Python's == has one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_their_cases_and_what_both_say_of_it(name: str) -> None:
    left, right, options, accepts, path, who = CASES[name]
    assert theirs(messages(left), messages(right), **options) == says(*accepts)
    found = ours(messages(left), messages(right))
    assert (found.path if found else None) == path
    assert who.startswith(("ours", "theirs", "both"))


@pytest.mark.parametrize("name", [*CASES][:6])
def test_their_async_evaluators_say_the_same(name: str) -> None:
    left, right, options, accepts, *_ = CASES[name]
    for mode in MODES:
        evaluate = create_async_trajectory_match_evaluator(
            trajectory_match_mode=mode, **options
        )
        found = asyncio.run(
            evaluate(outputs=messages(left), reference_outputs=messages(right))
        )
        assert bool(found["score"]) is (mode in accepts)


# What theirs never looks at. Scoring a trajectory needs none of it; a version that
# answers differently is another version, so here ours is right for its own purpose.
UNSEEN = {
    "another answer": (messages([[ROME]]), messages([[ROME]], "fine"), "answer"),
    "another result of the same call": (
        messages([[ROME]]),
        messages([[("look_up", {"city": "Rome"}, "19 °C")]]),
        "steps[0].result",
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_only_ours_sees_it(name: str) -> None:
    left, right, path = UNSEEN[name]
    assert theirs(left, right) == says(*MODES)
    found = ours(left, right)
    assert found
    assert found.path == path


def langchain(city: str, *, identifier: str = "c1") -> list[Any]:
    call = {"name": "look_up", "args": {"city": city}, "id": identifier}
    return [
        HumanMessage("q"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("18 °C", tool_call_id=identifier),
        AIMessage("done"),
    ]


def test_langchains_messages_are_those_of_openai_for_both() -> None:
    as_dicts = messages([[ROME]])
    for left, right in product([langchain("Rome"), as_dicts], repeat=2):
        assert theirs(left, right) == says(*MODES)
        assert ours(left, right) is None
    assert theirs(langchain("Rome"), langchain("Oslo")) == says()
    found = ours(langchain("Rome"), as_dicts[:1] + langchain("Oslo")[1:])
    assert found
    assert found.path == "steps[0].arguments.city"


def test_neither_compares_the_ids_of_calls() -> None:
    left, right = langchain("Rome"), langchain("Rome", identifier="other")
    assert theirs(left, right) == says(*MODES)
    assert ours(left, right) is None


def test_a_system_message_counts_for_their_strict_alone() -> None:
    """Theirs, where both hold it; ours by steps says that requests are not compared."""
    left = [SystemMessage("Be short."), *langchain("Rome")]
    assert theirs(left, langchain("Rome")) == says("unordered", "subset", "superset")
    assert ours(left, langchain("Rome")) is None
    found = by_requests(left, langchain("Rome"))
    assert found
    assert found.cause == "request"


def test_a_dict_with_messages_is_taken_by_both() -> None:
    state = {"messages": messages([[ROME]])}
    evaluate = create_trajectory_match_evaluator(trajectory_match_mode="strict")
    assert evaluate(outputs=state, reference_outputs=state)["score"]
    assert chat.conversations([state]) == chat.conversations([state["messages"]])


# "" is how some servers write no arguments, and a model's broken JSON is what an agent
# must live with: a comparison that raises says nothing. Ours is right.
UNREADABLE = ["", '{"city": "Ro', "Rome"]


@pytest.mark.parametrize("arguments", UNREADABLE)
def test_they_raise_where_arguments_are_no_json_and_ours_compares_the_text(
    arguments: str,
) -> None:
    whole = messages([[ROME]])
    whole[1]["tool_calls"][0]["function"]["arguments"] = arguments
    assert ours(whole, whole) is None
    for mode in MODES:
        evaluate = create_trajectory_match_evaluator(trajectory_match_mode=mode)
        with pytest.raises(ValueError, match=r"Expecting value|Unterminated"):
            evaluate(outputs=whole, reference_outputs=whole)
    found = ours(whole, messages([[ROME]]))
    assert found
    assert found.path.startswith("steps[0].arguments")


# ----------------------------------------------------------------------- graph threads


class State(TypedDict):
    messages: Annotated[list[Any], list.__add__]


def thread(first: str, *, city: str = "Rome", stops: bool = False) -> Any:
    """A thread of a graph of two nodes: its trajectory as theirs takes it out, and its
    messages."""
    from langgraph.checkpoint.memory import MemorySaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import interrupt

    def look_up(state: State) -> Any:
        if stops:
            interrupt("may I?")
        return {"messages": langchain(city)[1:3]}

    graph = StateGraph(State)
    graph.add_node(first, look_up)
    graph.add_node("tell", lambda state: {"messages": langchain(city)[3:]})
    graph.add_edge(START, first)
    graph.add_edge(first, "tell")
    graph.add_edge("tell", END)
    compiled = graph.compile(checkpointer=MemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    state = compiled.invoke({"messages": langchain(city)[:1]}, config)
    found = extract_langgraph_trajectory_from_thread(compiled, config)
    return found["outputs"], state["messages"]


def test_the_same_thread_is_the_same_for_both() -> None:
    (left, said), (right, again) = thread("look_up"), thread("look_up")
    assert left["steps"] == [["__start__", "look_up", "tell"]]
    assert graph_trajectory_strict_match(outputs=left, reference_outputs=right)["score"]
    assert ours(said, again) is None


def test_another_node_that_does_the_same_is_different_for_theirs_alone() -> None:
    """Ours is right about the agent: a node's name reaches neither model nor user."""
    (left, said), (right, again) = thread("look_up"), thread("search")
    match = graph_trajectory_strict_match(outputs=left, reference_outputs=right)
    assert not match["score"]
    assert ours(said, again) is None


def test_the_same_nodes_with_other_arguments_are_different_for_ours_alone() -> None:
    """Ours is right about the agent; theirs compares the names of nodes alone."""
    (left, said), (right, again) = thread("look_up"), thread("look_up", city="Oslo")
    assert graph_trajectory_strict_match(outputs=left, reference_outputs=right)["score"]
    found = ours(said, again)
    assert found
    assert found.path == "steps[0].arguments.city"


def test_an_interrupted_thread_is_different_for_both() -> None:
    (left, said), (right, _) = thread("look_up", stops=True), thread("look_up")
    assert "__interrupt__" in left["steps"][0]
    match = graph_trajectory_strict_match(outputs=left, reference_outputs=right)
    assert not match["score"]
    found = chat.conversations([messages_to_dict(said)])
    assert found
    assert chat.read(found, "x") == []  # nothing was answered yet: no run


# ------------------------------------------------------------------ ours implies theirs

calls = st.tuples(
    st.sampled_from(["get_weather", "calculate"]),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, 1.0, "x", True])),
    st.sampled_from(["1", "2"]),
)
turns = st.lists(calls, min_size=1, max_size=2)
trajectories = st.lists(turns, max_size=2)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, database=None)
@given(st.lists(trajectories, min_size=2, max_size=4), st.sampled_from(["a", "b"]))
def test_what_is_equal_for_us_is_equal_for_all_their_modes_where_they_can_read_it(
    several: list[list[Turn]], answer: str
) -> None:
    for left, right in product([*several, several[0]], repeat=2):
        a, b = messages(left, answer), messages(right, answer)
        if by_requests(a, b) is None:
            assert theirs(a, b) == says(*MODES)
