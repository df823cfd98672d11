"""From model calls and tool executions, as a trace has them, to runs.

A run is the model calls that answer one question: those whose conversation is the same
up to their last question, each continuing the one before. A request repeated after a
failure is another attempt; repeated after a reply, it begins another run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from equivalence.gateway.exchange import Exchange
from equivalence.gateway.shapes import first_choice
from equivalence.runs.record import Asked, Run
from equivalence.runs.steps import (
    Execution,
    answer,
    status,
    steps,
    text_of,
    tool_calls,
    unread,
    warnings,
)
from equivalence.traces.messages import Message


@dataclass
class Seen:
    """What a trace holds of one run. Times are milliseconds of one clock."""

    name: str
    """Of the implementation."""
    exchanges: list[Exchange]
    executions: list[Execution] = field(default_factory=list)
    rebuilt: str = ""
    """The format, where it does not keep requests as they were sent."""
    conversation: list[Message] = field(default_factory=list)
    """All messages, where the trace has those after the last reply."""
    opening: list[Message] = field(default_factory=list)
    """What was said before the first reply, where it does not stand in the first
    request."""
    status: str = ""
    """How the run ended, where the trace says so in our words."""
    error: str | None = None
    began: float | None = None
    """When the run began; None: with its first model call."""
    dated: bool = False
    """Whether the clock's zero is 1970."""


def together(
    name: str,
    exchanges: Iterable[Exchange],
    executions: Sequence[Execution] = (),
    rebuilt: str = "",
    *,
    dated: bool = False,
) -> list[Seen]:
    """Return the model calls of a trace by the runs that they belong to. They come in
    the order in which they began."""
    runs: list[Seen] = []
    open_ones: dict[str, list[Seen]] = {}
    for exchange in exchanges:
        messages = said(exchange)
        last = questions(messages)[-1:]
        head = json.dumps(messages[: last[0] + 1 if last else None], sort_keys=True)
        same = open_ones.setdefault(head, [])
        for seen in reversed(same):
            before = seen.exchanges[-1]
            earlier = said(before)
            failed = before.status != 200
            if failed and before.request == exchange.request:
                exchange.attempt = before.attempt + 1
            elif not (
                len(earlier) < len(messages) and messages[: len(earlier)] == earlier
            ):
                continue
            seen.exchanges.append(exchange)
            break
        else:
            seen = Seen(name, [exchange], rebuilt=rebuilt, dated=dated)
            same.append(seen)
            runs.append(seen)
    for execution in executions:
        for seen in runs:
            calls = [call for e in seen.exchanges for call in tool_calls(e.reply)]
            ids = [call["id"] for call in calls]
            names = [call["name"] for call in calls]
            if execution.call_id in ids or (
                execution.call_id is None
                and execution.tool in names
                and execution.began >= seen.exchanges[0].began
                and (len(runs) == 1 or execution.ended <= seen.exchanges[-1].ended)
            ):
                seen.executions.append(execution)
                break
    return runs


def said(exchange: Exchange) -> list[Message]:
    """Return the messages of the request."""
    found = exchange.request.get("messages")
    return [each for each in found if isinstance(each, dict)] if found else []


def questions(messages: Sequence[Message]) -> list[int]:
    """Return the places of the questions: what a user says, unless it stands where a
    tool's result does."""
    found = []
    for place, message in enumerate(messages):
        if message.get("role") != "user" or observation(message):
            continue
        before = messages[place - 1] if place else {}
        # after a result, a picture is the tool's; a text is a user who goes on
        shown = before.get("role") == "tool" and not isinstance(
            message.get("content"), str
        )
        if not shown and not before.get("tool_calls"):
            found.append(place)
    return found


def observation(message: Message) -> bool:
    """Tell whether it is a tool's result as text-ReAct agents write it."""
    text = text_of(message.get("content")).lstrip()
    return message.get("role") == "user" and text.startswith("Observation")


def runs(found: Iterable[Seen]) -> list[Run]:
    """Return the runs; those that ask the same are numbered as repeats."""
    asked: dict[Asked, int] = {}
    result = []
    for seen in found:
        run = to_run(seen)
        run.repeat = asked.get(run.asked, 0)
        asked[replace(run.asked, repeat=0)] = run.repeat + 1
        result.append(run)
    return result


def to_run(seen: Seen) -> Run:
    """Return the run."""
    opening = seen.opening or said(seen.exchanges[0])
    places = questions(opening)
    texts = [text_of(opening[place].get("content")) for place in places]
    *history, question = texts or [""]
    in_text = any(observation(m) for e in seen.exchanges for m in said(e))
    began = seen.exchanges[0].began if seen.began is None else seen.began
    run = Run(
        seen.name,
        question,
        history,
        protocol="text" if in_text else "tool_calls",
        settings=_settings(seen.exchanges[0].request),
        rebuilt=seen.rebuilt,
        error=seen.error or _endpoints_error(seen.exchanges[-1]),
    )
    if seen.dated:
        run.recorded = datetime.fromtimestamp(began / 1000, UTC).isoformat()
    run.exchanges = [
        replace(each, began=round(each.began - began, 3)) for each in seen.exchanges
    ]
    executions = [_placed(each, began, seen.exchanges) for each in seen.executions]
    run.steps = steps(run, seen.conversation, executions or None)
    worked = {execution.tool for execution in executions}
    if any(s.result is not None and s.tool not in worked for s in run.steps):
        # some tools have no spans: of no call is known whether it was executed
        run.steps = steps(run, seen.conversation, None)
    failure = "failed" if seen.error else None
    run.status = seen.status or status(run, failure, seen.conversation)
    run.answer = answer(run, seen.conversation)
    run.unread = unread(run, seen.conversation)
    run.warnings = warnings(run)
    return run


def _placed(
    execution: Execution, began: float, exchanges: Sequence[Exchange]
) -> Execution:
    """The execution with its model call, its times counted from the run's begin."""
    turn = sum(exchange.ended <= execution.began for exchange in exchanges)
    return replace(
        execution,
        turn=max(turn, 1),
        began=execution.began - began,
        ended=execution.ended - began,
    )


def _settings(request: dict[str, Any]) -> dict[str, Any]:
    """What of a run's settings stands in its requests."""
    names = ("model", "temperature", "seed", "stream", "max_tokens")
    found = {name: request[name] for name in names if request.get(name) is not None}
    if (limit := request.get("max_completion_tokens")) is not None:
        found |= {"max_tokens": limit, "max_tokens_field": "max_completion_tokens"}
    return found


def _endpoints_error(last: Exchange) -> str | None:
    """What the endpoint said, where it failed."""
    if last.status == 200 and first_choice(last.reply):
        return None
    if last.status is None:
        return "the endpoint failed: no reply"
    body = last.reply.get("error") if isinstance(last.reply, dict) else last.reply
    told = body.get("message") if isinstance(body, dict) else body
    return f"the endpoint answered {last.status}: {' '.join(str(told).split())}"
