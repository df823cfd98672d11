"""What a server attached to a reply: back to it, if it wants it, and to no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from wire import (
    CALL,
    DONE,
    HELLO,
    LADDER,
    WEATHER_TOOL,
    Keeps,
    calling,
    send,
    watched,
)

from config import Settings
from equivalence.gateway import Gateway, Kept, Script
from equivalence.gateway.kept import HEAVIEST_KEPT, MOST_KEPT
from equivalence.gateway.upstreams import Reply, as_asked, completion
from equivalence.runs.hints import hint
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import Observed, observe
from offline_model import OfflineModel
from tools import TOOLS


def test_reasoning_goes_back_where_it_came_from_and_nowhere_else() -> None:
    calls = {"content": None, "tool_calls": [CALL], "reasoning_content": "想"}
    script = Keeps(
        Script(
            [
                {"message": calls},
                {"message": {"content": "sunny", "reasoning_content": "又想"}},
                DONE,
                HELLO,
                LADDER,
            ]
        )
    )
    with (
        Gateway(script, echo_reasoning=True) as gateway,
        gateway.open_run() as one,
        gateway.open_run() as other,
    ):
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
        ]
        for _ in range(3):
            body = {"messages": messages, "tools": [WEATHER_TOOL]}
            reply = send(one.url, body).json
            message = reply["choices"][0]["message"]
            message.pop("reasoning_content", None)  # as clients do
            messages.append(message)
            if message.get("tool_calls"):
                result = {"role": "tool", "tool_call_id": "a", "content": "晴"}
                messages.append(result)
            else:
                messages.append({"role": "user", "content": "again"})
        send(other.url, body)
    carried = [
        [message.get("reasoning_content") for message in request["messages"]]
        for request in script.requests
    ]
    assert carried[0] == [None, None]
    assert carried[1] == [None, None, "想", None]
    assert carried[2] == [None, None, "想", None, None, None]
    assert set(carried[3]) == {None}  # another run has not heard that reasoning


def test_without_the_switch_no_reasoning_goes_back(front: Gateway) -> None:
    calls = {"content": None, "tool_calls": [CALL], "reasoning_content": "想"}
    script = Keeps(Script([{"message": calls}, DONE]))
    run = front.open_run(script)
    body = {"messages": [], "tools": [WEATHER_TOOL]}
    first = send(run.url, body).json["choices"][0]["message"]
    first.pop("reasoning_content")
    send(run.url, {"messages": [first]})
    assert "reasoning_content" not in script.requests[1]["messages"][0]


def test_raw_and_reasoning_bear_odd_replies_and_requests() -> None:
    odd = [{"choices": None}, {"choices": []}, [], {"choices": [{"message": "x"}]}]
    script = Script([{"body": body} for body in odd])
    with Gateway(script, repair=False, echo_reasoning=True) as front:
        for body in odd:
            messages = ["x", None, {"tool_calls": 5}, {"tool_calls": ["y"]}]
            assert send(front.url, {"messages": messages}).json == body


SIGNATURE = {"google": {"thought_signature": "c2ln"}}
SIGNED = {**CALL, "extra_content": SIGNATURE}
DETAILS = [{"type": "reasoning.text", "text": "想", "index": 0}]


def signing(**beside: Any) -> list[dict[str, Any]]:
    """A call with a signature, and the answer; then the same again."""
    call = {"message": {"content": None, "tool_calls": [SIGNED], **beside}}
    other = {**SIGNED, "id": "b"}
    again = {"message": {"content": None, "tool_calls": [other], **beside}}
    return [call, DONE, again, DONE]


@calling
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("repair", [False, True])
def test_what_a_server_attached_to_a_call_goes_back_to_it(
    implementation: Implementation,
    stream: bool,
    repair: bool,
    offline_settings: Settings,
) -> None:
    """Two questions, a call in each; and nothing of it in what is compared."""
    script = Script(
        signing(), strict=True, require_attached={"call": {"extra_content": SIGNATURE}}
    )
    settings = offline_settings.model_copy(update={"stream": stream})
    seen: list[Observed] = []
    with Gateway(script, repair=repair) as gateway:
        for question in ("go", "more"):
            before = seen[-1] if seen else None
            seen.append(
                observe(
                    implementation, question, settings, gateway, TOOLS, after=before
                )
            )
            run = seen[-1].run
            assert (run.status, run.answer) == ("completed", "done"), run.error
    sent = [exchange.request for each in seen for exchange in each.run.exchanges]
    assert len(sent) == 4
    assert "thought_signature" not in json.dumps(sent)


@calling
def test_it_can_be_switched_off(
    implementation: Implementation, offline_settings: Settings
) -> None:
    script = Script(signing(), require_attached={"call": {"extra_content": SIGNATURE}})
    with Gateway(script, echo_attached=False) as gateway:
        run = watched(implementation, offline_settings, gateway, "go").run
    assert run.status == "model_error"
    assert "wants the extra_content back" in (run.error or "")
    assert "LLM_ECHO_ATTACHED" in (hint(run.error) or "")


@pytest.mark.parametrize(
    "beside",
    [
        {"reasoning": "想"},
        {"reasoning_content": "想"},
        {"reasoning_details": DETAILS},
        {"thinking_blocks": [{"type": "thinking", "signature": "x"}]},
        {"reasoning": "想", "reasoning_details": DETAILS},
    ],
    ids=lambda beside: "+".join(beside),
)
@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_goes_back_under_the_name_under_which_it_came(
    beside: dict[str, Any], stream: bool, offline_settings: Settings
) -> None:
    (stage3,) = (each for each in LADDER if each.name == "stage3")
    settings = offline_settings.model_copy(update={"stream": stream})
    for echo in (True, False):
        upstream = Keeps(Script(signing(**beside)))
        with Gateway(upstream, echo_reasoning=echo) as gateway:
            run = watched(stage3, settings, gateway, "go").run
        assert run.status == "completed"
        (message,) = (
            m for m in upstream.requests[1]["messages"] if m.get("tool_calls")
        )
        carried = {name: message[name] for name in beside if name in message}
        assert carried == (beside if echo else {})
        assert message["tool_calls"][0]["extra_content"] == SIGNATURE


def test_reasoning_in_pieces_is_put_together(front: Gateway) -> None:
    pieces = [
        {"reasoning_details": [{"type": "reasoning.text", "text": "想", "index": 0}]},
        {"reasoning_details": [{"text": "又想", "index": 0}]},
        {"reasoning_details": [{"text": "", "signature": "x", "index": 0}]},
        {
            "reasoning_details": [
                {"type": "reasoning.encrypted", "data": "y", "index": 1}
            ]
        },
        {"tool_calls": [{"index": 0, **SIGNED}]},
    ]
    with front.open_run(Script([{"stream": pieces}])) as run:
        send(run.url, {**HELLO, "stream": True, "tools": [WEATHER_TOOL]})
    message = run.exchanges[0].raw_reply["choices"][0]["message"]
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "想又想", "index": 0, "signature": "x"},
        {"type": "reasoning.encrypted", "data": "y", "index": 1},
    ]


def exchanged(url: str, *questions: str) -> None:
    """Ask each question after the last, as clients do: they strip what is not known."""
    messages: list[dict[str, Any]] = []
    for question in questions:
        messages.append({"role": "user", "content": question})
        while True:
            body = {"model": "m", "messages": messages, "tools": [WEATHER_TOOL]}
            message = send(url, body).json["choices"][0]["message"]
            calls = message.get("tool_calls")
            message = {"role": "assistant", "content": message["content"]}
            if not calls:
                messages.append(message)
                break
            kept = [{k: c[k] for k in ("id", "type", "function")} for c in calls]
            messages.append({**message, "tool_calls": kept})
            result = {"role": "tool", "tool_call_id": calls[0]["id"], "content": "晴"}
            messages.append(result)


class Signs(OfflineModel):
    """Signs each call, always of one id, with the question it was asked for; keeps the
    questions and the signatures with which the calls come back."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str | None]] = []

    async def answer(self, request: dict[str, Any], authorization: Any) -> Reply:
        messages = request["messages"]
        for index, message in enumerate(messages):
            for call in message.get("tool_calls") or ():
                asked = messages[index - 1]["content"]
                self.seen.append((asked, call.get("signature")))
        if messages[-1]["role"] == "tool":
            message = {"content": "done"}
        else:
            call = {**CALL, "id": "call_0", "signature": messages[-1]["content"]}
            message = {"content": None, "tool_calls": [call]}
        return as_asked(request, completion(message, "m"))


def test_two_clients_at_one_address_are_not_mixed_up() -> None:
    """At the address of nobody's run, and at those of two runs."""
    upstream = Signs()
    with Gateway(upstream) as gateway, ThreadPoolExecutor(8) as pool:
        for number in range(40):
            pool.submit(exchanged, gateway.url, f"question {number}", f"more {number}")
    assert len(upstream.seen) == 40 * 4
    assert all(asked == signature for asked, signature in upstream.seen)


def test_a_client_that_forgets_old_messages_keeps_its_own() -> None:
    """In a run of its own; where others ask too, nobody knows whose it is."""
    upstream = Signs()
    with Gateway(upstream) as gateway, gateway.open_run() as run:
        for url, carried in ((run.url, "晴?"), (gateway.url, None)):
            first = [
                {"role": "user", "content": "old"},
                {"role": "user", "content": "晴?"},
            ]
            body = {"messages": first, "tools": [WEATHER_TOOL]}
            message = send(url, body).json["choices"][0]["message"]
            result = {"role": "tool", "tool_call_id": "call_0", "content": "晴"}
            send(url, {**body, "messages": [first[1], message, result]})
            assert upstream.seen.pop()[1] == carried


def test_what_is_kept_is_bounded() -> None:
    kept = Kept()
    request = {"messages": [{"role": "user", "content": "go"}]}
    for number in range(MOST_KEPT + 10):
        sent = {"choices": [{"message": {"tool_calls": [{**CALL, "id": f"{number}"}]}}]}
        raw = {
            "choices": [{"message": {"tool_calls": [{**SIGNED, "id": f"{number}"}]}}]
        }
        kept.keep(request, raw, sent)
    assert len(kept) == MOST_KEPT
    heavy = {**SIGNED, "signature": "x" * (HEAVIEST_KEPT // 2)}
    raw = {"choices": [{"message": {"tool_calls": [heavy]}}]}
    for number in range(9):
        sent = {
            "choices": [{"message": {"tool_calls": [{**CALL, "id": f"h{number}"}]}}]
        }
        kept.keep(request, raw, sent)
    assert len(kept) == 1


@pytest.fixture(scope="module")
def echoing() -> Iterator[Gateway]:
    with Gateway(OfflineModel(), echo_reasoning=True) as running:
        yield running


@calling
@pytest.mark.parametrize("echo", [True, False])
def test_a_server_that_wants_its_reasoning_back(
    implementation: Any,
    echo: bool,
    gateway: Gateway,
    echoing: Gateway,
    offline_settings: Settings,
) -> None:
    """R37: with the switch all succeed, without it all fail with the server's words."""
    calls = {"content": None, "tool_calls": [CALL], "reasoning_content": "想"}
    script = Script([{"message": calls}, DONE], strict=True, require_reasoning="想")
    place = echoing if echo else gateway
    run = watched(implementation, offline_settings, place, "go", script).run
    if echo:
        assert (run.status, run.answer) == ("completed", "done")
    else:
        assert run.status == "model_error"
        assert "reasoning_content" in (run.error or "")
    assert len(run.exchanges) == 2
