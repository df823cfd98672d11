"""Stage 5: the loop on text, beside the others."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from text_react import BEIJING, NAMED, STAGE5, sent
from wire import LADDER, ROOT

from config import Settings
from equivalence.gateway import Gateway, Script
from equivalence.judge.compare import judge
from equivalence.runs.observe import Observed, observe
from equivalence.runs.plan import read_questions
from equivalence.runs.record import Run
from offline_model import OfflineModel
from stage5_text_react.agent import run_agent
from stage5_text_react.prompt import STOP
from tools import TOOLS

(STAGE3,) = (entry for entry in LADDER if entry.name == "stage3")


@pytest.fixture
def watch(gateway, offline_settings):
    """Let stage 5 read scripted texts; returns what was observed."""

    def run(*replies, question="go", tools=TOOLS, script=None, **settings) -> Observed:
        items = [
            {"message": {"content": r}} if isinstance(r, str) else r for r in replies
        ]
        return observe(
            STAGE5,
            question,
            offline_settings.model_copy(update=settings),
            gateway,
            tools,
            upstream=script or Script(items, strict=True),
        )

    return run


def said(run: Run) -> list[Any]:
    return [(step.tool, step.arguments, step.ok) for step in run.steps]


# ---------------------------------------------------------------------------- the loop


def test_a_request_has_no_tools_but_the_prompt_has(watch) -> None:
    request = watch("Final Answer: hi").run.exchanges[0].request
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
        STAGE5,
        "and then?",
        offline_settings,
        gateway,
        TOOLS,
        upstream=Script([{"message": {"content": "Final Answer: 雨"}}]),
        after=observed,
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
            run = raw.open_run(Script([{"message": {"content": content}}]))
            settings = Settings(_env_file=None, gateway_url=run.url)
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
    run = gateway.open_run(Script([{"status": 401}]))
    settings = offline_settings.model_copy(update={"gateway_url": run.url})
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
            STAGE5,
            "and now?",
            offline_settings,
            gateway,
            TOOLS,
            upstream=Script([reply]),
            after=earlier,
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
    assert [e.request["stream"] for e in streamed.run.exchanges] == [True, True]


def test_a_stream_in_pieces_is_read_unrepaired() -> None:
    pieces = ["Thought: x\nAct", "ion: get_current", "_time", "\nAction Input: {}"]
    streamed = [{"content": piece} for piece in pieces]
    replies = [{"stream": streamed}, {"stream": [{"content": "Final Answer: 晴"}]}]
    with Gateway(OfflineModel(), repair=False) as raw:
        run = raw.open_run(Script(replies))
        settings = Settings(_env_file=None, gateway_url=run.url, stream=True)
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
    assert not observed.run.exchanges


def test_without_tools_it_still_answers(watch) -> None:
    assert watch("Final Answer: hi", tools=[]).run.answer == "hi"


# ----------------------------------------------------------------- beside the others


def test_demo_questions_like_stage_3(gateway, offline_settings) -> None:
    for conversation in read_questions(ROOT / "scenarios" / "demo_questions.jsonl"):
        seen: dict[str, Observed | None] = {"stage3": None, "stage5": None}
        for question in conversation:
            for one in (STAGE3, STAGE5):
                seen[one.name] = observe(
                    one,
                    question,
                    offline_settings,
                    gateway,
                    TOOLS,
                    after=seen[one.name],
                )
            runs = [observed.run for observed in seen.values() if observed]
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
            STAGE3, "go", settings, gateway, tools, upstream=Script(items)
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
    city = "steps[0].arguments.city"
    for observed, cause, path in (
        (watch(text % "北京", "Final Answer: 晴"), None, None),
        (watch(text % "上海", "Final Answer: 晴"), "unknown", city),
        (watch(text % "北京", "Final Answer: 雨"), "unknown", "answer"),
        (other_tool, "tool", "steps[0].result"),
        (watch("Final Answer: 晴"), "control", "status"),  # it asked for no tool
        (endless, "control", "status"),  # it asked again, where the other answered
        (cut_off, "control", "status"),
    ):
        for verdict in (judge(left, observed.run), judge(observed.run, left)):
            place = verdict.divergence
            assert (place and place.cause, place and place.path) == (cause, path)
