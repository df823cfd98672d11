"""Run one implementation and write down what it did, watching from outside.

There are two seams only: the wire, which the gateway records, and the tools, which are
wrapped here. The implementation under observation knows of neither.
"""

from __future__ import annotations

import contextlib
import functools
import json
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any

from config import Settings
from equivalence.grounding import mark
from equivalence.implementations import protocol
from equivalence.record import Run
from equivalence.trace import (
    Execution,
    answer,
    as_messages,
    status,
    steps,
    unread,
    warnings,
)
from gateway import Exchange, Gateway, Upstream
from tools import ToolError, clock

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
    """The executions of one run; `turn` tells how many model calls are done."""

    turn: Callable[[], int]
    clock: datetime | None = None
    """What time the tools see, whoever runs them."""
    on_execution: Callable[[Execution], None] | None = None
    executions: list[Execution] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def watch(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        """Return the tool, with each execution written down."""

        @functools.wraps(tool)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                execution = Execution(
                    self.turn(), len(self.executions), tool.__name__, kwargs
                )
                self.executions.append(execution)
            fixed = clock.set(self.clock)
            try:
                result = tool(*args, **kwargs)
                execution.result = _text(result)
                execution.ok = not isinstance(result, ToolError)
            except BaseException as error:
                execution.result = f"{type(error).__name__}: {error}"
                raise
            finally:
                clock.reset(fixed)
                if self.on_execution:
                    self.on_execution(execution)
            return result

        return watched


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
    """The run record, and the conversation itself for a follow-up question."""

    run: Run
    conversation: list[Any]
    exchanges: list[Exchange]


def observe(
    name: str,
    agent: Callable[..., Any],
    question: str,
    settings: Settings,
    gateway: Gateway,
    tools: Iterable[Callable[..., Any]],
    *,
    upstream: Upstream | None = None,
    history: Sequence[Any] = (),
    earlier: Sequence[str] = (),
    repeat: int = 0,
    on_exchange: Callable[[Exchange], None] | None = None,
    on_execution: Callable[[Execution], None] | None = None,
) -> Observed:
    """Let the agent answer one question and return what it did. An exception of the
    agent or its endpoint ends in the record; KeyboardInterrupt passes."""
    question = question.encode("utf-8", "replace").decode()  # for half characters
    log = gateway.open_run(_path_name(name), upstream, on_exchange)
    watched = ToolLog(lambda: _answered(log.exchanges), settings.clock, on_execution)
    settings = settings.model_copy(update={"gateway_url": gateway.url(log.name)})
    run = Run(
        implementation=name,
        question=question,
        repeat=repeat,
        protocol=protocol(name),
        history=list(earlier),
        settings=settings.recorded(),
        versions=installed_versions(),
    )
    offered = OfferedTools(watched.watch(tool) for tool in tools)
    conversation = list(history)
    failure = None
    try:
        conversation = agent(
            question,
            history=history,
            settings=settings,
            tools=offered,
        )
    except Exception as error:
        failure = "model_error" if _from_endpoint(error) else "failed"
        run.error = one_line(error)
    seen = watched.executions if offered.taken else None
    complete(run, log.exchanges, conversation, seen, failure)
    return Observed(run, conversation, log.exchanges)


def complete(
    run: Run,
    exchanges: Sequence[Exchange],
    conversation: Sequence[Any],
    executions: Sequence[Execution] | None,
    failure: str | None,
) -> None:
    """Fill the record from what was seen; `executions` None: tools not watched."""
    run.exchanges = [exchange_json(exchange) for exchange in exchanges]
    messages = as_messages(conversation)
    run.steps = steps(run, messages, executions)
    run.status = status(run, failure, messages)
    run.answer = answer(run, messages)
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
    return " ".join(f"{type(error).__name__}: {error}".split())


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


def _answered(exchanges: Sequence[Exchange]) -> int:
    """How many model calls have been answered: repeated attempts count once."""
    return sum(exchange.attempt == 0 for exchange in exchanges)


def _path_name(name: str) -> str:
    """The name as one segment of a URL's path."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)


def exchange_json(exchange: Exchange) -> dict[str, Any]:
    """Return the exchange as it stands in a run record."""
    found = {
        "request": exchange.request,
        "reply": exchange.reply,
        "status": exchange.status,
        "repairs": exchange.repairs,
        "ms": exchange.ms,
        "attempt": exchange.attempt,
    }
    if exchange.repairs:
        found["raw_reply"] = exchange.raw_reply
    return found


def _text(result: Any) -> str:
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(result)
