"""The memory: what of a long conversation the model gets to see.

A memory is a function from the conversation to the part that is sent. The system
message is no part of the conversation and always sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.tokens import message_tokens

Message = dict[str, Any]
Memory = Callable[[Sequence[Message]], list[Message]]


def whole(conversation: Sequence[Message]) -> list[Message]:
    """Return all of the conversation."""
    return list(conversation)


@dataclass(frozen=True)
class Window:
    """The newest messages, at most so many: a window that slides."""

    messages: int

    def __call__(self, conversation: Sequence[Message]) -> list[Message]:
        return newest(conversation, self.messages, size=len)


@dataclass(frozen=True)
class TokenBudget:
    """The newest messages, in at most so many tokens (by the estimate of tokens.py)."""

    tokens: int

    def __call__(self, conversation: Sequence[Message]) -> list[Message]:
        return newest(conversation, self.tokens, size=message_tokens)


def newest(
    conversation: Sequence[Message],
    limit: int,
    size: Callable[[Sequence[Message]], int],
) -> list[Message]:
    """Return the newest messages up to the limit, a call never without its results.
    The last question and what came last are there even where they alone are more."""
    rounds = _rounds(conversation)
    questions = [i for i, part in enumerate(rounds) if part[0]["role"] == "user"]
    kept = {*questions[-1:], *range(len(rounds))[-1:]}
    room = limit - sum(size(rounds[index]) for index in kept)
    for index in reversed(range(len(rounds))):
        if index in kept:
            continue
        room -= size(rounds[index])
        if room < 0:
            break
        kept.add(index)
    return [message for index in sorted(kept) for message in rounds[index]]


def _rounds(conversation: Sequence[Message]) -> list[list[Message]]:
    """The conversation in parts that stay together: a message, calls with results."""
    rounds: list[list[Message]] = []
    for message in conversation:
        if message["role"] == "tool" and rounds:
            rounds[-1].append(message)
        else:
            rounds.append([message])
    return rounds
