"""Run one implementation and write down what it did, watching from outside.

There are two seams only: the wire, which the gateway records, and the tools, which are
wrapped here. The implementation under observation knows of neither.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from uuid import uuid4

from equivalence.errors import UsageError
from equivalence.gateway import Exchange, Gateway, Kept, Upstream
from equivalence.gateway.upstreams import GATEWAY_ERROR
from equivalence.runs.agents import Asking
from equivalence.runs.grounding import mark
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Run
from equivalence.runs.redaction import NOTHING, Redaction
from equivalence.runs.steps import (
    Execution,
    answer,
    as_messages,
    status,
    steps,
    unread,
    warnings,
)
from equivalence.runs.watched import OfferedTools, ToolLog, tool_name, words
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
class Observed:
    """The run record, and what a follow-up question goes on from."""

    run: Run
    conversation: list[Any]
    """As the implementation returned it; as it was before, where it failed."""
    kept: Kept
    """What the server wants back."""
    thread_id: str
    """What an agent that keeps conversations itself knows this one by."""


def observe(
    implementation: Implementation,
    question: str,
    settings: Settings,
    gateway: Gateway,
    tools: Iterable[Any],
    *,
    upstream: Upstream | None = None,
    after: Observed | None = None,
    repeat: int = 0,
    tools_name: str = "",
    note: str = "",
    on_exchange: Callable[[Exchange], None] | None = None,
    on_execution: Callable[[Execution], None] | None = None,
    on_text: Callable[[str], None] | None = None,
    redaction: Redaction = NOTHING,
) -> Observed:
    """Let the implementation answer one question, `after` an earlier one of the same
    conversation, and return what it did. `on_text` is told each piece of the text of a
    streamed reply as it is written, from the gateway's thread. `redaction`: what is
    taken out of the record; the conversation keeps it.

    Whatever its agent, its module or its endpoint does ends in the record;
    KeyboardInterrupt passes.
    """
    run = new_run(implementation, question, settings, after=after, repeat=repeat)
    run.tools, run.note = tools_name, note
    history = after.conversation if after else []
    thread_id = after.thread_id if after else uuid4().hex
    conversation: list[Any] = []
    failure = None
    set_standing_address(gateway)
    with gateway.open_run(
        upstream,
        kept=after.kept if after else None,
        on_exchange=on_exchange,
        on_text=on_text,
        read_along=on_text is not None,
        standing=True,
    ) as wire:
        log = ToolLog(wire, settings.clock, on_execution)
        settings = settings.model_copy(update={"gateway_url": wire.url})
        offered = OfferedTools(map(log.watch, tools))
        names = [tool_name(tool) for tool in list.__iter__(offered)]
        try:
            if after is None:
                implementation.reset()
            agent = implementation.load()
            conversation = agent(
                Asking(run.question, history, settings, offered, thread_id)
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: it ends the run, not the judge
            failure = "model_error" if _from_endpoint(error) else "failed"
            run.error = one_line(error)
    if failure is None and not wire.exchanges:
        failure, run.error = "failed", NO_MODEL_CALL
    seen = log.executions if offered.taken else None
    complete(
        run,
        wire.exchanges,
        conversation,
        seen,
        failure,
        implementation,
        names if offered.taken else None,
    )
    after_it = history if failure else conversation
    return Observed(redaction.run(run), after_it, wire.kept, thread_id)


NO_MODEL_CALL = (
    "no model call came through the gateway: the agent must take its base URL from"
    " settings.gateway_url, base_url or $OPENAI_BASE_URL"
)


def set_standing_address(gateway: Gateway) -> None:
    """Tell it to clients that take it from there, before a module makes one."""
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        os.environ[variable] = gateway.standing_url
    os.environ.setdefault("OPENAI_API_KEY", "held-by-the-gateway")


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
    run.steps = [
        step
        for step in steps(run, messages, executions)
        # The call by which an agent answers is its answer: nobody runs it.
        if not (final and step.tool == final and step.result is None)
    ]
    run.status = status(run, failure, messages, final_tool=final, offered=offered)
    run.answer = answer(run, messages, final)
    run.unread = unread(run, messages)
    run.warnings = warnings(run)
    mark(run)


def one_line(error: BaseException) -> str:
    """Return the error as one line: the endpoint's own words where there are any, those
    of the gateway alone where no endpoint answered or its answer was no reply."""
    body = getattr(error, "body", None)
    told = body.get("message") if isinstance(body, dict) else None
    if _from_endpoint(error):
        if told and isinstance(body, dict) and body.get("type") == GATEWAY_ERROR:
            return " ".join(str(told).split())
        code = getattr(error, "status_code", None)
        head = f"the endpoint answered {code}: " if code else "the endpoint failed: "
        return head + " ".join(str(told or error).split())
    if isinstance(error, UsageError):
        return " ".join(str(error).split())
    if isinstance(error, SystemExit):
        return f"it ended the program: SystemExit({error.code!r})"
    return " ".join(f"{type(error).__name__}: {words(error)}".split())


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
