"""Stage 5's memory: twenty turns under a budget."""

from __future__ import annotations

import json
from typing import Any

from text_react import NAMED, STAGE5, spoken

from equivalence.gateway import Script
from equivalence.runs.observe import Observed, observe
from stage5_text_react.memory import CONTEXT, SUMMARY, dialogue, extract
from stage5_text_react.prompt import as_text, scratchpad, system_prompt
from toolkit.tokens import message_tokens, tokens
from tools import TOOLS

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
    seen: list[Observed] = []
    for question in questions:
        before = seen[-1] if seen else None
        seen.append(observe(STAGE5, question, settings, gateway, TOOLS, after=before))
        assert seen[-1].run.status == "completed"
    return seen, seen[-1].conversation


def test_twenty_turns_stay_within_the_budget(gateway, offline_settings) -> None:
    seen, history = converse(TWENTY, gateway, offline_settings)
    peak = max(
        message_tokens(exchange.request["messages"])
        for observed in seen
        for exchange in observed.run.exchanges
    )
    prompt = {"role": "system", "content": system_prompt(NAMED)}
    plain = message_tokens([prompt, *as_text(history[:-1])])
    assert peak < CONTEXT == 2000
    assert plain > 2 * peak
    last = seen[-1].run.exchanges[0].request["messages"]
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
            STAGE5,
            "go",
            offline_settings.model_copy(update=settings),
            gateway,
            TOOLS,
            upstream=script,
            after=spoken(history),
        )
        assert observed.run.answer == "done"
        assert observed.run.status == "completed"
        assert [step.turn for step in observed.run.steps] == [2]
        system = observed.run.exchanges[1].request["messages"][0]["content"]
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
            STAGE5,
            "go",
            offline_settings.model_copy(update=settings),
            gateway,
            TOOLS,
            upstream=endless,
            after=spoken(history),
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
