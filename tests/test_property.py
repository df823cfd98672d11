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
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st
from wire import EXACT, LADDER

from config import Settings
from equivalence.gateway import Gateway, Script
from equivalence.judge.compare import compare
from equivalence.matrix.tools import add, boom, give
from equivalence.runs.files import from_line, to_line
from equivalence.runs.observe import observe

EXAMPLES = int(os.environ.get("EXAMPLES", "800"))
SHARES = 8
"""Into how many tests the examples are parted, so that several cores share them."""

TOOLS = (add, boom, give)

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
    max_leaves=30,
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
        'Thought: I add.\nAction: add\nAction Input: {"a": 1, "b": 2}',
        "Action: add[1]",
        "Action: no_such\nAction Input: nothing",
        "Action Input: {}",
        "Thought: done\nFinal Answer: 3",
        "Final Answer:",
        "Observation: made up\nFinal Answer: 3",
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
deltas = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "content": field(texts),
            "tool_calls": field(st.lists(field(calls), max_size=2)),
            "reasoning_content": field(texts),
        },
    ),
    max_size=4,
)
streams = st.fixed_dictionaries(
    {"stream": deltas}, optional={"finish_reason": field(finish_reasons)}
)
errors = st.fixed_dictionaries(
    {
        "status": st.sampled_from([400, 401, 404, 429, 500, 503]),
        "body": anything | st.fixed_dictionaries({"error": anything}),
        "headers": st.just({"retry-after-ms": "1"}),
    }
)
replies = (
    asking
    | asking
    | streams
    | errors
    | st.fixed_dictionaries(
        {"message": field(messages)}, optional={"finish_reason": field(finish_reasons)}
    )
    | st.fixed_dictionaries({"body": anything})
    | st.fixed_dictionaries({"body": st.fixed_dictionaries({"choices": anything})})
)
conversations = st.lists(replies, min_size=1, max_size=8)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_whatever_a_model_replies(share: int, gateway: Gateway) -> None:
    @seed(share)  # the same examples each time, others in each share
    @settings(
        max_examples=EXAMPLES // SHARES,
        derandomize=False,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        conversation=conversations,
        stream=st.sampled_from([False, False, True]),
        retries=st.sampled_from([0, 0, 1]),
    )
    def check(conversation: list, stream: bool, retries: int) -> None:
        baseline = None
        given = Settings(_env_file=None, retries=retries, max_steps=8, stream=stream)
        for each in LADDER:
            upstream = Script(conversation, strict=each.protocol == "tool_calls")
            run = observe(each, "go", given, gateway, TOOLS, upstream=upstream).run
            note(f"{each.name}: {run.status} {run.error}")
            assert run.status != "failed", run.error
            assert not upstream.refusals
            back = from_line(to_line(run))  # whatever came is written and read
            assert (back.status, len(back.exchanges)) == (
                run.status,
                len(run.exchanges),
            )
            assert compare(run, back) is None
            if each.protocol == "text":
                continue
            bodies = [exchange.body for exchange in run.exchanges]
            baseline = baseline or (run, bodies)
            assert compare(baseline[0], run) is None
            if each.name in EXACT:
                assert bodies == baseline[1]

    check()
