"""Whatever a model replies, no implementation crashes, all agree, and what they send
stays such that a strict provider takes it.

Replies are made up: valid ones, broken ones, absurd ones, any JSON in any field. The
number of examples is set by EXAMPLES; each is one conversation of up to eight calls.
"""

from __future__ import annotations

import json
import os
import string

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from config import Settings
from equivalence.gateway import Gateway, Script
from equivalence.judge.compare import compare
from equivalence.matrix.tools import add, boom, give
from equivalence.runs.implementation import LADDER, load
from equivalence.runs.observe import observe

EXAMPLES = int(os.environ.get("EXAMPLES", "2000"))
SHARES = 8
"""Into how many tests the examples are parted, so that several cores share them."""

TOOLS = (add, boom, give)
AGENTS = {each.name: load(each.target) for each in LADDER}

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["", "null", "{}", "<think>", "</think>", "\ud83d", "\x00", "北京"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(string.ascii_letters, max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)

names = st.sampled_from(["add", "add", "boom", "give", "no_such", "add ", ""])
good_arguments = st.sampled_from(
    [
        {"a": 1, "b": 2},
        {"a": "1", "b": 2.0, "c": 3},
        {"text": "坏了"},
        {"kind": "dict"},
        {"kind": "list"},
        {"kind": "none"},
        {"kind": "surrogate"},
        {},
    ]
)
argument_texts = (
    good_arguments.map(json.dumps)
    | good_arguments.map(lambda value: json.dumps(json.dumps(value)))
    | anything.map(lambda value: json.dumps(value))
    | st.sampled_from(["", "null", '{"a": 1', "{'a': 1}", '{"a": NaN}', '{"a": 1e999}'])
    | st.sampled_from(['{"a": "\\ud83d"}', '{"text": "line\nbreak"}', "[" * 2000])
    | st.text(max_size=30)
)
ids = st.sampled_from(["a", "b", "call_1", "call_2", "", None]) | anything


def field(usual: st.SearchStrategy, share: int = 8) -> st.SearchStrategy:
    """Mostly what is usual in this place, now and then anything."""
    return st.integers(0, share).flatmap(lambda n: anything if n == 0 else usual)


calls = st.fixed_dictionaries(
    {
        "id": ids,
        "type": field(st.just("function")),
        "function": field(
            st.fixed_dictionaries(
                {"name": field(names), "arguments": field(argument_texts)}
            )
        ),
    }
)
texts = st.text(max_size=40) | st.sampled_from(
    [
        "done",
        "",
        "<think>why</think>done",
        '{"name": "add", "arguments": {"a": 1, "b": 2}}',
        '```json\n{"name": "add", "parameters": {"a": 1}}\n```',
        'so: <tool_call>{"name": "boom", "arguments": {"text": "x"}}</tool_call>',
        '<tool_call>{"name": "add", "arguments": {"a": </tool_call>',
        "<tool_call><function=add><parameter=a>1</parameter></function></tool_call>",
    ]
)
messages = st.fixed_dictionaries(
    {"content": field(st.none() | texts)},
    optional={
        "tool_calls": field(st.lists(field(calls), max_size=3)),
        "refusal": field(st.none() | texts),
        "reasoning_content": field(texts),
        "function_call": field(st.none()),
        "name": anything,
        "id": anything,
        "role": anything,
    },
)
finish_reasons = st.sampled_from(
    ["stop", "tool_calls", "length", "content_filter", None]
)
asking = st.fixed_dictionaries(
    {
        "message": st.fixed_dictionaries(
            {
                "content": st.none(),
                "tool_calls": st.lists(calls, min_size=1, max_size=3),
            }
        )
    }
)
replies = (
    asking
    | asking
    | st.fixed_dictionaries(
        {"message": field(messages)}, optional={"finish_reason": field(finish_reasons)}
    )
    | st.fixed_dictionaries({"body": anything})
    | st.fixed_dictionaries({"body": st.fixed_dictionaries({"choices": anything})})
)
conversations = st.lists(replies, min_size=1, max_size=8)


@pytest.mark.parametrize("share", range(SHARES))
def test_whatever_a_model_replies(share: int, gateway: Gateway) -> None:
    @settings(
        max_examples=EXAMPLES // SHARES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(conversation=conversations)
    def check(conversation: list) -> None:
        measure = None
        for each in LADDER:
            upstream = Script(conversation, strict=each.protocol == "tool_calls")
            observed = observe(
                each.name,
                AGENTS[each.name],
                "go",
                Settings(_env_file=None, retries=0, max_steps=8),
                gateway,
                TOOLS,
                upstream=upstream,
            )
            run = observed.run
            note(f"{each.name}: {run.status} {run.error}")
            assert run.status != "failed", run.error
            assert not upstream.refusals
            if each.protocol == "text":
                continue
            bodies = [exchange.body for exchange in observed.exchanges]
            measure = measure or (run, bodies)
            assert compare(measure[0], run) is None
            if each.exact:
                assert bodies == measure[1]

    check()
