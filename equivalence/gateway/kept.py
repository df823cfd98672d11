"""What a server attached to a message or a call, and wants back in later requests.

Clients strip it: reasoning, thought signatures, fields of a vendor's own. The gateway
keeps it for the conversation and puts it back, on the way upstream alone: what is
recorded and compared are the requests as the implementation sent them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from equivalence.gateway.remembered import Remembered
from equivalence.gateway.shapes import KNOWN, REASONING, first_candidate

MOST_KEPT = 1000
"""Messages for which something is kept; the oldest go first."""
HEAVIEST_KEPT = 4 * 1024 * 1024
"""Characters of JSON that are kept."""

Attached = tuple[dict[str, Any], list[dict[str, Any]]]
"""The fields attached to a message, and those to each of its calls."""

_NOTHING_SAID = frozenset(
    ("annotations", "audio", "name", "type", "id", "tool_call_id")
)
"""Fields of a message with which OpenAI's own replies come, or which say nothing."""


def is_reasoning(name: str) -> bool:
    """Tell whether a field of a message holds thoughts, by its name: reasoning,
    reasoning_content, reasoning_details, thinking_blocks …"""
    return any(part in name.lower() for part in ("reason", "think", "thought"))


@dataclass
class Kept:
    """What is kept for one conversation.

    A run that continues a conversation is opened with what the earlier run kept. No
    other conversation sees it, and it is freed with its conversation. `shared`: many
    conversations come to one address; then something goes back only behind the very
    messages behind which it came.
    """

    shared: bool = False
    responses: Remembered = field(default_factory=Remembered)
    """What previous_response_id can name."""
    _found: OrderedDict[tuple[str, bytes], tuple[Attached, int]] = field(
        default_factory=OrderedDict
    )
    """By the calls of the message and all that stood before it; with its weight."""
    _newest: dict[str, bytes] = field(default_factory=dict)
    """What stood before the newest message with these calls."""
    _weight: int = 0

    def __len__(self) -> int:
        return len(self._found)

    def keep(self, request: Mapping[str, Any], raw: Any, sent: Any) -> None:
        """Keep what the message of the raw reply has beyond the one that was sent to
        the client, if it asks for tools: no server wants back what it attached to a
        finished answer."""
        raw_message, message = _message(raw), _message(sent)
        if not (calls := _calls(message)):
            return
        attached = _attached(raw_message, calls)
        moved = message.get(REASONING[0])
        if moved and not any(is_reasoning(name) for name in attached[0]):
            attached[0][REASONING[0]] = moved  # a think block, moved out of the text
        if not attached[0] and not any(attached[1]):
            return
        *_, (_, before) = _with_history([*_messages(request), message])
        key = _key(calls)
        weight = len(json.dumps(attached, ensure_ascii=False, default=str))
        self._forget(key, before)
        self._found[key, before] = attached, weight
        self._newest[key] = before
        self._weight += weight
        while self._weight > HEAVIEST_KEPT or len(self._found) > MOST_KEPT:
            self._forget(*next(iter(self._found)))

    def _forget(self, key: str, before: bytes) -> None:
        _, weight = self._found.pop((key, before), (None, 0))
        self._weight -= weight
        if self._newest.get(key) == before:
            del self._newest[key]

    def put_back(
        self, request: dict[str, Any], *, reasoning: bool, attached: bool
    ) -> dict[str, Any]:
        """Return the request with what belongs to its messages: thoughts, if the server
        wants `reasoning` back, and everything else that it `attached`."""
        if not self._found or not (reasoning or attached):
            return request
        messages = list(_messages(request))
        for index, (message, before) in enumerate(_with_history(messages)):
            found = self._find(_calls(message), before)
            if found is None:
                continue
            beside, to_calls = found
            fields = {
                name: value
                for name, value in beside.items()
                if (reasoning if is_reasoning(name) else attached)
            }
            calls = _calls(message)
            if attached:
                pairs = zip(to_calls, calls, strict=True)
                calls = [{**extra, **call} for extra, call in pairs]
            messages[index] = {**fields, **message, "tool_calls": calls}
        return {**request, "messages": messages}

    def _find(self, calls: list[dict[str, Any]], before: bytes) -> Attached | None:
        if not calls:
            return None
        key = _key(calls)
        found = self._found.get((key, before))
        if found is None and not self.shared and key in self._newest:
            # a client that forgets old messages still continues its conversation
            found = self._found.get((key, self._newest[key]))
        return found[0] if found else None


def _messages(request: Mapping[str, Any]) -> Sequence[Any]:
    messages = request.get("messages")
    return messages if isinstance(messages, list) else ()


def _message(reply: Any) -> Mapping[str, Any]:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = first_candidate(choices) if isinstance(choices, list) else None
    message = choice.get("message") if choice else None
    return message if isinstance(message, dict) else {}


def _calls(message: Any) -> list[dict[str, Any]]:
    """The calls of a message; none where not all are calls."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(calls, list) or not all(isinstance(c, dict) for c in calls):
        return []
    return calls


def _attached(raw: Mapping[str, Any], calls: list[dict[str, Any]]) -> Attached:
    beside = {
        name: value
        for name, value in raw.items()
        if name not in KNOWN
        and name not in _NOTHING_SAID
        and value not in (None, "", [])
    }
    came = _calls(raw)
    if len(came) != len(calls):  # a call was dropped, or came as text
        return beside, [{} for _ in calls]
    read = ("id", "type", "function", "index", "name", "arguments")
    return beside, [
        {name: value for name, value in call.items() if name not in read}
        for call in came
    ]


def _key(calls: list[dict[str, Any]]) -> str:
    return json.dumps([_call(call) for call in calls], sort_keys=True, default=str)


def _call(call: Mapping[str, Any]) -> list[Any]:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    try:  # clients write the JSON anew
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        value = arguments
    return [call.get("id"), function.get("name"), value]


def _with_history(messages: Sequence[Any]) -> Iterator[tuple[Any, bytes]]:
    """Yield each message and a digest of all that stand before it."""
    history = sha256()
    for message in messages:
        yield message, history.digest()
        plain = message if isinstance(message, dict) else {"content": message}
        calls = [_call(call) for call in _calls(message)]
        said = [plain.get("role"), plain.get("content") or "", calls]
        history.update(json.dumps(said, sort_keys=True, default=str).encode())
