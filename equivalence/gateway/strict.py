"""What strict providers refuse: the rules a conversation must keep on the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def violation(request: Mapping[str, Any]) -> str | None:
    """Return the first rule the request breaks, as a sentence, or None.

    The rules are those of OpenAI's API and of the Qwen chat templates: no system
    message but one that comes first; every tool call answered once, directly after it;
    no tool message without a call; ids unique; arguments a string that holds a JSON
    object.
    """
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages must be a list that is not empty"
    if not all(isinstance(m, Mapping) and m.get("role") for m in messages):
        return "each message must be an object with a role"
    if request.get("tools") == []:
        return "tools must not be empty"
    roles = [message.get("role") for message in messages]
    if "system" in roles[1:]:
        return "a system message must be the only one, and stand at index 0"
    open_ids: list[str] = []
    used: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message["role"] == "tool":
            identifier = message.get("tool_call_id")
            if identifier not in open_ids:
                return (
                    f"{where}: a tool message without a call {identifier!r} before it"
                )
            open_ids.remove(identifier)
            if not isinstance(message.get("content"), str):
                return f"{where}: content must be a string"
            continue
        if open_ids:
            return f"{where}: tool calls {open_ids} have no result"
        if message["role"] == "assistant":
            calls = message.get("tool_calls")
            problem = _bad_calls(calls, used) if calls is not None else None
            if problem:
                return f"{where}: {problem}"
            open_ids = [call["id"] for call in calls or []]
            if "content" not in message or (message["content"] is None and not calls):
                return f"{where}: an assistant message needs content or tool calls"
        elif not isinstance(message.get("content"), str):
            return f"{where}: content must be a string"
    return f"tool calls {open_ids} have no result" if open_ids else None


def _bad_calls(calls: Any, used: set[str]) -> str | None:
    if not isinstance(calls, list) or not calls:
        return "tool_calls must be a list that is not empty"
    for call in calls:
        identifier = call.get("id")
        if not isinstance(identifier, str) or not identifier or identifier in used:
            return f"tool call id {identifier!r} is missing or used twice"
        used.add(identifier)
        function = call.get("function", {})
        if not isinstance(function.get("name"), str) or not function["name"]:
            return "a tool call needs a name"
        try:
            arguments = json.loads(function.get("arguments"), parse_constant=_refuse)
        except (TypeError, ValueError):
            arguments = None
        if not isinstance(arguments, dict):
            return (
                f"arguments of {function['name']!r} must be a JSON object in a string"
            )
    return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
