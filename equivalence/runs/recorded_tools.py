"""Tools that answer from a recording: nothing is done again.

Each has the name, signature and docstring of the real one, so that its schema is the
same, and gives back what that one gave when it was recorded. A call that is not in the
recording is named, and the model gets an error.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

from equivalence.runs.record import Run, Step


class NotRecorded(Exception):
    """A tool was called as it was not when the run was recorded."""


class RecordedError(str):
    """What a tool gave back when it could not do its work."""

    is_error = True


class RecordedTools(list[Any]):
    """The tools of one recorded run, for one replay of it."""

    def __init__(self, tools: Iterable[Callable[..., Any]], run: Run) -> None:
        self.left = [
            step
            for step in run.steps
            if step.order is not None or (step.ok is None and step.result is not None)
        ]
        self.missed: list[str] = []
        super().__init__(self._recorded(tool) for tool in tools)

    def _recorded(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(inspect.unwrap(tool)):

            @functools.wraps(tool)
            async def answer_async(*args: Any, **kwargs: Any) -> Any:
                return self._answer(tool.__name__, kwargs)

            return answer_async

        @functools.wraps(tool)
        def answer(*args: Any, **kwargs: Any) -> Any:
            return self._answer(tool.__name__, kwargs)

        return answer

    def _answer(self, name: str, arguments: dict[str, Any]) -> Any:
        for step in self.left:
            if step.tool == name and _fits(step, arguments):
                self.left.remove(step)
                return _again(step)
        words = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        self.missed.append(f"{name}({words})")
        raise NotRecorded(f"the call {name}({words}) is not in the recording")


def _fits(step: Step, arguments: dict[str, Any]) -> bool:
    """Whether the step was executed with these arguments: as they were sent, or what
    validation makes of them; those that were not sent have their defaults."""
    from pydantic import TypeAdapter

    sent = step.arguments if isinstance(step.arguments, dict) else {}
    adapter = TypeAdapter(dict[str, Any])
    plain = adapter.dump_python(arguments, mode="json", fallback=str)
    return all(
        name not in sent or sent[name] == value or str(sent[name]) == str(value)
        for name, value in plain.items()
    ) and set(sent) & set(plain) == set(sent) & set(arguments)


def _again(step: Step) -> Any:
    """What the tool gave back, or raise what it raised."""
    given = step.result if step.returned is None else step.returned
    if step.ok is not False:
        with contextlib.suppress(ValueError):  # something was taken out of it
            return json.loads(given or "") if step.returned_json else given
        return given
    kind, _, words = (step.returned or "").partition(": ")
    if kind.isidentifier():
        raise _exception(kind, words)
    return RecordedError(given or "")


def _exception(kind: str, words: str) -> Exception:
    """An exception of that name and these words; of Python's own kinds also for the
    agent's `except`. Others cannot be had: a record does not decide what is imported.
    """
    base = getattr(builtins, kind, Exception)
    if not (isinstance(base, type) and issubclass(base, Exception)):
        base = Exception
    made: Any = type(kind, (base,), {"__str__": lambda self: words})
    raised: Exception = made.__new__(made, words)  # some kinds want more to begin with
    return raised
