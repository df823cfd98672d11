"""Recording what passes through a gateway of which nobody opens runs.

A run is a conversation then: a request that continues an earlier one belongs to its
run. It ends when nothing has come for a while, or with the recorder. So any program can
be recorded by changing its base URL.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway import Exchange
from equivalence.runs.files import RunFile
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import complete
from equivalence.runs.record import Run
from equivalence.runs.redaction import NOTHING, Redaction
from equivalence.runs.steps import text_of
from equivalence.settings import Settings

NOT_SAID = ("system", "developer")
"""The roles of messages that many conversations have in common."""


@dataclass(eq=False)
class _Conversation:
    """What has come of one conversation so far."""

    number: int
    beginning: str
    began: float
    latest: float
    recorded: str
    """When it began, ISO 8601."""
    exchanges: list[Exchange] = field(default_factory=list)

    def is_continued_by(self, exchange: Exchange) -> bool:
        """Whether the request adds to the last one of this conversation, or is it once
        more, because the client tries again."""
        said = _messages(self.exchanges[-1])
        now = _messages(exchange)
        if len(now) == len(said):
            return bool(exchange.attempt) and now == said
        return len(now) > len(said) and now[: len(said)] == said


class Recorder:
    """Writes conversations as run records. `idle` is in seconds; `clock` tells them."""

    def __init__(
        self,
        file: RunFile,
        settings: Settings,
        *,
        name: str = "gateway",
        idle: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        redaction: Redaction = NOTHING,
    ) -> None:
        self.file = file
        self.settings = settings
        self.implementation = Implementation(name, command=f"{name} {{question}}")
        self.idle = idle
        self.errors: list[str] = []
        """Why conversations could not be written."""
        self._clock = clock
        self._redaction = redaction
        self._open: OrderedDict[int, _Conversation] = OrderedDict()
        """By number; the one that has been idle longest comes first."""
        self._numbers = count()
        self._beginnings: dict[str, list[_Conversation]] = {}
        """The open ones by their beginning, in the order in which they began."""
        self._lock = threading.Lock()

    def add(self, exchange: Exchange) -> None:
        """Take in an exchange that is complete; write what has been idle too long."""
        now = self._clock()
        with self._lock:
            self._write_idle(now)
            begun = now - (exchange.ms or 0.0) / 1000
            beginning = _beginning(_messages(exchange))
            alike = self._beginnings.get(beginning, [])
            without = self._beginnings.get("", []) if beginning else []
            conversation = next(
                (
                    c
                    for c in (*alike[::-1], *without[::-1])
                    if c.is_continued_by(exchange)
                ),
                None,
            )
            if conversation is None:
                recorded = datetime.now().astimezone().isoformat(timespec="seconds")
                number = next(self._numbers)
                conversation = _Conversation(number, beginning, begun, now, recorded)
                self._open[number] = conversation
                self._beginnings.setdefault(beginning, []).append(conversation)
            self._open.move_to_end(conversation.number)
            exchange.began = round((begun - conversation.began) * 1000, 1)
            conversation.exchanges.append(exchange)
            conversation.latest = now

    def end(self) -> None:
        """Write every conversation that is open."""
        with self._lock:
            self._write_idle(float("inf"))

    def _write_idle(self, now: float) -> None:
        """Write those that have been idle too long, in the order in which they began;
        only they are looked at, however many are open."""
        idle = []
        for conversation in self._open.values():
            if now - conversation.latest < self.idle:
                break
            idle.append(conversation)
        for conversation in sorted(idle, key=lambda each: each.number):
            del self._open[conversation.number]
            alike = self._beginnings[conversation.beginning]
            alike.remove(conversation)
            if not alike:
                del self._beginnings[conversation.beginning]
            try:
                self.file.append(self._run(conversation))
            except UsageError as error:  # of the user's redaction
                self.errors.append(str(error))

    def _run(self, conversation: _Conversation) -> Run:
        """The record: the question is the last thing that the user had said when it
        began, what he had said before is its history."""
        first = _messages(conversation.exchanges[0])
        said = [
            text_of(message.get("content"))
            for message in first
            if isinstance(message, dict) and message.get("role") == "user"
        ]
        *history, question = said or [""]
        model = conversation.exchanges[0].request.get("model")
        run = Run(
            self.implementation.name,
            question,
            history=history,
            settings={**self.settings.recorded(), "model": model},
            recorded=conversation.recorded,
        )
        complete(run, conversation.exchanges, [], None, None, self.implementation, None)
        run = self._redaction.run(run)
        while run.asked in self.file:  # asked before: another try of the same
            run.repeat += 1
        return run


def _beginning(messages: list[Any]) -> str:
    """The first text that is not the system's: a request and the one that it continues
    have it in common. Empty where there is none yet."""
    for message in messages:
        if isinstance(message, dict) and message.get("role") not in NOT_SAID:
            content = message.get("content")
            return content if isinstance(content, str) else ""
    return ""


def _messages(exchange: Exchange) -> list[Any]:
    messages = exchange.request.get("messages")
    return messages if isinstance(messages, list) else []
