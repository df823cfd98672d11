"""What the probe reads out of replies as the server sent them: forms and habits."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from equivalence.gateway import Exchange

Message = dict[str, Any]


def message_of(reply: Any) -> Message:
    """Return the message of a completion; {} where there is none."""
    try:
        message = reply["choices"][0]["message"]
    except (TypeError, LookupError):
        return {}
    return message if isinstance(message, dict) else {}


def calls_of(reply: Any) -> list[dict[str, Any]]:
    """Return the structured calls of a completion that have a function."""
    calls = message_of(reply).get("tool_calls")
    return [
        call
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict) and isinstance(call.get("function"), dict)
    ]


def text_of(reply: Any) -> str:
    """Return the text of a completion's message."""
    content = message_of(reply).get("content")
    if isinstance(content, list):
        parts = (b.get("text") if isinstance(b, dict) else b for b in content)
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def finish_of(reply: Any) -> str | None:
    """Return why the reply ended, in the server's own word."""
    try:
        reason = reply["choices"][0].get("finish_reason")
    except (TypeError, LookupError, AttributeError):
        return None
    return reason if isinstance(reason, str) else None


def form_of_text_call(text: str) -> str:
    """Return the mark in which a call written as text begins."""
    mark = re.search(r"<[^<>\s]{1,40}>|```\w*|\[[A-Z_]{3,30}\]", text)
    if mark:
        fenced = mark[0].startswith("```")
        return f"in a {mark[0]} fence" if fenced else f"in {mark[0]}"
    return "as bare JSON" if text.lstrip()[:1] in ("{", "[") else "as plain text"


ID_FORMS = (
    (r"call_\w+", "call_…"),
    (r"chatcmpl-tool-\w+", "chatcmpl-tool-…"),
    (r"toolu_\w+", "toolu_…"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a UUID"),
    (r"\d+", "a number"),
    (r"[A-Za-z0-9]+", "{length} letters and digits"),
)


def form_of_id(identifier: Any) -> str:
    """Return the form of a call's id in a few words."""
    if not isinstance(identifier, str) or not identifier:
        return "missing"
    for pattern, form in ID_FORMS:
        if re.fullmatch(pattern, identifier):
            return form.format(length=len(identifier))
    return "of a form of its own"


def form_of_arguments(arguments: Any) -> str:
    """Return in which form the arguments of a call came."""
    if isinstance(arguments, dict):
        return "an object, not JSON text"
    if not isinstance(arguments, str) or not arguments.strip():
        return "missing"
    try:
        value = json.loads(arguments, strict=False)
    except ValueError:
        return "not valid JSON"
    if isinstance(value, str):
        return "JSON text inside JSON text"
    return "JSON text" if isinstance(value, dict) else "JSON, but no object"


def thinking_in(exchange: Exchange) -> str:
    """Return where the thinking of a reply stands, "" where there is none."""
    message = message_of(exchange.raw_reply)
    for name in ("reasoning_content", "reasoning", "reasoning_details", "thinking"):
        if message.get(name):
            return f"the field {name}"
    if {"think_block", "late_think_block"} & {*exchange.repairs}:
        return "a block at the beginning of the text"
    return ""


def said(reply: Any) -> Any:
    """Return what a reply says, for telling whether two say the same: its text, and the
    names and arguments of its calls; their ids and its thoughts are left out."""
    calls = [call["function"] for call in calls_of(reply)]
    asked = [(call.get("name"), call.get("arguments")) for call in calls]
    return text_of(reply).strip(), json.dumps(asked, sort_keys=True, default=str)


CONTEXT = (
    *("max_model_len", "context_length", "loaded_context_length", "context_window"),
    *("max_context_length", "n_ctx", "inputTokenLimit"),
)
"""Names under which servers tell how many tokens a model takes."""


def model_entries(body: Any) -> list[dict[str, Any]]:
    """Return the entries of a list of models."""
    listed = body.get("data") if isinstance(body, dict) else None
    return [
        entry
        for entry in (listed if isinstance(listed, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    ]


def context_of(entries: Sequence[dict[str, Any]], model: str) -> int | None:
    """Return how many tokens the model takes, where the list of models tells it: under
    its own name, or as the only one there."""
    own = [entry for entry in entries if entry["id"] == model]
    for entry in own or (entries if len(entries) == 1 else ()):
        meta = entry.get("meta")
        for place in (entry, meta if isinstance(meta, dict) else {}):
            for name in CONTEXT:
                if type(place.get(name)) is int and place[name] > 0:
                    return int(place[name])
    return None


_ACTION = re.compile(
    r"Action:\s*`?(\w+)`?\s*\n+\s*Action Input:\s*(\{.*?\})", re.DOTALL
)


def action_in(text: str) -> tuple[str, dict[str, Any]] | None:
    """Return the tool and the arguments of a reply in the form of text agents."""
    found = _ACTION.search(text)
    if not found:
        return None
    try:
        arguments = json.loads(found[2])
    except ValueError:
        return None
    return found[1], arguments
