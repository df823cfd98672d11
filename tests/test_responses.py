"""/v1/responses through the gateway, with the openai client."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from recordings import call
from wire import CALL, HELLO, WEATHER_TOOL, Keeps, Waits, Writes, client, send

from equivalence.gateway import Gateway, OpenRun, Script
from equivalence.gateway.remembered import (
    HEAVIEST_REMEMBERED,
    MOST_REMEMBERED,
    Remembered,
)
from equivalence.gateway.responses_endpoint import ResponsesEndpoint
from equivalence.gateway.upstreams import Upstream
from equivalence.judge.compare import judge
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import Observed, observe
from equivalence.runs.upstreams import http_upstream, new_gateway
from equivalence.settings import Settings
from offline_model import OfflineModel
from tools import TOOLS, get_weather

FLAT_TOOL = {"type": "function", **WEATHER_TOOL["function"], "strict": False}
ASK: dict[str, Any] = {"model": "m", "input": "hi"}
both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def says(content: str | None, *calls: Any, **more: Any) -> dict[str, Any]:
    message = {"content": content, **more.pop("message", {})}
    if calls:
        message["tool_calls"] = [call(*c) if isinstance(c, tuple) else c for c in calls]
    return {"message": message, **more}


def create(run: OpenRun, stream: bool = False, **asked: Any) -> Any:
    """The Response that the openai client makes of the reply."""
    with client(run) as own:
        if not stream:
            return own.responses.create(**{**ASK, **asked})
        *_, last = events(run, **asked)
        return last.response


def events(run: OpenRun, **asked: Any) -> list[Any]:
    with client(run) as own:
        return list(own.responses.create(**{**ASK, **asked}, stream=True))


@pytest.fixture
def opened(front: Gateway) -> Iterator[Any]:
    """Open runs in front of scripted replies; each is closed in the end."""
    runs: list[OpenRun] = []

    def open_run(*items: Any, upstream: Upstream | None = None) -> OpenRun:
        runs.append(front.open_run(upstream or Script(items)))
        return runs[-1]

    yield open_run
    for run in runs:
        run.close()


# ------------------------------------------------------------------------ what comes


@both
def test_a_text_comes_and_the_exchange_is_a_chat_one(opened: Any, stream: bool) -> None:
    run = opened(says("done"))
    response = create(run, stream, instructions="be short", temperature=0)
    assert (response.status, response.output_text) == ("completed", "done")
    [exchange] = run.exchanges
    request = dict(exchange.request)
    assert request.pop("stream", False) is stream
    assert request.pop("stream_options", None) == (
        {"include_usage": True} if stream else None
    )
    assert request == {
        "model": "m",
        "temperature": 0,
        "messages": [
            {"role": "system", "content": "be short"},
            {"role": "user", "content": "hi"},
        ],
    }
    assert exchange.reply["choices"][0]["message"]["content"] == "done"
    assert (exchange.status, exchange.repairs) == (200, [])


@both
def test_parallel_calls_thoughts_and_text_are_items_in_this_order(
    opened: Any, stream: bool
) -> None:
    calls = ("get_weather", '{"city": "北京"}', "a"), ("get_weather", "{}", "b")
    run = opened(says("I look", *calls, message={"reasoning_content": "hm"}))
    response = create(run, stream, tools=[FLAT_TOOL])
    kinds = ["reasoning", "message", "function_call", "function_call"]
    assert [item.type for item in response.output] == kinds
    thoughts, said, *asked = response.output
    assert thoughts.content[0].text == "hm"
    assert said.content[0].text == "I look"
    assert [(c.name, c.arguments, c.call_id) for c in asked] == list(calls)
    assert len({item.id for item in response.output}) == 4
    assert run.exchanges[0].request["tools"] == [WEATHER_TOOL]


@both
def test_what_is_repaired_in_a_chat_is_repaired_here(opened: Any, stream: bool) -> None:
    written = '<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>'
    run = opened(says(f"<think>hm</think>{written}"))
    response = create(run, stream, tools=[FLAT_TOOL])
    kinds = [item.type for item in response.output]
    assert kinds == ["reasoning", "function_call"]
    assert response.output[1].name == "get_weather"
    assert "text_tool_call" in run.exchanges[0].repairs


@both
@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        ("error", "failed", None),
        ("stop", "completed", None),
    ],
)
def test_the_end_of_a_reply_is_the_status(
    opened: Any, stream: bool, finish: str, status: str, reason: str | None
) -> None:
    response = create(opened(says("half", finish_reason=finish)), stream)
    details = response.incomplete_details
    assert (response.status, details and details.reason) == (status, reason)
    assert bool(response.error) == (status == "failed")
    assert response.output_text == "half"


@both
def test_usage_and_refusals_are_told(opened: Any, stream: bool) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    message = {"role": "assistant", "content": None, "refusal": "no"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    run = opened({"body": {"choices": [choice], "usage": usage}})
    response = create(run, stream)
    counts = response.usage
    assert (counts.input_tokens, counts.output_tokens, counts.total_tokens) == (3, 4, 7)
    [item] = response.output
    assert [(part.type, part.refusal) for part in item.content] == [("refusal", "no")]


def test_the_events_are_those_that_the_client_puts_together(opened: Any) -> None:
    run = opened(says("I look", CALL, message={"reasoning_content": "hm"}))
    with client(run) as own, own.responses.stream(**ASK, tools=[FLAT_TOOL]) as stream:
        seen = list(stream)
        final = stream.get_final_response()
    kinds = [event.type.removeprefix("response.") for event in seen]
    part = ["content_part.added", "{}.delta", "{}.done", "content_part.done"]
    assert kinds == [
        *("created", "in_progress"),
        "output_item.added",
        *(kind.format("reasoning_text") for kind in part),
        *("output_item.done", "output_item.added"),
        *(kind.format("output_text") for kind in part),
        *("output_item.done", "output_item.added"),
        *("function_call_arguments.delta", "function_call_arguments.done"),
        *("output_item.done", "completed"),
    ]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert final.output_text == "I look"
    assert final.output[-1].call_id == CALL["id"]


def test_text_goes_on_as_it_is_written(opened: Any) -> None:
    upstream = Writes()
    run = opened(upstream=upstream)
    with client(run, timeout=20) as own:
        upstream.say("One ", "two")
        stream = iter(own.responses.create(**ASK, stream=True))
        first = next(e for e in stream if e.type == "response.output_text.delta")
        assert first.delta.startswith("One")  # and the model has not ended yet
        upstream.end()
        *_, last = stream
    assert last.response.output_text == "One two"


# ------------------------------------------------------------------ many turns


def over_items(run: OpenRun, stream: bool) -> Any:
    """The whole conversation goes with each request."""
    conversation: list[Any] = [{"role": "user", "content": "北京天气？"}]
    while True:
        response = create(run, stream, input=conversation, tools=[FLAT_TOOL])
        conversation += [item.to_dict() for item in response.output]
        if not (outputs := answered(response)):
            return response
        conversation += outputs


def over_ids(run: OpenRun, stream: bool) -> Any:
    """previous_response_id stands for what was said before."""
    asked: Any = "北京天气？"
    before = None
    while True:
        response = create(
            run, stream, input=asked, tools=[FLAT_TOOL], previous_response_id=before
        )
        if not (asked := answered(response)):
            return response
        before = response.id


def answered(response: Any) -> list[Any]:
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": str(get_weather(**json.loads(item.arguments))),
        }
        for item in response.output
        if item.type == "function_call"
    ]


@both
@pytest.mark.parametrize("converse", [over_items, over_ids])
def test_a_conversation_of_several_turns_has_its_whole_history(
    opened: Any, converse: Any, stream: bool
) -> None:
    calls = [("get_weather", json.dumps({"city": c}), c) for c in ("北京", "上海")]
    run = opened(
        says(None, *calls, message={"reasoning_content": "two"}),
        says("one more", ("get_weather", '{"city": "广州"}', "g")),
        says("sunny"),
    )
    assert converse(run, stream).output_text == "sunny"
    messages = run.exchanges[-1].request["messages"]
    results = [
        {"role": "tool", "tool_call_id": c, "content": str(get_weather(c))}
        for c in ("北京", "上海", "广州")
    ]
    assert [
        {**m, "tool_call_id": {"g": "广州"}.get(i, i)}
        if (i := m.get("tool_call_id"))
        else m
        for m in messages
    ] == [
        {"role": "user", "content": "北京天气？"},
        {"role": "assistant", "content": None, "tool_calls": [call(*c) for c in calls]},
        *results[:2],
        {
            "role": "assistant",
            "content": "one more",
            "tool_calls": [call("get_weather", '{"city": "广州"}', "g")],
        },
        results[2],
    ]


def test_thoughts_go_back_where_the_server_wants_them() -> None:
    script = Script(
        [says(None, CALL, message={"reasoning_content": "hm"}), says("done")],
        require_reasoning="hm",
    )
    with Gateway(script, echo_reasoning=True) as gateway, gateway.open_run() as run:
        assert over_ids(run, False).output_text == "done"
        assert "reasoning_content" not in json.dumps(run.exchanges[1].request)


def test_instructions_hold_for_one_request_alone(opened: Any) -> None:
    run = opened(says("one"), says("two"))
    first = create(run, instructions="be short")
    create(run, instructions="be long", previous_response_id=first.id, input="more")
    assert run.exchanges[1].request["messages"] == [
        {"role": "system", "content": "be long"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "more"},
    ]


def test_a_response_is_known_to_its_conversation_alone_and_only_if_stored(
    opened: Any, front: Gateway
) -> None:
    run, other = opened(says("one")), opened(says("one"))
    stored, not_stored = create(run), create(run, store=False)
    with front.open_run(Script([says("two")]), kept=run.kept) as later:
        assert create(later, previous_response_id=stored.id).output_text == "two"
    for asked, identifier in ((run, not_stored.id), (other, stored.id)):
        with pytest.raises(openai.BadRequestError, match="not found") as refused:
            create(asked, previous_response_id=identifier)
        assert refused.value.code == "previous_response_not_found"


def test_the_memory_is_bounded() -> None:
    remembered = Remembered()
    for number in range(MOST_REMEMBERED + 5):
        remembered.add({"id": str(number)}, [number])
    assert len(remembered) == MOST_REMEMBERED
    heavy = ["x" * (HEAVIEST_REMEMBERED // 2)]
    for name in ("a", "b", "c"):
        remembered.add({"id": name}, heavy)
    assert len(remembered) == 1
    assert remembered.messages("c") == heavy
    remembered.forget("c")
    remembered.add({"id": "d"}, heavy)
    assert remembered.messages("d") == heavy


@both
def test_a_response_is_given_again_and_forgotten_when_asked(
    opened: Any, stream: bool
) -> None:
    run, other = opened(says("one", CALL), says("two")), opened(says("x"))
    given = create(run, stream, tools=[FLAT_TOOL])
    with client(run) as own, client(other) as stranger:
        assert own.responses.retrieve(given.id).output == given.output
        with pytest.raises(openai.NotFoundError, match="not found"):
            stranger.responses.retrieve(given.id)
        with pytest.raises(openai.BadRequestError, match="stream of an earlier"):
            list(own.responses.retrieve(given.id, stream=True))
        own.responses.delete(given.id)
        for gone in (own.responses.retrieve, own.responses.delete):
            with pytest.raises(openai.NotFoundError, match="not found"):
                gone(given.id)
        with pytest.raises(openai.BadRequestError, match="not found"):
            own.responses.create(**ASK, previous_response_id=given.id)
        with pytest.raises(openai.NotFoundError, match="is not here"):
            own.responses.input_items.list(given.id)
        with pytest.raises(openai.NotFoundError, match="is not here"):
            own.responses.cancel(given.id)
    assert len(run.exchanges) == 1  # nothing of this is a request to a model


def test_the_output_limit_goes_under_the_name_that_the_server_knows() -> None:
    settings = Settings(_env_file=None, max_tokens_field="max_completion_tokens")
    gateway = new_gateway(settings, Script([says("x")]))
    with gateway, gateway.open_run() as run:
        create(run, max_output_tokens=9)
    assert run.exchanges[0].request["max_completion_tokens"] == 9
    assert "max_tokens" not in run.exchanges[0].request


# -------------------------------------------------------------------- translation


@pytest.mark.parametrize(
    ("asked", "chat"),
    [
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
        ({"text": {"format": {"type": "text"}}}, {}),
        (
            {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
            {"response_format": {"type": "json_object"}, "verbosity": "low"},
        ),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {}},
                }
            },
        ),
        (
            {"tools": [{**FLAT_TOOL, "strict": True}], "parallel_tool_calls": False},
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {**WEATHER_TOOL["function"], "strict": True},
                    }
                ],
                "parallel_tool_calls": False,
            },
        ),
        (
            {"tool_choice": {"type": "function", "name": "n"}},
            {"tool_choice": {"type": "function", "function": {"name": "n"}}},
        ),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"extra_body": {"top_k": 3}, "metadata": {"a": "b"}}, {"top_k": 3}),
        ({"include": ["reasoning.encrypted_content"], "store": False}, {}),
        ({"user": "u", "top_p": 0.5, "background": False}, {"user": "u", "top_p": 0.5}),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_each_field_has_its_counterpart(opened: Any, asked: Any, chat: Any) -> None:
    run = opened(says("done"))
    create(run, **asked)
    hello = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert run.exchanges[0].request == {**hello, **chat}


PARTS = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]


@pytest.mark.parametrize(
    ("items", "messages"),
    [
        (
            [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}],
            [{"role": "system", "content": "d"}, {"role": "user", "content": "u"}],
        ),
        (
            [{"type": "message", "role": "user", "content": PARTS}],
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "a"},
                        {"type": "text", "text": "b"},
                    ],
                }
            ],
        ),
        (
            [{"role": "user", "content": PARTS[:1]}],
            [{"role": "user", "content": "a"}],
        ),
        (
            [
                {"role": "assistant", "content": "one"},
                {"role": "assistant", "content": "two"},
                {"role": "user", "content": "u"},
            ],
            [
                {"role": "assistant", "content": "one"},
                {"role": "assistant", "content": "two"},
                {"role": "user", "content": "u"},
            ],
        ),
        (
            [{"type": "function_call_output", "call_id": "a", "output": PARTS}],
            [{"role": "tool", "tool_call_id": "a", "content": "ab"}],
        ),
    ],
    ids=["developer", "parts", "one part", "two answers", "output of parts"],
)
def test_each_item_has_its_counterpart(opened: Any, items: Any, messages: Any) -> None:
    run = opened(says("done"))
    create(run, input=items)
    assert run.exchanges[0].request["messages"] == messages


BUILT_IN = ("web_search", "file_search", "computer_use_preview", "code_interpreter")


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        *(({"tools": [FLAT_TOOL, {"type": t}]}, (t, "tools[1]")) for t in BUILT_IN),
        ({"background": True}, ("background",)),
        ({"conversation": "conv_1"}, ("conversation",)),
        ({"prompt": {"id": "p"}}, ("prompt",)),
        ({"truncation": "auto"}, ("truncation",)),
        ({"top_logprobs": 3}, ("top_logprobs",)),
        ({"include": ["message.output_text.logprobs"]}, ("logprobs", "include")),
        ({"tool_choice": {"type": "file_search"}}, ("file_search", "tool_choice")),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            ("input_image", "input[0].content[0]"),
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            ("input_audio",),
        ),
        (
            {"input": [{"type": "item_reference", "id": "x"}]},
            ("item_reference", "input[0]"),
        ),
        ({"input": [{"type": "computer_call"}]}, ("computer_call",)),
        ({"input": 3}, ("input",)),
        ({"tools": {"a": 1}}, ("tools",)),
        ({"tools": ["a"]}, ("tools[0]",)),
        ({"input": ["a"]}, ("input[0]",)),
        ({"reasoning": "low"}, ("reasoning",)),
        ({"previous_response_id": ["a"]}, ("not found",)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
@both
def test_what_is_not_translated_is_refused_by_name(
    opened: Any, asked: Any, named: Sequence[str], stream: bool
) -> None:
    run = opened(says("done"))
    answer = send(run.url, {**ASK, **asked, "stream": stream}, "/responses")
    assert (answer.status, run.exchanges) == (400, [])
    for name in named:
        assert name in answer.error


# -------------------------------------------------------------------------- errors


@both
def test_errors_keep_their_status_and_their_words(opened: Any, stream: bool) -> None:
    run = opened({"status": 429, "body": {"detail": "slow down"}})
    with pytest.raises(openai.RateLimitError, match="slow down"):
        create(run, stream)
    assert run.exchanges[0].status == 429


def test_an_error_in_the_middle_of_a_stream_fails_the_response(opened: Any) -> None:
    upstream = Writes()
    run = opened(upstream=upstream)
    with client(run, timeout=20) as own:
        upstream.say("One ", "two")
        stream = iter(own.responses.create(**ASK, stream=True))
        next(e for e in stream if e.type == "response.output_text.delta")
        upstream.send(b'data: {"error": {"message": "out of memory"}}\n\n', None)
        *_, last = stream
    assert last.type == "response.failed"
    assert "out of memory" in last.response.error.message


@both
def test_a_reply_that_breaks_off_breaks_off_here(server: Gateway, stream: bool) -> None:
    cut = {"body": {"choices": []}, "cut": True}
    with server.open_run(Script([cut])) as run, pytest.raises(openai.APIError):
        create(run, stream)


@both
def test_without_repair_too_a_completion_becomes_a_response(
    server: Gateway, stream: bool
) -> None:
    with server.open_run(Script([says("done", CALL)])) as run:
        response = create(run, stream, tools=[FLAT_TOOL])
    kinds = [item.type for item in response.output]
    assert kinds == ["message", "function_call"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"[" * 5000])
def test_what_is_no_request_is_refused(opened: Any, body: bytes) -> None:
    answer = send(opened(says("done")).url, body, "/responses")
    assert answer.status == 400


@both
def test_without_repair_what_is_no_completion_comes_as_it_is(
    server: Gateway, stream: bool
) -> None:
    odd = {"choices": [{"message": {"tool_calls": "x"}}]}
    with server.open_run(Script([{"body": odd}])) as run:
        answer = send(run.url, {**ASK, "stream": stream}, "/responses")
    assert (answer.status, answer.json) == (200, odd)


def test_an_error_is_no_response_even_where_it_looks_like_one(server: Gateway) -> None:
    error = {"status": 500, "stream": [{"content": "half"}]}
    with server.open_run(Script([error])) as run:
        answer = send(run.url, ASK, "/responses")
    assert answer.status == 500
    assert b"response" not in answer.body


def test_a_client_that_goes_away_ends_the_request(opened: Any) -> None:
    upstream = Waits()
    run = opened(upstream=upstream)
    address = urlsplit(run.url)
    connection = http.client.HTTPConnection(address.netloc, timeout=20)
    kind = {"content-type": "application/json"}
    connection.request("POST", f"{address.path}/responses", json.dumps(ASK), kind)
    assert upstream.asked.wait(20)
    connection.close()
    run.close()
    assert [exchange.status for exchange in run.exchanges] == [None]


def test_a_run_that_has_ended_refuses(opened: Any) -> None:
    run = opened(says("done"))
    run.close()
    assert send(run.url, ASK, "/responses").status == 410


# --------------------------------------------------------------- compared as chats


def by_chat(question: str, settings: Settings, tools: Any) -> list[dict[str, Any]]:
    """The agent over /v1/chat/completions."""
    with client_of(settings) as own:
        nested = [
            {"type": "function", "function": {**_SPEC, "name": name}} for name in tools
        ]
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            reply = own.chat.completions.create(
                model="m", messages=messages, tools=nested
            )
            message = reply.choices[0].message
            messages.append(message.to_dict())
            if not message.tool_calls:
                return messages
            for asked in message.tool_calls:
                arguments = json.loads(asked.function.arguments)
                content = str(tools[asked.function.name](**arguments))
                entry = {"role": "tool", "tool_call_id": asked.id, "content": content}
                messages.append(entry)


def by_responses(question: str, settings: Settings, tools: Any) -> list[dict[str, Any]]:
    """The same agent over /v1/responses."""
    with client_of(settings) as own:
        flat: Any = [
            {"type": "function", **_SPEC, "name": name, "strict": None}
            for name in tools
        ]
        asked: list[Any] = [{"role": "user", "content": question}]
        before = None
        while True:
            reply = own.responses.create(
                model="m", input=asked, tools=flat, previous_response_id=before
            )
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return [{"role": "assistant", "content": reply.output_text}]
            before = reply.id
            asked = [
                {
                    "type": "function_call_output",
                    "call_id": item.call_id,
                    "output": str(tools[item.name](**json.loads(item.arguments))),
                }
                for item in calls
            ]


_SPEC = {"parameters": {"type": "object", "properties": {}}}


def client_of(settings: Settings) -> openai.OpenAI:
    return openai.OpenAI(base_url=settings.gateway_url, api_key="x", max_retries=0)


QUESTION = "北京和上海今天天气怎么样？"


def seen(agent: Any, gateway: Gateway, settings: Settings, tools: Any) -> Observed:
    def run(question: str, *, history: Any, settings: Settings, tools: Any) -> Any:
        return agent(question, settings, {tool.__name__: tool for tool in tools})

    implementation = Implementation(agent.__name__, agent=run)
    return observe(implementation, QUESTION, settings, gateway, tools)


def test_the_same_agent_by_chat_and_by_responses_is_equivalent(
    gateway: Gateway, offline_settings: Settings
) -> None:
    runs = [
        seen(agent, gateway, offline_settings, TOOLS).run
        for agent in (by_chat, by_responses)
    ]
    assert [run.status for run in runs] == ["completed", "completed"]
    assert len(runs[1].exchanges) > 1
    verdict = judge(*runs)
    assert (verdict.verdict, verdict.divergence) == ("equivalent", None)


def test_the_key_of_the_client_goes_to_the_upstream(opened: Any) -> None:
    upstream = Keeps(OfflineModel())
    create(opened(upstream=upstream))
    assert upstream.keys == ["Bearer client-key"]


# ------------------------------------------------------ a server asked over /responses


@pytest.fixture
def asked_over_responses(
    server: Gateway, front: Gateway
) -> Iterator[Callable[..., tuple[OpenRun, OpenRun]]]:
    """A run whose upstream is asked over /v1/responses, and the run behind it, which
    speaks that because it is a gateway itself."""
    with ExitStack() as stack:

        def open_both(*items: Any) -> tuple[OpenRun, OpenRun]:
            behind = stack.enter_context(server.open_run(Script(items)))
            settings = Settings(
                _env_file=None, base_url=behind.url, upstream_api="responses"
            )
            run = stack.enter_context(front.open_run(http_upstream(settings)))
            return run, behind

        yield open_both


@both
@pytest.mark.parametrize("converse", [over_items, over_ids])
def test_a_conversation_goes_there_and_back(
    asked_over_responses: Any, converse: Any, stream: bool
) -> None:
    run, behind = asked_over_responses(
        says("I look", CALL, message={"reasoning_content": "hm"}), says("sunny")
    )
    assert converse(run, stream).output_text == "sunny"
    messages = [
        [e.request["messages"] for e in each.exchanges] for each in (run, behind)
    ]
    assert len(messages[0]) == 2
    assert messages[0] == messages[1]
    assert behind.exchanges[0].request["tools"] == [WEATHER_TOOL]
    message = run.exchanges[0].reply["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("I look", "hm")
    assert message["tool_calls"] == [CALL]


class Responds:
    """A server that answers each POST with a given body, and keeps what it is asked."""

    def __init__(self, *replies: Any, content_type: str = "application/json") -> None:
        self.asked: list[tuple[str, Any]] = []
        replies_left = list(replies)
        seen = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                seen.append((self.path, json.loads(self.rfile.read(length))))
                reply = replies_left.pop(0)
                body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Responds:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


SECRET = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
OUTPUT = [SECRET, {"type": "function_call", "call_id": "a", **CALL["function"]}]


def test_reasoning_items_go_back_to_the_server_and_to_nobody_else(
    front: Gateway,
) -> None:
    said = {"type": "message", "content": [{"type": "output_text", "text": "sunny"}]}
    replies = [{"status": "completed", "output": output} for output in (OUTPUT, [said])]
    with (
        Responds(*replies) as behind,
        front.open_run(ResponsesEndpoint(behind.url)) as run,
        client(run) as own,
    ):
        messages: list[Any] = [{"role": "user", "content": "天气？"}]
        asked: dict[str, Any] = {"model": "m", "tools": [WEATHER_TOOL]}
        reply = own.chat.completions.create(**asked, messages=messages, max_tokens=9)
        message = reply.choices[0].message.to_dict()
        assert "response_items" not in message
        messages += [message, {"role": "tool", "tool_call_id": "a", "content": "25"}]
        reply = own.chat.completions.create(**asked, messages=messages)
        assert reply.choices[0].message.content == "sunny"
    assert [path for path, _ in behind.asked] == ["/v1/responses"] * 2
    first, second = (body for _, body in behind.asked)
    assert (first["max_output_tokens"], first["store"]) == (9, False)
    assert first["tools"] == [FLAT_TOOL]
    assert second["input"][1:] == [
        *OUTPUT,
        {"type": "function_call_output", "call_id": "a", "output": "25"},
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_response_that_failed_is_the_servers_error(
    front: Gateway, stream: bool
) -> None:
    failed = {"status": "failed", "output": [], "error": {"message": "out of memory"}}
    done = {"type": "response.failed", "response": failed}
    reply = f"data: {json.dumps(done)}\n\n".encode() if stream else failed
    kind = "text/event-stream" if stream else "application/json"
    with (
        Responds(reply, content_type=kind) as behind,
        front.open_run(ResponsesEndpoint(behind.url)) as run,
    ):
        answer = send(run.url, {**HELLO, "stream": stream})
    assert (answer.status, "out of memory" in answer.error) == (502, True)
