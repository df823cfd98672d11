"""The reply: its text, and a message of the conversation made of what the text says.

The conversation has the shape of stage 4's. What could not be read, and the reminder
that followed, carry "unreadable": later questions do without them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from openai import OpenAIError, Stream

from stage5_text_react.parser import Action, Answer, Unreadable

Message = dict[str, Any]

REMINDERS = 2
"""How often in a row the model is reminded of the format, before the run ends."""


def read_text(reply: Any) -> tuple[str, str]:
    """Return the text and the finish_reason. OpenAIError where there is no message."""
    if isinstance(reply, Stream):
        choices = [choice for chunk in reply for choice in _choices(chunk)]
    else:
        choices = _choices(reply)[:1]
    if not choices:
        raise OpenAIError("the server answered without a message")
    parts = [c.get("message") or c.get("delta") or {} for c in choices]
    ends = [str(c["finish_reason"]) for c in choices if c.get("finish_reason")]
    refused = any(part.get("refusal") for part in parts)
    end = "content_filter" if refused else "".join(ends[-1:])
    return "".join(_text(part.get("content")) for part in parts), end


def as_message(
    said: Action | Answer | Unreadable, before: Sequence[Message]
) -> Message:
    """Return what was said as the next message of the conversation."""
    if isinstance(said, Answer):
        return {"role": "assistant", "content": said.text}
    if isinstance(said, Unreadable):
        return _unreadable(said, before)
    arguments = json.dumps(said.arguments, ensure_ascii=False)
    call = {
        "id": f"call_{len(before)}",  # its place in the conversation
        "type": "function",
        "function": {"name": said.name, "arguments": arguments},
    }
    return {"role": "assistant", "content": said.thought, "tool_calls": [call]}


def _unreadable(said: Unreadable, before: Sequence[Message]) -> Message:
    """The text as it is; with the reminder, unless the model had enough of them."""
    ran_out = all("unreadable" in message for message in before[-2 * REMINDERS :])
    reminder = "" if ran_out else said.reminder
    return {"role": "assistant", "content": said.text, "unreadable": reminder}


def _choices(reply: Any) -> list[Message]:
    data = reply.to_dict(warnings=False) if hasattr(reply, "to_dict") else {}
    choices = data.get("choices")
    items = choices if isinstance(choices, list) else ()
    return [item for item in items if isinstance(item, dict)]


def _text(content: Any) -> str:
    """The text of a content, also of one in blocks."""
    blocks = content if isinstance(content, list) else [content]
    texts = (b.get("text") if isinstance(b, dict) else b for b in blocks)
    return "".join(text for text in texts if isinstance(text, str))
