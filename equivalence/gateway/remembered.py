"""The responses given in a conversation, for a client that names one later."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_REMEMBERED = 1000
"""Responses that a client can name later; the oldest go first."""
HEAVIEST_REMEMBERED = 16 * 1024 * 1024
"""Characters of JSON that they and their conversations may have; the newest stays."""


@dataclass(frozen=True)
class _Given:
    """A response, and the conversation that it ends, as chat messages without the
    instructions, which hold for one request alone."""

    response: Mapping[str, Any]
    messages: list[Any]
    weight: int


@dataclass
class Remembered:
    """The responses given so far that the client did not ask to forget."""

    _given: OrderedDict[str, _Given] = field(default_factory=OrderedDict)
    _weight: int = 0

    def __len__(self) -> int:
        return len(self._given)

    def add(self, response: Mapping[str, Any], messages: list[Any]) -> None:
        """Remember a response and the conversation that it ends."""
        weight = len(json.dumps([response, messages], ensure_ascii=False))
        self._given[response["id"]] = _Given(dict(response), messages, weight)
        self._weight += weight
        while len(self._given) > 1 and (
            len(self._given) > MOST_REMEMBERED or self._weight > HEAVIEST_REMEMBERED
        ):
            self.forget(next(iter(self._given)))

    def messages(self, identifier: Any) -> list[Any] | None:
        """Return the conversation that ends in the response; None if it is unknown."""
        given = self._at(identifier)
        return given.messages if given else None

    def response(self, identifier: Any) -> Mapping[str, Any] | None:
        """Return the response; None if it is unknown."""
        given = self._at(identifier)
        return given.response if given else None

    def forget(self, identifier: str) -> None:
        """Forget the response, which is known."""
        self._weight -= self._given.pop(identifier).weight

    def _at(self, identifier: Any) -> _Given | None:
        return self._given.get(identifier) if isinstance(identifier, str) else None
