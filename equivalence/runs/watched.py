"""Tools as people have them, watched: plain and async functions, LangChain tools."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from equivalence.clock import clock
from equivalence.errors import UsageError
from equivalence.gateway import OpenRun
from equivalence.language import _
from equivalence.runs.call import call_id
from equivalence.runs.implementation import load
from equivalence.runs.steps import Execution


def tool_name(tool: Any) -> str:
    """Return the name by which a model calls the tool. Raises UsageError if it cannot
    be one."""
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if isinstance(name, str) and (callable(tool) or _is_langchain(tool)):
        return name
    raise UsageError(
        _(
            "{kind} is no tool: write a function with a docstring,"
            " plain or async, or a LangChain tool"
        ).format(kind=type(tool).__name__)
    )


def load_tools(target: str) -> list[Any]:
    """Return the tools of that name, none for "". Raises UsageError if they are no list
    of tools, or two have one name."""
    if not target:
        return []

    try:
        tools = load(target)
    except UsageError:
        raise
    except Exception as error:  # a user's module may do anything
        raise UsageError(
            _("cannot import {target}: {kind}: {error}").format(
                target=target, kind=type(error).__name__, error=error
            )
        ) from None
    if not isinstance(tools, list | tuple):
        raise UsageError(_("{target} is not a list of tools").format(target=target))
    try:
        names = [tool_name(tool) for tool in tools]
    except UsageError as error:
        raise UsageError(f"{target}: {error}") from None
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                _("two tools are named {name!r}: rename one").format(name=name)
            )
    return list(tools)


@dataclass
class ToolLog:
    """The executions of one run."""

    run: OpenRun
    clock: datetime | None = None
    """What time the tools see, whoever runs them."""
    on_execution: Callable[[Execution], None] | None = None
    executions: list[Execution] = field(default_factory=list)

    def watch(self, tool: Any) -> Any:
        """Return the tool, with each execution written down; else it is the same."""
        if _is_langchain(tool):
            return self._watch_langchain(tool)
        return self._watch_function(tool, tool_name(tool))

    def _watch_function(self, tool: Callable[..., Any], name: str) -> Any:
        if inspect.iscoroutinefunction(inspect.unwrap(tool)):

            @functools.wraps(tool)
            async def watched_async(*args: Any, **kwargs: Any) -> Any:
                with self._execution(name, kwargs) as execution:
                    result = await tool(*args, **kwargs)
                    _returned(execution, result)
                return result

            return watched_async

        @functools.wraps(tool)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with self._execution(name, kwargs) as execution:
                result = tool(*args, **kwargs)
                _returned(execution, result)
            return result

        return watched

    def _watch_langchain(self, tool: Any) -> Any:
        """A copy of the tool whose function, or functions, are watched."""
        changed = {
            field: self._watch_function(function, tool.name)
            for field in ("func", "coroutine")
            if (function := getattr(tool, field, None))
        }
        if not changed:
            raise UsageError(
                _(
                    "the tool {name!r} is a class of its own ({kind}): make it"
                    " of a function, with @tool or StructuredTool.from_function"
                ).format(name=tool.name, kind=type(tool).__name__)
            )
        return tool.model_copy(update=changed)

    @contextmanager
    def _execution(self, name: str, arguments: dict[str, Any]) -> Iterator[Execution]:
        execution = Execution(
            name,
            arguments,
            turn=self.run.answered,
            began=self.run.milliseconds(),
            worker=_worker(),
            call_id=call_id.get(),
        )
        fixed = clock.set(self.clock)
        try:
            yield execution
        except BaseException as error:
            if _is_control_flow(error):
                raise
            execution.raised = f"{type(error).__name__}: {words(error)}"
            self._ended(execution)
            raise
        finally:
            clock.reset(fixed)
        self._ended(execution)

    def _ended(self, execution: Execution) -> None:
        execution.ended = self.run.milliseconds()
        if self.run.closed:
            return
        self.executions.append(execution)
        if self.on_execution:
            with contextlib.suppress(Exception):  # watching must not fail a tool
                self.on_execution(execution)


class OfferedTools(list[Any]):
    """The tools for an agent; `taken` tells whether it has looked at them. One that
    brings its own is watched on the wire alone."""

    taken = False

    def __iter__(self) -> Iterator[Any]:
        self.taken = True
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        self.taken = True
        return super().__getitem__(index)


def words(error: BaseException) -> str:
    """Return the words of an exception; "" where it fails at being shown."""
    try:
        return str(error)
    except Exception:
        return ""


def _returned(execution: Execution, result: Any) -> None:
    """Write down what the tool returned. Only plain values have a text, themselves or
    their JSON: anything else would look different in another process."""
    failed = getattr(type(result), "is_error", False)
    execution.ok = not failed and not inspect.isawaitable(result)  # nobody awaited it
    if isinstance(result, str):
        execution.returned = _encodable(str.__str__(result))
        return
    try:
        execution.returned = _encodable(json.dumps(result, ensure_ascii=False))
        execution.json = True
    except Exception:  # a value of the user's may raise at anything
        execution.returned = None


def _encodable(text: str) -> str:
    """The text as a file can hold it: half characters are replaced."""
    return text.encode("utf-8", "replace").decode()


def _is_langchain(tool: Any) -> bool:
    tools = sys.modules.get("langchain_core.tools")
    return tools is not None and isinstance(tool, tools.BaseTool)


def _is_control_flow(error: BaseException) -> bool:
    """Whether it passes through a tool on its way elsewhere and tells nothing of what
    the tool did: an interrupt of a graph, which is resumed later, or a cancellation."""
    langgraph = sys.modules.get("langgraph.errors")
    bubbles = langgraph is not None and isinstance(error, langgraph.GraphBubbleUp)
    return bubbles or isinstance(
        error, KeyboardInterrupt | GeneratorExit | asyncio.CancelledError
    )


def _worker() -> tuple[Any, Any]:
    """The thread and the asyncio task of the caller: themselves, because the numbers of
    those that have ended are given out again."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread(), task
