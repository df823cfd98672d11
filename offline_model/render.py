"""The reply in the form of the request: tool calls in their own field, or all text."""

from __future__ import annotations

import json
from typing import Any

from .view import Call, View


def chat_message(view: View, calls: list[Call], text: str) -> dict[str, Any]:
    """The calls, under ids new to the conversation, or else the text."""
    if not calls:
        return {"role": "assistant", "content": text}
    taken = [call.id for turn in (*view.earlier, view.turn) for call in turn.calls]
    number, listed = len(taken), []
    for call in calls:
        number += 1
        while f"call_{number}" in taken:
            number += 1
        function = {"name": call.tool, "arguments": _arguments(view, call)}
        listed.append(
            {"id": f"call_{number}", "type": "function", "function": function}
        )
    return {"role": "assistant", "content": None, "tool_calls": listed}


def react_message(
    view: View, calls: list[Call], text: str, chinese: bool
) -> dict[str, Any]:
    """The same as text: a thought, then one action or the final answer."""
    if not calls:
        thought = "已经可以回答了。" if chinese else "I can answer now."
        rest = f"Final Answer: {text}"
    else:
        (call,) = calls
        thought = (
            f"需要先调用 {call.tool}。" if chinese else f"I need {call.tool} first."
        )
        rest = f"Action: {call.tool}\nAction Input: {_arguments(view, call)}"
    return {"role": "assistant", "content": f"Thought: {thought}\n{rest}"}


def _arguments(view: View, call: Call) -> str:
    names = view.tools[call.tool].parameters or ()
    return json.dumps(dict(zip(names, call.values, strict=True)), ensure_ascii=False)
