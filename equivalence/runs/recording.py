"""Recording what passes through a gateway of which nobody opens runs.

A run is a conversation then: a request that continues an earlier one belongs to its
run. It ends when nothing has come for a while, or with the recorder. So any program can
be recorded by changing its base URL.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
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


@dataclass
class _Conversation:
    """What has come of one conversation so far."""

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
        self._open: list[_Conversation] = []
        self._lock = threading.Lock()

    def add(self, exchange: Exchange) -> None:
        """Take in an exchange that is complete; write what has been idle too long."""
        now = self._clock()
        with self._lock:
            self._write_idle(now)
            begun = now - (exchange.ms or 0.0) / 1000
            latest = [c for c in reversed(self._open) if c.is_continued_by(exchange)]
            if latest:
                conversation = latest[0]
            else:
                recorded = datetime.now().astimezone().isoformat(timespec="seconds")
                conversation = _Conversation(begun, now, recorded)
                self._open.append(conversation)
            exchange.began = round((begun - conversation.began) * 1000, 1)
            conversation.exchanges.append(exchange)
            conversation.latest = now

    def end(self) -> None:
        """Write every conversation that is open."""
        with self._lock:
            self._write_idle(float("inf"))

    def _write_idle(self, now: float) -> None:
        for conversation in list(self._open):
            if now - conversation.latest >= self.idle:
                self._open.remove(conversation)
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


def _messages(exchange: Exchange) -> list[Any]:
    messages = exchange.request.get("messages")
    return messages if isinstance(messages, list) else []
