"""A conversation of so many model calls, and the tool that looks at its own stack."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from equivalence.gateway import Script
from equivalence.gateway.upstreams import completion
from equivalence.runs.agents import Agent, Asking
from equivalence.settings import Settings

QUESTION = "What is behind the keys?"
_HERE = Path(__file__)
NOT_COUNTED = {
    str(_HERE),
    str(_HERE.parent / "measuring.py"),
    str(_HERE.parent.parent / "runs" / "agents.py"),
}
"""Files whose frames are who asks, not who is asked."""

FINAL_ANSWER = "final_answer"
"""The protocol of an agent that ends by calling a tool of this name."""

depths: list[int] = []
"""What look_up saw since this was last cleared."""


def look_up(key: str) -> str:
    """Look up the value of a key."""
    depth, frame = 0, sys._getframe(1)
    while frame:
        if frame.f_code.co_filename in NOT_COUNTED:
            break  # below it is who asked, not who was asked
        depth += 1
        frame = frame.f_back  # type: ignore[assignment]
    depths.append(depth)
    return f"value of {key}"


SCHEMA = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look up the value of a key.",
        "parameters": {
            "type": "object",
            "properties": {"key": {"type": "string"}},
            "required": ["key"],
        },
    },
}


def script(calls: int, protocol: str) -> Script:
    """Return the model: a tool call in each of `calls` replies but the last."""
    items: list[Any] = []
    for number in range(calls - 1):
        if protocol == "text":
            text = 'Thought: on\nAction: look_up\nAction Input: {"key": "a"}'
            items.append({"message": {"content": text}})
            continue
        function = {"name": "look_up", "arguments": '{"key": "a"}'}
        call = {"id": f"call{number}", "type": "function", "function": function}
        items.append({"message": {"content": None, "tool_calls": [call]}})
    if protocol == FINAL_ANSWER:
        function = {"name": "final_answer", "arguments": '{"answer": "done"}'}
        call = {"id": f"call{calls}", "type": "function", "function": function}
        items.append({"message": {"content": None, "tool_calls": [call]}})
        return Script([{"body": _with_usage(item["message"])} for item in items])
    last = "Final Answer: done" if protocol == "text" else "done"
    return Script([*items, {"message": {"content": last}}])


def _with_usage(message: dict[str, Any]) -> dict[str, Any]:
    """A reply that says how many tokens it took: smolagents fails without."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**completion(message, "script"), "usage": usage}


def ask(agent: Agent, url: str, calls: int) -> None:
    """Ask the agent the question at a base URL; it may make `calls` model calls."""
    how: dict[str, Any] = {"model": "m", "retries": 0, "max_steps": calls}
    settings = Settings(**how, gateway_url=url)
    agent(Asking(QUESTION, (), settings, [look_up], uuid4().hex))
