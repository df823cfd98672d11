"""Run one implementation and write down what it did, watching from outside.

There are two seams only: the wire, which the gateway records, and the tools, which are
wrapped here. The implementation under observation knows of neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from equivalence.clock import clock
from equivalence.errors import UsageError
from equivalence.gateway import Exchange, Gateway, Kept, OpenRun, Upstream
from equivalence.runs.call import call_id
from equivalence.runs.grounding import mark
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Run
from equivalence.runs.steps import (
    Execution,
    answer,
    as_messages,
    status,
    steps,
    unread,
    warnings,
)
from equivalence.settings import Settings

PACKAGES = (
    "langgraph",
    "langgraph-prebuilt",
    "langchain",
    "langchain-core",
    "langchain-openai",
    "openai",
)


@dataclass
class ToolLog:
    """The executions of one run."""

    run: OpenRun
    clock: datetime | None = None
    """What time the tools see, whoever runs them."""
    on_execution: Callable[[Execution], None] | None = None
    executions: list[Execution] = field(default_factory=list)

    def watch(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        """Return the tool, with each execution written down; else it is the same."""

        @functools.wraps(tool)
        def watched(*args: Any, **kwargs: Any) -> Any:
            execution = Execution(
                tool.__name__,
                kwargs,
                turn=self.run.answered,
                began=self.run.milliseconds(),
                worker=_worker(),
                call_id=call_id.get(),
            )
            fixed = clock.set(self.clock)
            try:
                result = tool(*args, **kwargs)
            except BaseException as error:
                if _is_control_flow(error):
                    raise
                execution.raised = f"{type(error).__name__}: {_words(error)}"
                self._ended(execution)
                raise
            finally:
                clock.reset(fixed)
            execution.returned = _text(result)
            execution.ok = not getattr(type(result), "is_error", False)
            self._ended(execution)
            return result

        return watched

    def _ended(self, execution: Execution) -> None:
        execution.ended = self.run.milliseconds()
        if self.run.closed:
            return
        self.executions.append(execution)
        if self.on_execution:
            with contextlib.suppress(Exception):  # watching must not fail a tool
                self.on_execution(execution)


class OfferedTools(list[Callable[..., Any]]):
    """The tools for an agent; `taken` tells whether it has looked at them. One that
    brings its own is watched on the wire alone."""

    taken = False

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        self.taken = True
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        self.taken = True
        return super().__getitem__(index)


@dataclass
class Observed:
    """The run record, and what a follow-up question goes on from."""

    run: Run
    conversation: list[Any]
    """As the implementation returned it; as it was before, where it failed."""
    kept: Kept
    """What the server wants back."""


def observe(
    implementation: Implementation,
    question: str,
    settings: Settings,
    gateway: Gateway,
    tools: Iterable[Callable[..., Any]],
    *,
    upstream: Upstream | None = None,
    after: Observed | None = None,
    repeat: int = 0,
    tools_name: str = "",
    note: str = "",
    on_exchange: Callable[[Exchange], None] | None = None,
    on_execution: Callable[[Execution], None] | None = None,
) -> Observed:
    """Let the implementation answer one question, `after` an earlier one of the same
    conversation, and return what it did.

    Whatever its agent, its module or its endpoint does ends in the record;
    KeyboardInterrupt passes.
    """
    run = new_run(implementation, question, settings, after=after, repeat=repeat)
    run.tools, run.note = tools_name, note
    history = after.conversation if after else []
    conversation: list[Any] = []
    failure = None
    with gateway.open_run(
        upstream, kept=after.kept if after else None, on_exchange=on_exchange
    ) as wire:
        log = ToolLog(wire, settings.clock, on_execution)
        settings = settings.model_copy(update={"gateway_url": wire.url})
        offered = OfferedTools(log.watch(tool) for tool in tools)
        try:
            agent = implementation.load()
            conversation = checked_conversation(
                agent(run.question, history=history, settings=settings, tools=offered)
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: it ends the run, not the judge
            failure = "model_error" if _from_endpoint(error) else "failed"
            run.error = one_line(error)
    executions = log.executions if offered.taken else None
    names = [tool.__name__ for tool in offered] if offered.taken else None
    complete(
        run, wire.exchanges, conversation, executions, failure, implementation, names
    )
    return Observed(run, history if failure else conversation, wire.kept)


def new_run(
    implementation: Implementation,
    question: str,
    settings: Settings,
    *,
    after: Observed | None = None,
    repeat: int = 0,
) -> Run:
    """Return the record of a run that begins now."""
    return Run(
        implementation=implementation.name,
        question=question.encode("utf-8", "replace").decode(),  # for half characters
        history=[*after.run.history, after.run.question] if after else [],
        repeat=repeat,
        protocol=implementation.protocol,
        settings=settings.recorded(),
        versions={} if implementation.command else installed_versions(),
        recorded=datetime.now().astimezone().isoformat(timespec="seconds"),
    )


def checked_conversation(returned: Any) -> list[Any]:
    """Return what an agent returned if it is a conversation. Raises UsageError if it is
    none, saying what it is."""
    if not isinstance(returned, list | tuple):
        raise UsageError(f"it returned {_a(returned)}, not a list of messages")
    for number, message in enumerate(returned):
        known = isinstance(message, dict) and "role" in message
        if not known and not hasattr(message, "content"):
            raise UsageError(
                f"it returned {_a(message)} at place {number} of its list, which is no"
                " message: neither a dict with a role nor a message of LangChain's"
            )
    return list(returned)


def complete(
    run: Run,
    exchanges: Sequence[Exchange],
    conversation: Sequence[Any],
    executions: Sequence[Execution] | None,
    failure: str | None,
    implementation: Implementation,
    offered: Sequence[str] | None,
) -> None:
    """Fill the record from what was seen; `executions` and `offered` None: the tools
    were not watched."""
    run.exchanges = list(exchanges)
    messages = as_messages(conversation)
    final = implementation.final_tool
    run.steps = steps(run, messages, executions)
    run.status = status(run, failure, messages, final_tool=final, offered=offered)
    run.answer = answer(run, messages, final)
    run.unread = unread(run, messages)
    run.warnings = warnings(run)
    mark(run)


def one_line(error: BaseException) -> str:
    """Return the error as one line: the endpoint's own words where there are any."""
    body = getattr(error, "body", None)
    words = body.get("message") if isinstance(body, dict) else None
    if _from_endpoint(error):
        code = getattr(error, "status_code", None)
        head = f"the endpoint answered {code}: " if code else "the endpoint failed: "
        return head + " ".join(str(words or error).split())
    if isinstance(error, UsageError):
        return " ".join(str(error).split())
    if isinstance(error, SystemExit):
        return f"it ended the program: SystemExit({error.code!r})"
    return " ".join(f"{type(error).__name__}: {_words(error)}".split())


@functools.cache
def installed_versions() -> dict[str, str]:
    """Return the versions of the packages whose change can change a run."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _from_endpoint(error: BaseException) -> bool:
    """Whether it is the openai client's own exception, in any of its versions."""
    openai = sys.modules.get("openai")
    return openai is not None and isinstance(error, openai.OpenAIError)


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


def _text(result: Any) -> str | None:
    """What a tool returned as text: itself, or the JSON of a plain value; None for what
    has no text that would be the same in another process."""
    if isinstance(result, str):
        return str.__str__(result)
    try:
        return json.dumps(result, ensure_ascii=False)
    except Exception:  # a value of the user's may raise at anything
        return None


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception can fail at being shown
        return ""


def _a(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
