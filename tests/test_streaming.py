"""Streams: merged, repaired and sent on, and what is left as it is with --raw."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import openai
import pytest
from wire import (
    CALL,
    HELLO,
    WEATHER_TOOL,
    Writes,
    before,
    calling,
    client,
    implementations,
    send,
    watched,
)

from config import Settings
from equivalence.gateway import Gateway, HttpUpstream, OpenRun, Script
from equivalence.gateway.streaming import event, merge_stream, to_stream
from equivalence.gateway.upstreams import Reply
from offline_model import OfflineModel


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


WRITTEN = '{"city": "北京"}'


def named(identifier: str, arguments: Any) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {"id": identifier, "function": function}


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
    "another id and no name": [
        {"tool_calls": [{"index": 0, **named("a", "")}]},
        {"tool_calls": [{"index": 0, "id": "b", "function": {"arguments": WRITTEN}}]},
    ],
    "another id in each piece, no index": [
        {"tool_calls": [named("a", "")]},
        {"tool_calls": [{"id": "b", "function": {"arguments": WRITTEN[:5]}}]},
        {"tool_calls": [{"id": "c", "function": {"arguments": WRITTEN[5:]}}]},
    ],
    "arguments as an empty object, then text": [
        {"tool_calls": [{"index": 0, **named("a", {})}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": WRITTEN}}]},
    ],
    "arguments as an object, then nothing": [
        {"tool_calls": [{"index": 0, **named("a", {"city": "北京"})}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ""}}]},
    ],
    "calls that are no list": [{"tool_calls": {**named("a", WRITTEN), "index": 0}}],
    "no function around it": [
        {"tool_calls": [{"id": "a", "name": "get_weather", "arguments": WRITTEN}]}
    ],
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


def test_the_old_function_call_in_pieces_is_a_call(front: Gateway) -> None:
    pieces = [
        {"function_call": {"name": "get_weather", "arguments": ""}},
        {"function_call": {"arguments": WRITTEN[:6]}},
        {"function_call": {"arguments": WRITTEN[6:]}},
    ]
    with front.open_run(Script([{"stream": pieces}])) as run:
        ((identifier, *call),) = streamed(run, tools=[WEATHER_TOOL])[1]
    assert call == ["get_weather", WRITTEN]
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", identifier)
    assert run.exchanges[0].repairs == ["tool_call_id"]


def test_parallel_calls_that_are_all_numbered_0_stay_two(front: Gateway) -> None:
    pieces = [
        {"tool_calls": [{"index": 0, **named(each, "")}]} for each in ("a", "b")
    ] + [{"tool_calls": [{"index": 0, "id": "b", "function": {"arguments": WRITTEN}}]}]
    with front.open_run(Script([{"stream": pieces}])) as run:
        calls = streamed(run, tools=[WEATHER_TOOL])[1]
    assert calls == [["a", "get_weather", "{}"], ["b", "get_weather", WRITTEN]]


def stream_of(*choices: Any) -> bytes:
    return b"".join([event({"choices": [choice]}) for choice in choices])


def said(content: Any, index: int = 0, finish: Any = None) -> dict[str, Any]:
    return {"index": index, "delta": {"content": content}, "finish_reason": finish}


TEXT = [{"type": "text", "text": "北"}, {"type": "text", "text": "京"}]
STREAMS = {  # bytes of a stream; its text and finish_reason, or the words of a failure
    "blocks": (stream_of(said(TEXT), said("晴", finish="stop")), "北京晴", "stop"),
    "thinking blocks": (
        stream_of(
            said([{"type": "thinking", "thinking": [{"type": "text", "text": "想"}]}]),
            said("晴", finish="stop"),
        ),
        "晴",
        "stop",
    ),
    "a mark at the beginning": (
        b"\xef\xbb\xbf" + stream_of(said("晴", finish="stop")),
        "晴",
        "stop",
    ),
    "an error that is null": (
        event({"error": None, "choices": [said("晴", finish="stop")]}),
        "晴",
        "stop",
    ),
    "two candidates": (
        stream_of(said("一", 1), said("晴", 0), said("二", 1), said("。", 0, "stop")),
        "晴。",
        "stop",
    ),
    "neither an end nor [DONE]": (stream_of(said("北京")), "北京", "length"),
    "[DONE] and no end": (stream_of(said("晴")) + b"data: [DONE]\n\n", "晴", None),
    "a whole message": (
        event({"choices": [{"message": {"content": "晴"}, "finish_reason": "stop"}]}),
        "晴",
        "stop",
    ),
    "lines that end in CR": (
        stream_of(said("晴", finish="stop")).replace(b"\n", b"\r"),
        "晴",
        "stop",
    ),
    "half a character each": (
        b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n'
        b'data: {"choices": [{"delta": {"content": "\\ude00"},'
        b' "finish_reason": "stop"}]}',
        "😀",
        "stop",
    ),
    "a think block in pieces": (
        stream_of(
            *map(said, ["<thi", "nk>想", "想</th", "ink>\n\n晴"]), said("", 0, "stop")
        ),
        "晴",
        "stop",
    ),
}


@pytest.mark.parametrize(("body", "text", "finish"), STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_stream_in_any_pieces(
    front: Gateway, server: Gateway, body: bytes, text: str, finish: str, size: int
) -> None:
    """The client's stream and the record agree, whole and streamed alike."""
    found = []
    for stream in (True, False):
        writes = Writes()
        writes.send(*(body[at : at + size] for at in range(0, len(body), size)), None)
        with before(server, writes, front) as run:
            if stream:
                content, _, end, _ = streamed(run)
            else:
                whole = Whole(body)
                with before(server, whole, front) as plain:
                    choice = client(plain).chat.completions.create(**HELLO).choices[0]
                content, end = choice.message.content, choice.finish_reason
                run = plain
        found.append((content, end))
        message = run.exchanges[0].reply["choices"][0]["message"]
        assert message["content"] == content
    assert found == [(text, finish)] * 2


class Whole(OfflineModel):
    """An upstream that answers with an event stream, asked for one or not."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body

    async def answer(self, request: Any, authorization: Any) -> Reply:
        return Reply(200, self.body, "text/event-stream")


@implementations
def test_half_a_stream_is_truncated(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    half = Whole(stream_of(said("Final Answer: 北")))
    run = watched(implementation, offline_settings, gateway, "go", half).run
    assert (run.status, run.answer.removeprefix("Final Answer: ")) == (
        "truncated",
        "北",
    )


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_candidate_that_counts_has_index_0(front: Gateway, order: Any) -> None:
    choices = [{"index": i, "message": {"content": f"{i}"}} for i in order]
    with front.open_run(Script([{"body": {"choices": choices}}])) as run:
        reply = client(run).chat.completions.create(**HELLO)
    assert [choice.message.content for choice in reply.choices] == ["0"]


# ----------------------------------------------------- passed on as it is written


@pytest.fixture
def writes() -> Writes:
    return Writes()


def reading(run: OpenRun, **more: Any) -> Iterator[str]:
    request = {**HELLO, "stream": True, **more}
    for chunk in client(run, timeout=10).chat.completions.create(**request):
        for choice in chunk.choices:
            if choice.delta.content:
                yield choice.delta.content


@pytest.mark.parametrize("tools", [[], [WEATHER_TOOL]])
@pytest.mark.parametrize("repair", [True, False])
def test_each_piece_arrives_before_the_next_is_written(
    front: Gateway, server: Gateway, writes: Writes, tools: Any, repair: bool
) -> None:
    """The server waits for each; through two gateways."""
    heard: list[str] = []
    first = front if repair else server
    with (
        server.open_run(writes) as behind,
        first.open_run(HttpUpstream(behind.url), on_text=heard.append) as run,
    ):
        pieces = reading(run, **({"tools": tools} if tools else {}))
        for piece in ("Hello", ", world", ". 1 < 2", " and"):
            writes.say(piece)
            assert next(pieces) == piece
        writes.end()
        assert list(pieces) == []
    content = run.exchanges[0].reply["choices"][0]["message"]["content"]
    assert content == "Hello, world. 1 < 2 and"
    assert heard == (["Hello", ", world", ". 1 < 2", " and"] if repair else [])


def test_only_what_may_become_a_call_or_a_thought_waits(
    front: Gateway, writes: Writes
) -> None:
    with front.open_run(writes) as run:
        pieces = reading(run, tools=[WEATHER_TOOL])
        writes.say("<think>secret", "</think>  ", "I look <b>it</b> up. ", "<tool")
        assert next(pieces) == "I look <b>it</b> up."
        writes.say("box> is HTML.")
        assert next(pieces) == " <toolbox> is HTML."
        writes.say("\n<tool_call>", '{"name": "get_weather", "arguments": {"city": 1}}')
        writes.end()
        assert list(pieces) == []
    (exchange,) = run.exchanges
    message = exchange.reply["choices"][0]["message"]
    assert message["content"] == "I look <b>it</b> up. <toolbox> is HTML."
    assert message["reasoning_content"] == "secret"
    assert message["tool_calls"][0]["function"]["name"] == "get_weather"
    assert "text_tool_call" in exchange.repairs


def test_reasoning_beside_the_text_is_passed_on(front: Gateway, writes: Writes) -> None:
    with front.open_run(writes) as run:
        request = {**HELLO, "stream": True}
        writes.say(reasoning="想")
        chunks = iter(client(run, timeout=10).chat.completions.create(**request))
        for thought in ("想", "又想"):
            assert next(chunks).choices[0].delta.reasoning_content == thought
            if thought == "想":
                writes.say(reasoning="又想")
        writes.say("晴")
        writes.end()
        rest = [chunk.choices[0].delta for chunk in chunks]
    assert not any(getattr(delta, "reasoning_content", None) for delta in rest)
    message = run.exchanges[0].reply["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("晴", "想又想")


def test_a_model_that_begins_inside_its_thoughts_is_remembered(
    front: Gateway,
) -> None:
    """Where somebody reads along, nobody can know it of the first reply: its text is
    left as it was passed on."""
    texts = []
    for _ in range(2):
        writes = Writes()
        with front.open_run(writes) as run:
            writes.say("I think", ".</think>\n\n", "晴")
            writes.end()
            texts.append("".join(reading(run, model="begins-inside")))
        message = run.exchanges[0].reply["choices"][0]["message"]
        assert message["content"] == texts[-1]
    assert texts == ["I think.</think>\n\n晴", "晴"]
    assert message["reasoning_content"] == "I think."


def test_where_nobody_reads_along_a_text_waits_until_its_beginning_is_known(
    front: Gateway,
) -> None:
    """Only the first of a model, and only as long as it must."""
    first, cut, second, third = [Writes() for _ in range(4)]

    def opened(writes: Writes) -> OpenRun:
        return front.open_run(writes, read_along=False)

    with opened(first) as run:
        pieces = reading(run, model="inside")
        first.say("I think", ".</think>\n\n", "晴")
        assert next(pieces) == "晴"  # before the end is written
        first.end()
        assert list(pieces) == []
    assert run.exchanges[0].repairs == ["think_block"]
    with opened(cut) as run:  # half a text does not tell how it began
        cut.say("I think")
        cut.end("length")
        assert list(reading(run, model="outside")) == ["I think"]
    with opened(second) as run:
        pieces = reading(run, model="outside")
        second.say("Hello", ", <think>hm</think>")
        assert next(pieces) == "Hello,"
        second.end()
        assert list(pieces) == []
    with opened(third) as run:
        pieces = reading(run, model="outside")
        for piece in ("Hello", ", world"):
            third.say(piece)
            assert next(pieces) == piece
        third.end()
        assert list(pieces) == []


def test_a_whole_reply_tells_how_a_stream_begins(front: Gateway) -> None:
    """So the first stream is read as it is, also where somebody reads along."""
    for stream in (False, True):
        body = stream_of(said("I think.</think>"), said("晴", finish="stop"))
        with front.open_run(Whole(body)) as run:
            if stream:
                assert streamed(run, model="told")[0] == "晴"
            else:
                client(run).chat.completions.create(**{**HELLO, "model": "told"})
        assert run.exchanges[0].repairs == ["think_block"]


FAILURES = {  # what comes after the first piece; words of the error
    "an error": ([event({"error": {"message": "no memory"}})], "no memory"),
    "no JSON": ([b"data: <html>\n\n"], "not JSON: '<html>'"),
    "too deep": ([b"data: " + b"[" * 500 + b"]" * 500 + b"\n\n"], "100 levels"),
}


@pytest.mark.parametrize(("data", "words"), FAILURES.values(), ids=FAILURES)
def test_a_stream_that_fails_on_its_way_is_an_error_in_the_stream(
    front: Gateway, writes: Writes, data: list[bytes], words: str
) -> None:
    with front.open_run(writes) as run:
        pieces = reading(run)
        writes.say("Hello")
        assert next(pieces) == "Hello"
        writes.send(*data, None)
        with pytest.raises(openai.APIError, match=words):
            list(pieces)
    assert words in run.exchanges[0].reply["error"]["message"]


def test_a_connection_that_breaks_in_the_stream(front: Gateway, writes: Writes) -> None:
    with (
        Gateway(OfflineModel(), repair=False) as server,
        server.open_run(writes) as far,
        front.open_run(HttpUpstream(far.url)) as run,
    ):
        pieces = reading(run)
        writes.say("Hello")
        assert next(pieces) == "Hello"
        far.close()  # the reply is cut
        with pytest.raises(openai.APIError, match="broke off"):
            list(pieces)
    assert "broke off" in run.exchanges[0].reply["error"]["message"]


def test_nobody_reads_on_when_the_client_has_gone(
    front: Gateway, writes: Writes
) -> None:
    with front.open_run(writes) as run:
        request = {**HELLO, "stream": True}
        writes.say("Hello")
        stream = client(run, timeout=10).chat.completions.create(**request)
        next(iter(stream))
        stream.close()
        assert writes.left.wait(20)
    assert (run.exchanges[0].status, run.exchanges[0].reply) == (None, None)


def test_a_run_that_ends_ends_its_streams(front: Gateway, writes: Writes) -> None:
    with front.open_run(writes) as run:
        pieces = reading(run)
        writes.say("Hello")
        assert next(pieces) == "Hello"
    assert writes.left.is_set()
    with pytest.raises(openai.APIConnectionError):
        list(pieces)


@implementations
@pytest.mark.parametrize("begin", ["<think>", ""], ids=["begins", "begun"])
def test_a_streamed_run_has_the_trace_of_a_plain_one(
    implementation: Any, begin: str, gateway: Gateway, offline_settings: Settings
) -> None:
    """Text in pieces, thoughts in front, calls in marks; also where the chat template
    began the thoughts, from the first stream of the model on."""
    call = '{"name": "get_weather", "arguments": {"city": "北京"}}'
    texts = (
        [
            f"{begin}想</think>\n\n我查一下。\n<tool_call>{call}</tool_call>",
            "北京 晴 。",
        ]
        if implementation.protocol == "tool_calls"
        else [
            f'{begin}想</think>\nAction: get_weather\nAction Input: {{"city": "北京"}}',
            "Final Answer: 晴",
        ]
    )
    name = f"{implementation.name}, {begin or 'begun'}"  # nobody has seen it yet
    seen = []
    for stream in (True, False):
        items = [
            {"stream": [{"content": c} for c in t]}
            if stream
            else {"message": {"content": t}}
            for t in texts
        ]
        settings = offline_settings.model_copy(update={"stream": stream, "model": name})
        run = watched(implementation, settings, gateway, "go", Script(items)).run
        replies = [e.reply["choices"][0]["message"] for e in run.exchanges]
        repairs = [e.repairs for e in run.exchanges]
        seen.append((run.status, run.answer, run.steps, replies, repairs))
    assert seen[0] == seen[1]
    assert seen[0][0] == "completed"
    assert len(seen[0][2]) == 1


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
