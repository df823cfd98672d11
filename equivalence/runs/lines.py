"""Which line of an implementation is at work while it answers a question.

The lines are seen by a tracer while it runs, so they are those of the file as it is.
Its conversation is known from outside, as everywhere: from the wire and the tools.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway import Exchange, Gateway, Upstream
from equivalence.gateway.shapes import first_choice
from equivalence.language import _
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import observe
from equivalence.runs.record import Run
from equivalence.runs.redaction import NOTHING, Redaction
from equivalence.runs.steps import Execution
from equivalence.settings import Settings

MOST_MOMENTS = 20_000

Message = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """A line at work."""

    line: int
    """Its number, from 1."""
    function: str
    event: int
    """How many events had been before it."""


@dataclass(frozen=True)
class Event:
    """A reply of the model, or a result of a tool, and the conversation after it."""

    what: str
    """In words: "model call 1", "get_weather"."""
    messages: list[Message]


@dataclass
class Trace:
    """A run line by line. It begins with an event of its own: the question."""

    implementation: Implementation
    file: Path
    code: str
    events: list[Event]
    moments: list[Moment] = field(default_factory=list)
    run: Run | None = None


def trace(
    implementation: Implementation,
    question: str,
    settings: Settings,
    gateway: Gateway,
    tools: Iterable[Callable[..., Any]],
    upstream: Upstream | None = None,
    redaction: Redaction = NOTHING,
) -> Trace:
    """Let the implementation answer one question, and return which lines of its module
    were at work.

    Raises UsageError if it has no Python source, or its module cannot be loaded.
    """
    file = source_of(implementation)
    asked = [{"role": "user", "content": question}]
    found = Trace(
        implementation, file, file.read_text(encoding="utf-8"), [Event("", asked)]
    )
    watch = _Watch(found)
    with _tracing(watch.call):
        observed = observe(
            implementation,
            question,
            settings,
            gateway,
            tools,
            upstream=upstream,
            on_exchange=watch.exchange,
            on_execution=watch.execution,
            redaction=redaction,
        )
    found.run = observed.run
    for each in found.events:
        each.messages[:] = redaction.request({"messages": each.messages})["messages"]
    return found


def source_of(implementation: Implementation) -> Path:
    """Return the file of the implementation's module, which is imported. Raises
    UsageError if there is none."""
    name = implementation.name
    if not implementation.target:
        raise UsageError(
            _("{name} is no Python module, so there are no lines to follow").format(
                name=name
            )
        )
    try:
        implementation.load()
    except UsageError:
        raise
    except Exception as error:  # a user's module may do anything
        raise UsageError(
            _("cannot import {name}: {kind}: {error}").format(
                name=name, kind=type(error).__name__, error=error
            )
        ) from None
    module = sys.modules[implementation.target.partition(":")[0]]
    file = getattr(module, "__file__", None) or ""
    if not file.endswith(".py"):
        raise UsageError(
            _("{name} has no Python source, so there are no lines to follow").format(
                name=name
            )
        )
    return Path(file)


class _Watch:
    """What the tracer, the gateway and the tools report, in its order."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.file = str(trace.file)
        self.calls = 0

    def call(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Follow the lines of a function if it stands in the file."""
        code = frame.f_code
        return self.line if code.co_filename == self.file else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Write down the line that begins."""
        moments = self.trace.moments
        if event == "line" and len(moments) < MOST_MOMENTS:
            function, number = frame.f_code.co_name, frame.f_lineno
            moments.append(Moment(number, function, len(self.trace.events) - 1))
        return self.line

    def exchange(self, exchange: Exchange) -> None:
        """A model call has been answered: the client does not know it yet."""
        self.calls += 1
        messages = exchange.request.get("messages")
        choice = first_choice(exchange.reply)
        reply = choice["message"] if choice else {"role": "error", "content": None}
        if choice is None:
            reply["content"] = str(exchange.reply)
        said = [*messages, reply] if isinstance(messages, list) else [reply]
        self._event(f"model call {self.calls}", said)

    def execution(self, execution: Execution) -> None:
        """A tool has given back its result."""
        result = execution.returned
        text = execution.raised if result is None else result
        message = {"role": "tool", "name": execution.tool, "content": text}
        self._event(execution.tool, [*self.trace.events[-1].messages, message])

    def _event(self, what: str, messages: list[Any]) -> None:
        """The line at work, once more: with what has come of it."""
        self.trace.events.append(Event(what, messages))
        if moments := self.trace.moments:
            last, number = moments[-1], len(self.trace.events) - 1
            moments.append(Moment(last.line, last.function, number))


@contextmanager
def _tracing(call: Callable[[FrameType, str, Any], Any]) -> Iterator[None]:
    """Trace this thread, and those that begin meanwhile."""
    before, threads = sys.gettrace(), threading.gettrace()
    threading.settrace(call)
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(threads)
