"""Reasoning beside a reply: sent back to a model that wants it, and to no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from wire import (
    CALL,
    DONE,
    WEATHER_TOOL,
    Keeps,
    calling,
    send,
    watched,
)

from config import Settings
from equivalence.gateway import Gateway, Script
from offline_model import OfflineModel


def test_reasoning_goes_back_where_it_came_from_and_nowhere_else() -> None:
    calls = {"content": None, "tool_calls": [CALL], "reasoning_content": "想"}
    script = Keeps(
        Script(
            [
                {"message": calls},
                {"message": {"content": "sunny", "reasoning_content": "又想"}},
                DONE,
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
