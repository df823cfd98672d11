"""Calls that a model wrote as text: the marks of many chat templates, and of none."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire import HELLO, WEATHER_TOOL, calling, watched

from config import Settings
from equivalence.gateway import Gateway, Script
from equivalence.gateway.passing import Passing
from equivalence.gateway.repairs import repair
from equivalence.gateway.text_calls import calls_in_text, looks_like_call

OFFERED = ["get_weather", "get_current_time"]
BEIJING = [("get_weather", {"city": "北京"})]
TWO = [*BEIJING, ("get_weather", {"city": "上海"})]
JSON_CALL = '{"name": "get_weather", "arguments": {"city": "北京"}}'

FORMS = {
    "Qwen, Hermes": (f"<tool_call>\n{JSON_CALL}\n</tool_call>", BEIJING),
    "Qwen2.5-Coder, with its template's braces": (
        '{{"name": "get_weather", "arguments": {"city": "北京"}}}}',
        BEIJING,
    ),
    "all braces twice, and in a text": (
        '{{"name": "get_weather", "arguments": {{"city": "{{a}} }}"}}}}',
        [("get_weather", {"city": "{{a}} }}"})],
    ),
    "Qwen3-Coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\n北京\n</parameter>\n"
        "</function>\n</tool_call>",
        BEIJING,
    ),
    "Seed": (
        "<seed:tool_call><function=get_weather><parameter=city>北京</parameter>"
        "</function></seed:tool_call>",
        BEIJING,
    ),
    "GLM 4.5": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>北京</arg_value>\n"
        "</tool_call>\n<tool_call>get_weather\n<arg_key>city</arg_key>"
        "<arg_value>上海</arg_value></tool_call>",
        TWO,
    ),
    "GLM 4.5, no arguments": (
        "<tool_call>get_current_time</tool_call>",
        [("get_current_time", None)],
    ),
    "MiniMax M1": (f"<tool_calls>\n{JSON_CALL}\n</tool_calls>", BEIJING),
    "MiniMax M2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">北京'
        "</parameter>\n</invoke>\n</minimax:tool_call>",
        BEIJING,
    ),
    "Anthropic": (
        '<function_calls>\n<invoke name="get_weather"><parameter name="city">北京'
        '</parameter></invoke><invoke name="get_weather"><parameter name="city">上海'
        "</parameter></invoke>\n</function_calls>",
        TWO,
    ),
    "DeepSeek V3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "北京"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        BEIJING,
    ),
    "DeepSeek V3.1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '{"city": "北京"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_weather'
        '<｜tool▁sep｜>{"city": "上海"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        TWO,
    ),
    "DeepSeek V3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        "<｜DSML｜parameter"
        ' name="city" string="true">北京</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        BEIJING,
    ),
    "Llama 3.1": ('<function=get_weather>{"city": "北京"}</function>', BEIJING),
    "Llama 3.1, its token": (
        '<|python_tag|>{"name": "get_weather", "parameters": {"city": "北京"}}'
        "<|eom_id|>",
        BEIJING,
    ),
    "Llama 3.1, built in": ('<|python_tag|>get_weather.call(city="北京")', BEIJING),
    "Llama 3.2": ('[get_weather(city="北京"), get_weather(city="上海")]', TWO),
    "Llama 4": ('<|python_start|>[get_weather(city="北京")]<|python_end|>', BEIJING),
    "Mistral": (f"[TOOL_CALLS][{JSON_CALL}]", BEIJING),
    "Mistral, newer": ('[TOOL_CALLS]get_weather[ARGS]{"city": "北京"}', BEIJING),
    "Mistral, with an id": (
        '[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{"city": "北京"}'
        '[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4f[ARGS]{"city": "上海"}',
        TWO,
    ),
    "Granite": (f"<|tool_call|>[{JSON_CALL}]", BEIJING),
    "Granite, twice": (
        f"<|tool_call|>{JSON_CALL}<|tool_call|>{JSON_CALL}",
        BEIJING * 2,
    ),
    "Phi-4-mini": (f"functools[{JSON_CALL}]", BEIJING),
    "Phi-4": (f"<|tool_call|>[{JSON_CALL}]<|/tool_call|>", BEIJING),
    "InternLM": (
        '<|action_start|><|plugin|>\n{"name": "get_weather", "parameters": {"city":'
        ' "北京"}}<|action_end|>',
        BEIJING,
    ),
    "Gemma": ('```tool_code\nget_weather(city="北京")\n```', BEIJING),
    "Gemma, printed": ('```tool_code\nprint(get_weather(city="北京"))\n```', BEIJING),
    "Gemini": ('print(default_api.get_weather(city="北京"))', BEIJING),
    "Kimi K2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "北京"}<|tool_call_end|>'
        "<|tool_calls_section_end|>",
        BEIJING,
    ),
    "Cohere": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather",'
        ' "parameters": {"city": "北京"}}]<|END_ACTION|>',
        BEIJING,
    ),
    "gpt-oss": (
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "北京"}<|call|>',
        BEIJING,
    ),
    "LM Studio": (f"[TOOL_REQUEST]{JSON_CALL}[END_TOOL_REQUEST]", BEIJING),
    "marks inside an argument": (
        '[TOOL_CALLS]get_weather[ARGS]{"city": "<|a|></tool_call>[ARGS]{"}',
        [("get_weather", {"city": "<|a|></tool_call>[ARGS]{"})],
    ),
    "no keyword of Python": (
        "[get_weather(city=null, deep=[true, {'a': 1}])]",
        [("get_weather", {"city": None, "deep": [True, {"a": 1}]})],
    ),
}


def plain(calls: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    found = []
    for call in calls:
        arguments = call["function"]["arguments"]
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        found.append((call["function"]["name"], arguments))
    return found


@pytest.mark.parametrize(("text", "expected"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("before", ["", "我查一下。"])
def test_a_form_is_read(text: str, expected: Any, before: str) -> None:
    bare = text[0] not in "<[" or text.startswith("[get_weather")
    if before and bare:
        pytest.skip("without marks a call is the whole text")
    found = calls_in_text(f"{before}\n{text}\n" if before else text, OFFERED)
    assert found is not None
    assert (found[0], plain(found[1])) == (before, expected)
    assert calls_in_text(text, ["another"]) is None
    assert calls_in_text(text, []) is None


@pytest.mark.parametrize(("text", "expected"), FORMS.values(), ids=FORMS)
def test_nothing_of_a_call_goes_to_the_client_early(text: str, expected: Any) -> None:
    for step in (1, 3, len(text)):
        passing = Passing(OFFERED)
        pieces = [text[at : at + step] for at in range(0, len(text), step)]
        assert [passing.feed(piece) for piece in pieces] == [""] * len(pieces)


PROSE = [
    "get_weather tells the weather.",
    "Call it so: <b>get_weather</b>(city)",
    "[1] get_weather is a tool, see the list.",
    "`get_weather(city)` is the call.",
    '```python\nprint("get_weather")\n```',
    "get_weather(city) returns the weather of a city.",
    "get_weather('北京')",
    "[get_weather, get_current_time]",
    "<p>get_weather</p>",
    "The temperature is < 5 and > 3.",
    "[TODO] nothing here names a tool",
    "<details>get_weather</details>",
    '{"name": "get_weather"}',
    '{"city": "北京", "arguments": "get_weather", "name": "weather"}',
    'It is {"name": "get_weather", "arguments": {"city": "北京"}}.',
    "{{city}} is what get_weather wants",
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_prose(text: str) -> None:
    assert calls_in_text(text, OFFERED) is None
    assert not looks_like_call(text, OFFERED)


UNKNOWN = [
    '<|run|>get_weather{"city": "北京"}',
    '<start_function_call>call:get_weather{city:"北京"}<end_function_call>',
    "<use_tool><name>get_weather</name></use_tool>",
    '[ACTION] get_weather {"city": "北京"}',
    '<｜call｜>{"get_weather": {"city": "北京"}}',
    "<tool_call>get_weather of Beijing</tool_call>",
    '```xml\n<call tool="get_weather"/>\n```',
    '{"name": "get_weather", "arguments": {"city": "北京"}',
    '{"name": "get_weather", "arguments": {"city": "北京"}}}\nI will look it up.',
    '```json\n[{"name": "get_weather", "arguments": {city: "北京"}}]\n```',
    '{{{"name": "get_weather", "arguments": {}}',
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_form_nobody_knows_looks_like_a_call(text: str) -> None:
    assert calls_in_text(text, OFFERED) is None
    assert looks_like_call(text, OFFERED)
    assert not looks_like_call(text, ["another"])
    assert not looks_like_call(text, [])


@calling
@pytest.mark.parametrize("stream", [False, True])
def test_it_is_no_completed_answer(
    implementation: Any, stream: bool, gateway: Gateway, offline_settings: Settings
) -> None:
    script = Script([{"message": {"content": UNKNOWN[0]}}])
    how = offline_settings.model_copy(update={"stream": stream})
    run = watched(implementation, how, gateway, "go", script).run
    assert (run.status, run.answer, run.steps) == ("unparsed_call", UNKNOWN[0], [])
    assert any("looks like a tool call" in warning for warning in run.warnings)


@calling
def test_a_reply_that_contradicts_itself_is_not_completed(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    for finish in ("tool_calls", "function_call"):
        item = {"message": {"content": "我来查一下。"}, "finish_reason": finish}
        run = watched(
            implementation, offline_settings, gateway, "go", Script([item])
        ).run
        assert (run.status, run.steps) == ("malformed", [])


def test_12_000_tags_that_nothing_closes_take_no_time() -> None:
    texts = [
        "<tool_call><function=get_weather>" + "<parameter=a>" * 12_000,
        "<tool_call><function=get_weather>" * 12_000,
        "<tool_call>" * 12_000 + "get_weather",
        "<arg_key>" * 12_000,
        "<tool_call>get_weather<arg_key>" + "<arg_key>a</arg_key>" * 12_000,
        "[TOOL_CALLS]" * 12_000 + "get_weather",
        "[TOOL_CALLS]" + "get_weather(" * 12_000,
        "<|python_tag|>" + "{" * 100_000,
        "[" * 100_000 + "get_weather()" + "]" * 100_000,
        "```\n" * 40_000,
        "<" * 150_000,
        "<think>" * 20_000,
        " " * 150_000 + "<think>",
        "[get_weather(" + "(" * 10_000 + ")]",
    ]
    for text in texts:
        started = time.process_time()
        calls_in_text(text, OFFERED)
        looks_like_call(text, OFFERED)
        body = {"choices": [{"message": {"content": text}}]}
        repair(body, {**HELLO, "tools": [WEATHER_TOOL]})
        passing = Passing(OFFERED)
        for at in range(0, len(text), 50):
            passing.feed(text[at : at + 50])
        assert time.process_time() - started < 2, text[:40]


PIECES = st.sampled_from(
    [
        *("<think>", "</think>", "[THINK]", "[/THINK]", "<tool_call>", "</tool_call>"),
        *(JSON_CALL, "get_weather", "(city=1)", "[", "]", "{", "}", "```", "```json\n"),
        *(
            "[TOOL_CALLS]",
            "<|python_tag|>",
            "<|x|>",
            " ",
            "\n",
            "北京晴。",
            "<",
            "a < b",
        ),
        *("\ud83d", "\ude00", "functools"),
    ]
)


@given(st.lists(PIECES, max_size=12), st.booleans(), st.integers(1, 9))
@settings(max_examples=600, deadline=None, database=None)
def test_what_is_passed_on_early_begins_the_repaired_reply(
    parts: list[str], tools: bool, step: int
) -> None:
    """Whatever comes, in whatever pieces: the client's stream and the record agree."""
    text = "".join(parts)
    request = {**HELLO, "tools": [WEATHER_TOOL]} if tools else HELLO
    passing = Passing(["get_weather"] if tools else [])
    early = "".join(
        passing.feed(text[at : at + step]) for at in range(0, len(text), step)
    )
    body = {"choices": [{"message": {"content": text}}]}
    whole, repairs = repair(body, request, passed_on=early)
    assert (whole["choices"][0]["message"]["content"] or "").startswith(early)
    plain_whole, _ = repair(body, request)
    if "late_think_block" not in repairs:
        assert whole == plain_whole
