"""Streams: merged, repaired and sent on, and what is left as it is with --raw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from wire import (
    CALL,
    HELLO,
    WEATHER_TOOL,
    before,
    calling,
    client,
    implementations,
    send,
    watched,
)

from config import Settings
from equivalence.gateway import Gateway, OpenRun, Script
from equivalence.gateway.streaming import merge_stream, to_stream


def streamed(run: OpenRun, **more: Any) -> Any:
    """The chunks put together by hand: content, calls by index, finish, usage."""
    content, calls, finish, usage = "", {}, None, None
    request = {**HELLO, "stream": True, **more}
    for chunk in client(run).chat.completions.create(**request):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                known = calls.setdefault(call.index, [call.id, "", ""])
                known[1] += call.function.name or ""
                known[2] += call.function.arguments or ""
    return content, list(calls.values()), finish, usage


# ----------------------------------------------------------------------- streaming


def test_the_offline_model_streams_what_it_says(front: Gateway) -> None:
    with front.open_run() as run:
        whole = client(run).chat.completions.create(**HELLO).choices[0]
        content, calls, finish, usage = streamed(run)
    assert content == whole.message.content != ""
    assert (calls, finish, usage) == ([], "stop", None)


def test_calls_are_streamed(front: Gateway) -> None:
    run = front.open_run(Script([{"message": {"content": None, "tool_calls": [CALL]}}]))
    content, calls, finish, _ = streamed(run, tools=[WEATHER_TOOL])
    assert (content, finish) == ("", "tool_calls")
    assert calls == [["a", "get_weather", '{"city": "北京"}']]


PIECES = {
    "usual": [
        {"role": "assistant", "content": ""},
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ' "北京"}'}}]},
    ],
    "R75, no index": [
        {
            "tool_calls": [
                {"id": "a", "function": {"name": "get_weather", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"function": {"arguments": '{"city": "北京"}'}}]},
    ],
    "R75, null index": [
        {
            "tool_calls": [
                {
                    "index": None,
                    "id": "a",
                    "function": {"name": "get_weather", "arguments": ""},
                }
            ]
        },
        {
            "tool_calls": [
                {"index": None, "function": {"arguments": '{"city": "北京"}'}}
            ]
        },
    ],
    "R76, name repeated": [
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "a",
                    "function": {"name": "get_weather", "arguments": ""},
                }
            ]
        },
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "a",
                    "function": {
                        "name": "get_weather",
                        "arguments": '{"city": "北京"}',
                    },
                }
            ]
        },
    ],
    "in one piece": [{"tool_calls": [{"index": 0, **CALL}]}],
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
@pytest.mark.parametrize("stream", [True, False])
def test_pieces_of_a_call_become_one_call(
    front: Gateway, pieces: Sequence[Any], stream: bool
) -> None:
    """Whether the client asked for a stream or, as some servers do, got one anyhow."""
    run = front.open_run(Script([{"stream": pieces}]))
    if stream:
        calls = streamed(run, tools=[WEATHER_TOOL])[1]
    else:
        reply = client(run).chat.completions.create(**HELLO, tools=[WEATHER_TOOL])
        calls = [
            [call.id, call.function.name, call.function.arguments]
            for call in reply.choices[0].message.tool_calls
        ]
    assert [[c[0], c[1], json.loads(c[2])] for c in calls] == [
        ["a", "get_weather", {"city": "北京"}]
    ]
    assert run.exchanges[0].reply["choices"][0]["message"]["tool_calls"][0]["id"] == "a"


def test_parallel_calls_in_pieces_stay_two(front: Gateway) -> None:
    pieces = [
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "get_weather"}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": '{"city": "上海"}'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": "北京"}'}}]},
    ]
    run = front.open_run(Script([{"stream": pieces}]))
    assert streamed(run, tools=[WEATHER_TOOL])[1] == [
        ["a", "get_weather", '{"city": "北京"}'],
        ["b", "get_weather", '{"city": "上海"}'],
    ]


def test_an_event_ends_at_a_line_end_and_nowhere_else(front: Gateway) -> None:
    text = "one\u2028two\u0085three\x1cfour\x0bfive"
    run = front.open_run(Script([{"stream": [{"content": text}]}]))
    assert streamed(run)[0] == text
    whole = {
        "choices": [
            {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        ]
    }
    merged = merge_stream(to_stream(whole, {}).replace(b"\n", b"\r\n"))
    assert merged["choices"][0]["message"]["content"] == text


def test_usage_is_streamed_when_it_is_asked_for(front: Gateway) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    message = {"role": "assistant", "content": "x"}
    body = {"choices": [{"index": 0, "message": message}], "usage": usage}
    run = front.open_run(Script([{"body": body}]))
    assert streamed(run)[3] is None
    found = streamed(run, stream_options={"include_usage": True})[3]
    assert (found.prompt_tokens, found.total_tokens) == (3, 7)


def test_a_stream_is_passed_through_two_gateways(
    front: Gateway, server: Gateway
) -> None:
    with before(server, Script([{"stream": PIECES["R75, no index"]}]), front) as run:
        content, calls, _, _ = streamed(run, tools=[WEATHER_TOOL])
        assert calls == [["a", "get_weather", '{"city": "北京"}']]
        assert content == ""


@implementations
def test_streaming_changes_nothing_but_the_stream(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    """R78: each tool once, and the same requests."""
    question = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
    whole, stream = (
        watched(
            implementation,
            offline_settings.model_copy(update={"stream": on}),
            gateway,
            question,
        )
        for on in (False, True)
    )
    assert whole.run.status == stream.run.status == "completed", stream.run.error
    assert whole.run.steps == stream.run.steps
    assert len(whole.run.steps) == 3
    assert whole.run.answer == stream.run.answer
    for one, other in zip(whole.run.exchanges, stream.run.exchanges, strict=True):
        assert one.request["stream"] is False
        assert other.request["stream"] is True
        assert {**one.request, "stream": True} == other.request


@calling
@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_pieces_of_a_call_are_one_step_in_all(
    implementation: Any, pieces: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    settings = offline_settings.model_copy(update={"stream": True})
    script = Script([{"stream": pieces}, {"stream": [{"content": "done"}]}])
    run = watched(implementation, settings, gateway, "go", script).run
    assert (run.status, run.answer, run.error) == ("completed", "done", None)
    (step,) = run.steps
    assert (step.tool, step.arguments, step.ok) == (
        "get_weather",
        {"city": "北京"},
        True,
    )


# ------------------------------------------------------------------------------ raw


@pytest.mark.parametrize(
    "body",
    [
        '{"b": 1,   "a": "\\u5317",\n "choices": null}',
        "<html>北京</html>",
        "",
        '{"choices": [{"message": {"content": "<think>x</think>y"}}]}',
    ],
)
def test_raw_passes_the_bytes_on(server: Gateway, body: str) -> None:
    with before(server, Script([{"body": body}]), server) as run:
        answer = send(run.url)
        assert (answer.status, answer.body) == (200, body.encode())
        assert run.exchanges[0].repairs == []
        assert run.exchanges[0].reply == run.exchanges[0].raw_reply


def test_raw_passes_a_stream_on(server: Gateway) -> None:
    script = Script([{"stream": PIECES["R76, name repeated"]}])
    with server.open_run(script) as run:
        direct = send(run.url, {**HELLO, "stream": True})
    with before(server, script, server) as run:
        answer = send(run.url, {**HELLO, "stream": True})
        assert answer.body == direct.body
        assert answer.body.startswith(b"data: ")
        assert answer.headers["content-type"].startswith("text/event-stream")
        calls = run.exchanges[0].raw_reply["choices"][0]["message"]["tool_calls"]
        assert [call["function"]["name"] for call in calls] == ["get_weather"]
