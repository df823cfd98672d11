"""Stage 4's memory: a window that never parts a call from its results."""

from __future__ import annotations

from typing import Any

import pytest
from stage4_replies import asks, call, says

from equivalence.gateway import Script
from stage4_mini_framework.framework import Agent
from stage4_mini_framework.memory import TokenBudget, Window, whole
from toolkit.tokens import message_tokens, tokens
from tools import TOOLS


def long_conversation(questions: int, calls: int) -> list[dict[str, Any]]:
    """Questions in each of which two turns of parallel calls come before the answer."""
    number, found = 0, []
    for turn in range(questions):
        found.append({"role": "user", "content": f"question {turn}"})
        for _ in range(2):
            ids = [f"id{number + index}" for index in range(calls)]
            number += calls
            made = [call("get_weather", '{"city": "北京"}', each) for each in ids]
            found.append({"role": "assistant", "content": None, "tool_calls": made})
            found += [
                {"role": "tool", "tool_call_id": each, "content": "sunny"}
                for each in ids
            ]
        found.append({"role": "assistant", "content": f"answer {turn}"})
    return found


@pytest.mark.parametrize("size", range(2, 13))
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_a_window_never_parts_a_call_from_its_results(
    size: int, calls: int, gateway, offline_settings
) -> None:
    def turn(number: int) -> list[dict[str, Any]]:
        ids = [f"id{number}-{index}" for index in range(calls)]
        return [
            asks(*(call("get_weather", '{"city": "北京"}', each) for each in ids)),
            asks(call("get_current_time", "{}", f"id{number}-time")),
            says(f"answer {number}"),
        ]

    script = Script([reply for n in range(4) for reply in turn(n)], strict=True)
    log = gateway.open_run(script)
    url = {"gateway_url": log.url}
    agent = Agent(
        tools=TOOLS,
        memory=Window(messages=size),
        settings=offline_settings.model_copy(update=url),
    )
    for number in range(4):
        assert agent.run(f"question {number}") == f"answer {number}"
    assert not script.refusals
    smallest = 1 + 1 + calls  # the question, and calls with their results
    for index, exchange in enumerate(log.exchanges):
        system, *sent = exchange.request["messages"]
        assert system["role"] == "system"
        questions = [m["content"] for m in sent if m["role"] == "user"]
        assert questions[-1] == f"question {index // 3}"
        assert len(sent) <= max(size, smallest)
        assert len(sent) >= min(size, len(agent.messages), 1 + index % 3)
    assert len(agent.messages) == 4 * (5 + calls), "the conversation itself stays whole"


def test_a_window_holds_as_much_as_fits() -> None:
    conversation = [*long_conversation(3, 2), {"role": "user", "content": "last"}]
    assert Window(messages=1000)(conversation) == whole(conversation) == conversation
    assert Window(messages=2)(conversation) == conversation[-2:]
    assert Window(messages=3)(conversation) == conversation[-2:], "not half a turn"
    assert Window(messages=5)(conversation) == conversation[-5:]
    assert Window(messages=4)([]) == []


def test_the_question_stays_when_its_calls_fill_the_window() -> None:
    conversation = long_conversation(2, 2)[:-1]
    question = conversation[8]
    assert question["content"] == "question 1"
    assert Window(messages=4)(conversation) == [question, *conversation[-3:]]


@pytest.mark.parametrize("limit", [1, 60, 150, 400, 10_000])
def test_a_token_budget_is_kept(limit: int) -> None:
    conversation = [*long_conversation(5, 2), {"role": "user", "content": "last"}]
    sent = TokenBudget(tokens=limit)(conversation)
    assert sent[-1]["content"] == "last"
    assert message_tokens(sent) <= max(limit, message_tokens(sent[-1:]))
    assert len(sent) == len(conversation) or message_tokens(sent) > limit - 120


def test_tokens_are_estimated_by_script() -> None:
    assert tokens("") == 0
    assert tokens("word") == tokens("wo") == 1
    assert tokens("北京今") == 2
    assert tokens("北京 weather") == 4  # two of each
    assert tokens("at 385.6") == 7  # as Qwen has it: at, space, 3, 8, 5, ., 6
