"""What a request has more, less or otherwise: what this layer added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from equivalence.gateway.canonical import differences
from equivalence.judge.compare import RULES, request
from equivalence.runs.record import Run
from equivalence.runs.steps import text_of
from equivalence.show.page.tool_lists import tool_names, tools_of
from equivalence.show.page.values import Part, contrast, short, text

MOST_DIFFERENCES = 6


@dataclass(frozen=True)
class Change:
    """One thing that a request has more, less or otherwise than another."""

    sign: str
    label: str
    text: str
    was: Part | None = None
    now: Part | None = None


@dataclass(frozen=True)
class Beside:
    """A request beside the measure's of the same number."""

    changes: list[Change]
    more: int
    """How many further ones there are."""
    note: str


def added(
    earlier: dict[str, Any] | None, exchange: dict[str, Any], run: Run
) -> Iterator[Change]:
    """Yield what the request has that the one before it had not; of the first request,
    what the implementation put around the question."""
    now = request(exchange)
    before = request(earlier) if earlier else {}
    for name in dict.fromkeys([*before, *now]):
        if name != "messages" and (name not in before or name not in now):
            sign = "+" if name in now else "−"
            yield Change(sign, name, _field(name, now.get(name, before.get(name))))
        elif name != "messages" and list(differences(before[name], now[name])):
            was, is_now = contrast(before[name], now[name])
            yield Change("≠", name, "", was, is_now)
    old, new = (each.get("messages") or [] for each in (before, now))
    if not (isinstance(old, list) and isinstance(new, list)):
        yield Change("≠", "messages", short(new))
        return
    kept = 0
    for a, b in zip(old, new, strict=False):
        if list(differences(a, b)):
            break
        kept += 1
    for message in old[kept:]:
        yield Change("−", *_message(message, run, first=False))
    for message in new[kept:]:
        yield Change("+", *_message(message, run, first=earlier is None))


def beside(measure: Run, name: str, run: Run, row: int) -> Beside:
    """Return a request of the run beside the measure's; `name` heads the measure."""
    measures = measure.model_calls
    if row > len(measures):
        return Beside([], 0, f"{name} made no model call {row}.")
    sent = request(run.model_calls[row - 1])
    found = differences(request(measures[row - 1]), sent)
    changes = [
        Change("≠", path, "", *contrast(left, right))
        for path, left, right in islice(found, MOST_DIFFERENCES)
    ]
    note = "" if changes else f"The same request as {name}'s."
    if run.protocol != measure.protocol:
        note = RULES["protocol"]
    return Beside(changes, sum(1 for _ in found), note)


def _field(name: str, value: Any) -> str:
    tools = tools_of({"tools": value}) if name == "tools" else ()
    return ", ".join(tool_names(tools)) if tools else short(value)


def _message(message: Any, run: Run, *, first: bool) -> tuple[str, str]:
    """A message as label and text in one line."""
    if not isinstance(message, dict):
        return "message", short(message)
    label, content = str(message.get("role")), text_of(message.get("content"))
    if first and label == "user":
        label = "the question" if content == run.question else "earlier question"
    calls = message.get("tool_calls")
    words = [content] if content else []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            words.append(f"{function.get('name')}({_call_text(function)})")
    return label, short(" ".join(words))


def _call_text(function: dict[str, Any]) -> str:
    arguments = function.get("arguments")
    if not isinstance(arguments, dict):
        return short(arguments)
    return ", ".join(f"{name}={text(value)}" for name, value in arguments.items())
