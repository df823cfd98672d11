"""Stage 5: replies as text, whatever they look like; the memory within its budget."""

from __future__ import annotations

import json
import time
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config import Settings
from equivalence.compare import judge
from equivalence.implementations import find, load
from equivalence.observe import Observed, observe
from equivalence.questions import DEMO, read_questions
from equivalence.record import Run
from gateway import Gateway, OfflineModel, Script
from stage5_text_react.agent import run_agent
from stage5_text_react.memory import CONTEXT, SUMMARY, dialogue, extract
from stage5_text_react.parser import Action, Answer, Unreadable, parse
from stage5_text_react.prompt import STOP, as_text, scratchpad, system_prompt
from stage5_text_react.reply import as_message
from tokens import message_tokens, tokens
from tools import INVALID_ARGUMENTS, TOOLS, by_name

NAMED = by_name(TOOLS)
STAGE3 = load("stage3_pure_loop.agent:run_agent")


@pytest.fixture
def watch(gateway, offline_settings):
    """Let stage 5 read scripted texts; returns what was observed."""

    def run(*replies, question="go", tools=TOOLS, script=None, **settings) -> Observed:
        items = [
            {"message": {"content": r}} if isinstance(r, str) else r for r in replies
        ]
        return observe(
            "stage5",
            run_agent,
            question,
            offline_settings.model_copy(update=settings),
            gateway,
            tools,
            upstream=script or Script(items, strict=True),
        )

    return run


def said(run: Run) -> list[Any]:
    return [(step.tool, step.arguments, step.ok) for step in run.steps]


def sent(observed: Observed, number: int = -1) -> list[str]:
    """The texts of a request, less the system message."""
    return [m["content"] for m in observed.exchanges[number].request["messages"][1:]]


# -------------------------------------------------------------------------- the parser

BEIJING = {"city": "北京"}
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


# ---------------------------------------------------------------------------- the loop


def test_a_request_has_no_tools_but_the_prompt_has(watch) -> None:
    request = watch("Final Answer: hi").exchanges[0].request
    assert not request.keys() & {"tools", "tool_choice", "functions"}
    assert request["stop"] == STOP
    lines = [
        line for line in request["messages"][0]["content"].splitlines() if "{" in line
    ]
    schemas = [json.loads(line) for line in lines]
    assert [schema["name"] for schema in schemas] == list(NAMED)
    assert all(
        schema.keys() == {"name", "description", "parameters"} for schema in schemas
    )
    assert schemas[0]["parameters"]["required"] == ["city"]


def test_the_conversation_has_the_shape_of_stage_4s(watch) -> None:
    observed = watch(
        'Thought: 查天气\nAction: get_weather\nAction Input: {"city":"北京"}',
        "Final Answer: 晴",
    )
    question, asked, result, answer = observed.conversation
    assert question == {"role": "user", "content": "go"}
    assert asked["content"] == "查天气"
    (call,) = asked["tool_calls"]
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "北京"}'}
    assert result["role"] == "tool"
    assert result["tool_call_id"] == call["id"]
    assert answer == {"role": "assistant", "content": "晴"}
    assert sent(observed) == [
        "go",
        'Thought: 查天气\nAction: get_weather\nAction Input: {"city": "北京"}',
        f"Observation: {result['content']}",
    ]


def test_r91_the_real_result_is_what_the_model_sees(watch) -> None:
    observed = watch(
        "Thought: 要计算\nAction: calculate\n"
        'Action Input: {"expression": "2123*210512"}\nObservation: 1\n'
        "Thought: 我知道了\nFinal Answer: 1",
        "Final Answer: 446916976",
    )
    assert said(observed.run) == [("calculate", {"expression": "2123*210512"}, True)]
    assert observed.run.steps[0].turn == 1
    assert sent(observed)[-1] == "Observation: 446916976"
    assert "我知道了" not in json.dumps(observed.conversation, ensure_ascii=False)
    assert observed.run.answer == "446916976"


def test_r98_reminders_are_few_and_count(watch) -> None:
    aimless = "我觉得应该查一下天气。"
    run = watch(aimless).run
    assert (run.status, len(run.model_calls)) == ("malformed", 3)
    run = watch(aimless, max_steps=2).run
    assert (run.status, len(run.model_calls), run.answer) == ("step_limit", 2, "")


def test_a_reminder_helps_and_is_forgotten_later(
    watch, gateway, offline_settings
) -> None:
    weather = 'Action: get_weather\nAction Input: {"city": "北京"}'
    vague = "我想想。"
    observed = watch(vague, vague, weather, vague, vague, "Final Answer: 晴")
    assert observed.run.status == "completed", "two in a row, twice"
    assert [step.turn for step in observed.run.steps] == [3]
    assert sent(observed, 1)[1] == vague
    assert sent(observed, 1)[2].startswith("Observation: Format error: ")
    later = observe(
        "stage5",
        run_agent,
        "and then?",
        offline_settings,
        gateway,
        TOOLS,
        upstream=Script([{"message": {"content": "Final Answer: 雨"}}]),
        history=observed.conversation,
    )
    assert sent(later) == [
        "go",
        weather,
        f"Observation: {observed.run.steps[0].result}",
        "Final Answer: 晴",
        "and then?",
    ]
    assert later.conversation[: len(observed.conversation)] == observed.conversation


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("Action: no_such\nAction Input: {}", "there is no tool named 'no_such'"),
        ("Action: get_weather\nAction Input: {}", "city: Field required"),
        ('Action: get_weather\nAction Input: {"city": "北', "not a JSON object"),
        ("Action: calculate\nAction Input: 128乘以6", "Error: "),
        ("Action: unit_convert\nAction Input: 18 °C", "not a JSON object"),
    ],
)
def test_a_mistake_is_an_observation(reply: str, told: str, watch) -> None:
    observed = watch(reply, "Final Answer: done")
    assert observed.run.answer == "done"
    assert [step.ok for step in observed.run.steps] == [False]
    assert sent(observed)[-1].startswith("Observation: Error: ")
    assert told in sent(observed)[-1]


def test_r33_and_r42_unrepaired(watch) -> None:
    with Gateway(OfflineModel(), repair=False) as raw:
        for content in (
            "<think>\n用户想要…\n</think>\n\nFinal Answer: 北京晴",
            [
                {"type": "text", "text": "Final Answer: "},
                {"type": "text", "text": "北京晴"},
            ],
        ):
            gateway = raw.open_run("raw", Script([{"message": {"content": content}}]))
            settings = Settings(_env_file=None, gateway_url=raw.url(gateway.name))
            assert run_agent("go", settings=settings)[-1]["content"] == "北京晴"


def test_plain_answers_are_shown_but_not_counted_as_completed(watch) -> None:
    for content in (
        "<think>\n\n</think>\n\n北京晴",
        [{"type": "text", "text": "北京"}, {"type": "text", "text": "晴"}],
    ):
        run = watch({"message": {"content": content}}).run
        assert (run.status, run.answer) == ("malformed", "北京晴")


def test_an_endless_loop_ends_with_what_was_done(watch) -> None:
    observed = watch('Action: get_weather\nAction Input: {"city": "北京"}', max_steps=4)
    assert observed.run.status == "step_limit"
    assert observed.run.answer == ""
    assert [step.turn for step in observed.run.steps] == [1, 2, 3, 4]
    assert [step.order for step in observed.run.steps] == [0, 1, 2, 3]
    assert len(observed.conversation) == 1 + 2 * 4


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (
            {"message": {"content": "Final Answer: 北"}, "finish_reason": "length"},
            "truncated",
        ),
        ({"message": {"content": ""}}, "empty"),
        ({"message": {"content": None, "refusal": "no"}}, "refused"),
        ({"message": {"content": ""}, "finish_reason": "content_filter"}, "refused"),
        ({"message": {"content": "Final Answer:"}}, "malformed"),
        ({"message": {"content": None, "tool_calls": [{"id": "a"}]}}, "empty"),
    ],
)
def test_no_other_end_is_completed(reply, status: str, watch) -> None:
    observed = watch(reply)
    assert observed.run.status == status
    assert len(observed.run.model_calls) == (
        1 if status in ("truncated", "refused") else 3
    )


def test_a_failing_endpoint_raises_the_clients_own_exception(
    gateway, offline_settings
) -> None:
    gateway.open_run("failing", Script([{"status": 401}]))
    settings = offline_settings.model_copy(
        update={"gateway_url": gateway.url("failing")}
    )
    with pytest.raises(openai.AuthenticationError):
        run_agent("go", settings=settings)


def test_what_was_done_before_the_endpoint_failed_is_kept(watch) -> None:
    weather = 'Action: get_weather\nAction Input: {"city": "北京"}'
    observed = watch(weather, {"status": 500})
    assert observed.run.status == "model_error"
    assert said(observed.run) == [("get_weather", BEIJING, True)]


def test_nothing_of_an_earlier_question_is_a_step(
    watch, gateway, offline_settings
) -> None:
    weather = 'Action: get_weather\nAction Input: {"city": "北京"}'
    earlier = watch(weather, "Final Answer: 晴")
    for reply, status in (
        ({"status": 500}, "model_error"),
        ({"message": {"content": "Final Answer: 雨"}}, "completed"),
    ):
        run = observe(
            "stage5",
            run_agent,
            "and now?",
            offline_settings,
            gateway,
            TOOLS,
            upstream=Script([reply]),
            history=earlier.conversation,
        ).run
        assert (run.status, run.steps) == (status, [])


def test_a_call_before_a_reminder_is_a_step(watch) -> None:
    run = watch("Action: no_such", "我想想。", "Final Answer: 晴").run
    assert said(run) == [("no_such", {}, False)]
    assert run.steps[0].turn == 1


def test_attempts_are_repeated_by_the_client(watch) -> None:
    run = watch({"status": 500}, {"status": 429}, "Final Answer: done", retries=2).run
    assert (run.answer, len(run.exchanges), len(run.model_calls)) == ("done", 3, 1)


def test_a_stream_is_read_the_same(watch) -> None:
    replies = (
        'Action: get_weather\nAction Input: {"city": "北京"}',
        "Final Answer: 晴",
    )
    streamed, whole = (watch(*replies, stream=stream) for stream in (True, False))
    assert streamed.conversation == whole.conversation
    assert [e.request["stream"] for e in streamed.exchanges] == [True, True]


def test_a_stream_in_pieces_is_read_unrepaired() -> None:
    pieces = ["Thought: x\nAct", "ion: get_current", "_time", "\nAction Input: {}"]
    streamed = [{"content": piece} for piece in pieces]
    replies = [{"stream": streamed}, {"stream": [{"content": "Final Answer: 晴"}]}]
    with Gateway(OfflineModel(), repair=False) as raw:
        raw.open_run("raw", Script(replies))
        settings = Settings(_env_file=None, gateway_url=raw.url("raw"), stream=True)
        conversation = run_agent("go", settings=settings)
    roles = [message["role"] for message in conversation]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert conversation[-1]["content"] == "晴"


def test_a_wrong_tool_sends_no_request(watch) -> None:
    def bare(city: str) -> str: ...

    observed = watch("Final Answer: x", tools=[bare])
    assert observed.run.error == (
        "ValueError: tool 'bare' has no docstring: the model chooses by it"
    )
    assert not observed.exchanges


def test_without_tools_it_still_answers(watch) -> None:
    assert watch("Final Answer: hi", tools=[]).run.answer == "hi"


# ----------------------------------------------------------------- beside the others


def test_demo_questions_like_stage_3(gateway, offline_settings) -> None:
    for conversation in read_questions(DEMO):
        histories: dict[str, list[Any]] = {"stage3": [], "stage5": []}
        for question in conversation:
            runs = []
            for name, history in histories.items():
                observed = observe(
                    name,
                    load(find(name).target),
                    question,
                    offline_settings,
                    gateway,
                    TOOLS,
                    history=history,
                )
                histories[name] = observed.conversation
                runs.append(observed.run)
            assert said(runs[0]) == said(runs[1])
            assert runs[0].answer == runs[1].answer != ""
            verdict = judge(*runs)
            assert verdict.verdict == "equivalent", verdict
            assert len({step.turn for step in runs[1].steps}) == len(runs[1].steps)


def test_the_judge_names_the_cause_between_protocols(watch, gateway, offline_settings):
    def calls(*replies, settings=offline_settings, tools=TOOLS) -> Run:
        items = [
            {"message": {"content": r}}
            if isinstance(r, str)
            else {
                "message": {
                    "tool_calls": [
                        {"id": f"id{n}", "function": {"name": r[0], "arguments": r[1]}}
                    ]
                }
            }
            for n, r in enumerate(replies)
        ]
        return observe(
            "stage3", STAGE3, "go", settings, gateway, tools, upstream=Script(items)
        ).run

    def get_weather(city: str) -> str:
        """Look up another weather."""
        return "rain"

    weather = ("get_weather", '{"city": "北京"}')
    left = calls(weather, "晴")
    text = 'Action: get_weather\nAction Input: {"city": "%s"}'
    other_tool = watch(text % "北京", "Final Answer: 晴", tools=[get_weather])
    endless = watch(text % "北京", max_steps=2)
    cut_off = watch(text % "北京", "Final Answer: 晴", max_steps=1)
    for observed, cause, path in (
        (watch(text % "北京", "Final Answer: 晴"), None, None),
        (watch(text % "上海", "Final Answer: 晴"), "reply", "steps[0].arguments.city"),
        (watch(text % "北京", "Final Answer: 雨"), "reply", "answer"),
        (other_tool, "tool", "steps[0].result"),
        (watch("Final Answer: 晴"), "reply", "status"),  # it asked for no tool
        (endless, "reply", "status"),  # it asked again, where the other answered
        (cut_off, "control", "status"),
    ):
        for verdict in (judge(left, observed.run), judge(observed.run, left)):
            place = verdict.divergence
            assert (place and place.cause, place and place.path) == (cause, path)


# -------------------------------------------------------------------------- the memory

TWENTY = [
    "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？",
    "北京和上海今天哪个更暖和？",
    "What is the weather in London, and what is 18 °C in Fahrenheit?",
    "苹果、微软和英伟达的股价分别是多少？",
    "Compute (25 + 15) * 8 / 4",
    "广州、哈尔滨和香港的天气怎么样？",
    "I hold 30 shares of Apple and 20 shares of Microsoft: what are they worth?",
    "东京和新加坡哪里更热？现在几点了？",
    "Convert 42 km to miles, and what is the weather in Paris?",
    "持有 200 股阿里巴巴和 300 股小米，市值多少？",
] * 2


def converse(questions, gateway, settings) -> tuple[list[Observed], list[Any]]:
    history: list[Any] = []
    seen = []
    for question in questions:
        seen.append(
            observe(
                "stage5", run_agent, question, settings, gateway, TOOLS, history=history
            )
        )
        history = seen[-1].conversation
        assert seen[-1].run.status == "completed"
    return seen, history


def test_twenty_turns_stay_within_the_budget(gateway, offline_settings) -> None:
    seen, history = converse(TWENTY, gateway, offline_settings)
    peak = max(
        message_tokens(exchange.request["messages"])
        for observed in seen
        for exchange in observed.exchanges
    )
    prompt = {"role": "system", "content": system_prompt(NAMED)}
    plain = message_tokens([prompt, *as_text(history[:-1])])
    print(f"peak of 20 turns: {peak} tokens; a plain buffer: {plain}")
    assert peak < CONTEXT == 2000
    assert plain > 2 * peak
    last = seen[-1].exchanges[0].request["messages"]
    assert "Earlier in this conversation:\n- " in last[0]["content"]
    assert last[-1]["content"] == TWENTY[-1]
    assert last[-2]["content"].startswith("Final Answer: ")


def test_the_summary_is_kept_in_the_conversation(gateway, offline_settings) -> None:
    _, history = converse(TWENTY, gateway, offline_settings)
    notes = [message["memory"] for message in history if "memory" in message]
    assert notes[-1] == json.loads(json.dumps(notes[-1]))
    covered = [note[1] for note in notes]
    assert covered == sorted(covered)
    assert len(set(covered)) < len(covered), "not made anew for every question"
    assert tokens(notes[-1][0]) <= SUMMARY


def test_a_summary_keeps_the_newest() -> None:
    pairs = [
        {"role": role, "content": f"{role} {number} " + "x" * 80}
        for number in range(30)
        for role in ("user", "assistant")
    ]
    summary = extract("- old → older", pairs)
    assert tokens(summary) <= SUMMARY
    assert "user 29" in summary
    assert "old" not in summary


def test_a_model_sums_up_where_there_is_one(gateway, offline_settings) -> None:
    history = []
    for number in range(30):
        history.append({"role": "user", "content": f"question {number} " + "问" * 60})
        history.append(
            {"role": "assistant", "content": f"answer {number} " + "答" * 60}
        )
    for summary, kept in (("They spoke of the weather.", True), ("x" * 9999, False)):
        script = Script(
            [
                {"message": {"content": summary}},
                {"message": {"content": "Action: get_current_time"}},
                {"message": {"content": "Final Answer: done"}},
            ],
            strict=False,
        )
        settings = {
            "base_url": "http://127.0.0.1:9/v1",
            "model": "real",
            "max_steps": 3,
        }
        observed = observe(
            "stage5",
            run_agent,
            "go",
            offline_settings.model_copy(update=settings),
            gateway,
            TOOLS,
            upstream=script,
            history=history,
        )
        assert observed.run.answer == "done"
        assert observed.run.status == "completed"
        assert [step.turn for step in observed.run.steps] == [2]
        system = observed.exchanges[1].request["messages"][0]["content"]
        assert (summary in system) is kept
        assert "Earlier in this conversation:" in system


def test_the_budget_counts_the_summary(gateway, offline_settings) -> None:
    history = [
        {"role": role, "content": "long " * 300} for role in ("user", "assistant") * 9
    ]
    endless = Script([{"message": {"content": "Action: get_current_time"}}])
    for limit in (1, 2, 3):
        settings = {"base_url": "http://127.0.0.1:9/v1", "max_steps": limit}
        observed = observe(
            "stage5",
            run_agent,
            "go",
            offline_settings.model_copy(update=settings),
            gateway,
            TOOLS,
            upstream=endless,
            history=history,
        )
        assert len(observed.run.model_calls) == limit
        assert observed.run.status == "step_limit"


def test_the_scratchpad_begins_at_the_last_question() -> None:
    history = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": "?", "unreadable": "write it so"},
        {"role": "user", "content": "write it so", "unreadable": True},
    ]
    assert scratchpad(history) == history[2:]
    assert scratchpad([]) == []
    assert [m["content"] for m in dialogue(history[:3])] == [
        "first",
        "one",
        "second",
        "(no answer)",
    ]
