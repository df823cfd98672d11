"""Stage 5's parser: what models write instead of one action."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_react import BEIJING, NAMED

from equivalence.gateway.repairs import INVALID_ARGUMENTS
from stage5_text_react.parser import Action, Answer, Unreadable, parse
from stage5_text_react.prompt import as_text
from stage5_text_react.reply import as_message

ONE_AND_ONE = {"expression": "1+1"}
ACTIONS = {  # what was seen: (reply, tool, arguments)
    "R89 brackets on the line": (
        'Thought: 需要计算\nAction: calculate ({"expression": "1+1"})',
        ("calculate", ONE_AND_ONE),
    ),
    "R89 no input": ("Action: get_current_time", ("get_current_time", {})),
    "R89 no input, one needed": ("Action: calculate", ("calculate", {})),
    "R90 a Python dict": (
        "Action: get_weather\nAction Input: {'city': '北京'}",
        ("get_weather", BEIJING),
    ),
    "R90 True": (
        'Action: get_weather\nAction Input: {"city": "北京", "flag": True}',
        ("get_weather", {**BEIJING, "flag": True}),
    ),
    "R90 both kinds of words": (
        "Action: get_weather\nAction Input: {'city': '北京', 'a': null, 'b': False} 。",
        ("get_weather", {**BEIJING, "a": None, "b": False}),
    ),
    "R91 an invented observation": (
        'Action: calculate\nAction Input: {"expression": "1+1"}\nObservation: 3\n'
        "Thought: 我知道了\nFinal Answer: 3",
        ("calculate", ONE_AND_ONE),
    ),
    "R92 two actions": (
        'Action: get_weather\nAction Input: {"city": "北京"}\nObservation: 20\n'
        'Action: calculate\nAction Input: {"expression": "1+1"}',
        ("get_weather", BEIJING),
    ),
    "R93 no thought": (
        '先查天气。\n\nAction: get_weather\nAction Input: {"city": "北京"}',
        ("get_weather", BEIJING),
    ),
    "R96 lines and text behind": (
        'Action: calculate\n\nAction Input: {\n  "expression": "1+1"\n}\n（等待结果）',
        ("calculate", ONE_AND_ONE),
    ),
    "R96 a brace in a string": (
        'Action: calculate\nAction Input: {"expression": "1}+{1"} ok}',
        ("calculate", {"expression": "1}+{1"}),
    ),
    "R96 a brace in a Python string": (
        "Action: calculate\nAction Input: {'expression': '1}+{1'} ok}",
        ("calculate", {"expression": "1}+{1"}),
    ),
    "R99 bare text": (
        "Action: get_weather\nAction Input: 北京",
        ("get_weather", BEIJING),
    ),
    "R99 a sentence": (
        "Action: calculate\nAction Input: 128乘以6\n我等结果。",
        ("calculate", {"expression": "128乘以6"}),
    ),
    "bare brackets": (
        "Action: calculate\nAction Input: (25 + 15) * (8 / 4)",
        ("calculate", {"expression": "(25 + 15) * (8 / 4)"}),
    ),
    "a JSON string": (
        'Action: calculate\nAction Input: "1+1"',
        ("calculate", ONE_AND_ONE),
    ),
    "a fence": (
        'Action: get_weather\nAction Input:\n```json\n{"city": "北京"}\n```\nso',
        ("get_weather", BEIJING),
    ),
    "a Python call": ('Action: get_weather(city="北京")', ("get_weather", BEIJING)),
    "a Python call as input": (
        'Action: get_weather\nAction Input: get_weather({"city": "北京"})',
        ("get_weather", BEIJING),
    ),
    "text that is no input": ("Action: get_weather\n我等结果。", ("get_weather", {})),
    "pairs": (
        'Action: get_weather\nAction Input: city="北京"',
        ("get_weather", BEIJING),
    ),
    "no label in front of the JSON": (
        'Action: get_weather\n{"city": "北京"}',
        ("get_weather", BEIJING),
    ),
    "bold and ticks": (
        '**Thought:** x\n**Action:** `get_weather`\n**Action Input:** {"city": "北京"}',
        ("get_weather", BEIJING),
    ),
    "Chinese labels": (
        '思考：查天气\n行动：get_weather\n行动输入：{"city": "北京"}',
        ("get_weather", BEIJING),
    ),
    "numbered labels": (
        'Action 1: get_weather\nAction 1 Input 1: {"city": "北京"}',
        ("get_weather", BEIJING),
    ),
    "in the middle of a line": (
        'I look it up. Action: get_weather\nAction Input: {"city": "北京"}',
        ("get_weather", BEIJING),
    ),
    "labels in a string": (
        'Action: calculate\nAction Input: {"expression": "x. Final Answer: 1"}',
        ("calculate", {"expression": "x. Final Answer: 1"}),
    ),
    "no answer behind the label": (
        "Final Answer:\nAction: get_current_time",
        ("get_current_time", {}),
    ),
    "R33 thinking about an action": (
        "<think>Action: calculate</think>Action: get_current_time",
        ("get_current_time", {}),
    ),
    "half a character": (
        'Action: get_weather\nAction Input: {"city": "\\ud83d"}',
        ("get_weather", {"city": "?"}),
    ),
    "brackets, as the paper has them": (
        "Action: get_weather[北京]",
        ("get_weather", BEIJING),
    ),
    "brackets and text behind": (
        "Action: get_weather[北京] and then I answer.\nObservation: 25",
        ("get_weather", BEIJING),
    ),
    "quotes in brackets": ('Action: get_weather["北京"]', ("get_weather", BEIJING)),
    "an object in brackets": (
        'Action: get_weather[{"city": "北京"}]',
        ("get_weather", BEIJING),
    ),
    "a pair in brackets": (
        'Action: get_weather[city="北京"]',
        ("get_weather", BEIJING),
    ),
    "brackets in brackets": (
        "Action: calculate[(1+2)*3]",
        ("calculate", {"expression": "(1+2)*3"}),
    ),
    "brackets as input": (
        "Action: get_weather\nAction Input: [北京]",
        ("get_weather", BEIJING),
    ),
    "a bracket never closed": ("Action: get_weather[北京", ("get_weather", BEIJING)),
    "the label on the line": (
        'Action: get_weather, Action Input: {"city": "北京"}',
        ("get_weather", BEIJING),
    ),
    "the label on the line, no comma": (
        'Action: get_weather Action Input: {"city":\n"北京"}',
        ("get_weather", BEIJING),
    ),
    "the label on the line, bare text": (
        "Action: get_weather, Input: 北京",
        ("get_weather", BEIJING),
    ),
    "the Chinese label on the line": (
        "行动：get_weather，行动输入：北京",
        ("get_weather", BEIJING),
    ),
    "a shorter label": (
        'Action: get_weather\nInput: {"city": "北京"}',
        ("get_weather", BEIJING),
    ),
    "a shorter Chinese label": (
        "行动：get_weather\n输入：北京",
        ("get_weather", BEIJING),
    ),
    "a pair without quotes": (
        "Action: get_weather\nAction Input: city=北京",
        ("get_weather", BEIJING),
    ),
    "a pair with a colon": (
        "Action: get_weather\nAction Input: City: 北京。",
        ("get_weather", BEIJING),
    ),
    "pairs without quotes": (
        "Action: unit_convert\nAction Input: value=18, from_unit=celsius,"
        " to_unit=fahrenheit",
        (
            "unit_convert",
            {"value": "18", "from_unit": "celsius", "to_unit": "fahrenheit"},
        ),
    ),
    "a colon behind the name": ("Action: get_weather: 北京", ("get_weather", BEIJING)),
    "a full stop": (
        "Action: get_weather\nAction Input: 北京。",
        ("get_weather", BEIJING),
    ),
    "a comma": ("Action: get_weather\nAction Input: 北京，", ("get_weather", BEIJING)),
    "a Latin full stop": (
        "Action: get_weather\nAction Input: Beijing.",
        ("get_weather", {"city": "Beijing"}),
    ),
    "a sign of a number": (
        "Action: calculate\nAction Input: -5 + 3",
        ("calculate", {"expression": "-5 + 3"}),
    ),
    "an unknown tool": ("Action: search\nAction Input: {}", ("search", {})),
}


@pytest.mark.parametrize(("reply", "expected"), ACTIONS.values(), ids=ACTIONS)
def test_an_action_is_read(reply, expected) -> None:
    found = parse(reply, NAMED)
    assert isinstance(found, Action)
    assert (found.name, found.arguments) == expected


ANSWERS = {
    "plain": ("Thought: done\nFinal Answer: 25 °C", "25 °C"),
    "lines": ("Final Answer: a\n\n- b\n- c", "a\n\n- b\n- c"),
    "on the thought's line": ("Thought: I know it. Final Answer: 25", "25"),
    "and then more": ("Final Answer: 25\nThought: more\nAction: get_weather", "25"),
    "a label within a line": (
        "Final Answer: 建议如下。行动：带伞。",
        "建议如下。行动：带伞。",
    ),
    "Action: None": ("Action: None\nFinal Answer: hello", "hello"),
    "as an action": ("Action: Final Answer: hello", "hello"),
    "R33": ("<think>\n用户想要…\n</think>\n\nFinal Answer: 北京晴", "北京晴"),
    "R33 begun by the template": ("用户…</think>Final Answer: 北京晴", "北京晴"),
    "Chinese label": ("思考：好了\n最终答案：北京晴", "北京晴"),
}


@pytest.mark.parametrize(("reply", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_read(reply: str, expected: str) -> None:
    assert parse(reply, NAMED) == Answer(expected)


UNREADABLE = {
    "R98 plain text": "我觉得应该查一下天气。",
    "nothing": "",
    "thinking alone": "<think>Final Answer: 1",
    "no name": 'Action:\nAction Input: {"city": "北京"}',
    "input alone": 'Action Input: {"city": "北京"}',
    "an invented observation first": "Observation: 25\nFinal Answer: 25",
    "a word, no label": "Final Answers are hard, and Action is needed",
}


@pytest.mark.parametrize("reply", UNREADABLE.values(), ids=UNREADABLE)
def test_neither_is_told(reply: str) -> None:
    found = parse(reply, NAMED)
    assert isinstance(found, Unreadable)
    assert "Final Answer:" in found.reminder


INVALID = [
    '{"city": "北',
    '{"city": NaN}',
    "{'city': {1, 2}}",
    '{"city": 1e999}',
    "{" * 3000,
    '{"a":' * 3000,
    "{'city': __import__('os').getcwd()}",
    "place=北京",  # a name that the tool does not have
]


@pytest.mark.parametrize("written", INVALID, ids=lambda text: text[:20])
def test_what_is_no_object_is_not_executed(written: str) -> None:
    found = parse(f"Action: get_weather\nAction Input: {written}", NAMED)
    assert isinstance(found, Action)
    assert found.arguments.keys() == {INVALID_ARGUMENTS, "reason"}


def test_several_parameters_cannot_be_bare_text() -> None:
    found = parse("Action: unit_convert\nAction Input: 18 celsius", NAMED)
    assert found.arguments[INVALID_ARGUMENTS] == "18 celsius"


def test_an_action_that_was_cut_off_is_none() -> None:
    reply = "Action: get_weather\nAction Input: 北"
    assert parse(reply, NAMED).arguments == {"city": "北"}
    assert "cut off" in parse(reply, NAMED, "length").reminder
    assert parse("Final Answer: 北", NAMED, "length") == Answer("北")


FRAGMENTS = st.sampled_from(
    [
        *("Thought:", "Action:", "Action Input:", "Observation:", "Final Answer:"),
        *("get_weather", "unit_convert", "None", "(", ")", "{", "}", "[", "'", '"'),
        *("\n", "```json\n", "```", "<think>", "</think>", "**", "city=", "：", "。"),
        *('{"city": "北京"}', "{'a': True, 'b': null}", '"\\ud83d"', "\ud83d", "NaN"),
    ]
) | st.text(max_size=5)


@given(
    st.lists(FRAGMENTS, max_size=20).map("".join), st.sampled_from(["stop", "length"])
)
@settings(max_examples=500, deadline=None, database=None)
def test_whatever_is_written_can_be_read_and_sent(reply: str, end: str) -> None:
    message = as_message(parse(reply, NAMED, end), [])
    (sent,) = as_text([message])
    sent["content"].encode()
    for call in message.get("tool_calls", ()):
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_a_long_reply_takes_no_time() -> None:
    replies = [
        "Thought: a\n" * 20_000,
        "Final Answer:\n" * 20_000,
        "Action" + " " * 100_000,
        "Action: get_weather\nAction Input: {" + "}" * 20_000,
        "Action: get_weather\nAction Input: ```" + " " * 100_000 + "x",
        "Action: get_weather\nAction Input: " + '{"a":' * 20_000 + "}" * 20_000,
    ]
    started = time.process_time()
    for reply in replies:
        parse(reply, NAMED)
    assert time.process_time() - started < 5
