"""Lists of chat messages: OpenAI's dicts, agentevals', LangGraph's state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from equivalence.gateway.exchange import Exchange
from equivalence.runs.record import Run
from equivalence.traces.calls import Seen, questions, runs
from equivalence.traces.messages import (
    Message,
    as_openai,
    completion,
    finish_reason,
    is_message,
)

NAME = "chat messages"
ENDS = ("assistant", "tool")
"""Who speaks last before another question."""


def conversations(documents: Sequence[Any]) -> list[tuple[str, list[Any]]] | None:
    """Return the conversations of the documents, each with the name of who held it;
    None where they are none."""
    if documents and all(is_message(document) for document in documents):
        return [("", list(documents))]  # a message a line
    found = []
    for document in documents:
        many = isinstance(document, list) and not all(map(is_message, document))
        for one in document if many else [document]:
            messages = one.get("messages") if isinstance(one, dict) else one
            if not isinstance(messages, list) or not messages:
                return None
            if not all(map(is_message, messages)):
                return None
            name = one.get("implementation", "") if isinstance(one, dict) else ""
            found.append((name if isinstance(name, str) else "", messages))
    return found or None


def read(found: Sequence[tuple[str, list[Any]]], name: str) -> list[Run]:
    """Return the runs, one for each question that was answered. An earlier question of
    one list that is the last of another is one run, not two."""
    parts = [(who or name, *_by_question(whole)) for who, whole in found]
    ends = {(who, _text(turns[-1])) for who, _, turns in parts if turns}
    result = []
    for who, ending_of, turns in parts:
        for turn in turns:
            key = who, _text(turn)
            if turn is not turns[-1] and key in ends:
                continue
            if turn is not turns[-1]:
                ends.add(key)
            if exchanges := list(_exchanges(turn, ending_of)):
                result.append(Seen(who, exchanges, rebuilt=NAME, conversation=turn))
    return runs(result)


def _by_question(
    whole: Sequence[Any],
) -> tuple[dict[int, str | None], list[list[Message]]]:
    """How the replies ended, by their places, and the conversation up to the end of
    each question."""
    messages = [as_openai(each) for each in whole]
    endings = {place: finish_reason(each) for place, each in enumerate(whole)}
    begins = questions(messages) or [0]
    ends = [
        *(at for at in begins[1:] if messages[at - 1].get("role") in ENDS),
        len(messages),
    ]
    return endings, [messages[:end] for end in ends]


def _exchanges(
    messages: Sequence[Message], endings: dict[int, str | None]
) -> Iterator[Exchange]:
    """The model calls of the last question: each reply, and what stood before it."""
    begins = (questions(messages) or [0])[-1]
    for place, message in enumerate(messages):
        if place < begins or message.get("role") != "assistant":
            continue
        request = {"messages": list(messages[:place])}
        reply = completion(message, endings[place])
        yield Exchange(request, reply, 200, reply, 200, began=float(place))


def _text(messages: Sequence[Message]) -> str:
    return json.dumps(messages, ensure_ascii=False, sort_keys=True)
