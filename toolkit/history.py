"""What a conversation must be to go on from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from equivalence.errors import UsageError

_History = TypeVar("_History", bound=Iterable[Any])


def answered(history: _History) -> _History:
    """Return the history. Raises UsageError if a tool call in it has no result behind
    it, as in a turn that was interrupted: no server takes such a conversation."""
    waiting: dict[Any, str] = {}
    for message in history:
        result = _field(message, "tool_call_id")
        if waiting and result is None:
            break
        waiting.pop(result, None)
        for call in _field(message, "tool_calls") or ():
            waiting[call.get("id")] = call.get("name") or call["function"]["name"]
    if waiting:
        raise UsageError(
            f"the history has no result of the call of {', '.join(waiting.values())}:"
            " add its tool message, or end the history before that turn"
        )
    return history


def _field(message: Any, name: str) -> Any:
    """A field of a message, which is a dict or LangChain's."""
    return (
        message.get(name) if isinstance(message, dict) else getattr(message, name, None)
    )
