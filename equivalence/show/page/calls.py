"""The tool calls of one turn, with what came of them and what nobody had said."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from equivalence.runs.grounding import note
from equivalence.runs.record import Run, Step
from equivalence.show.page.partings import turn
from equivalence.show.page.values import text


@dataclass(frozen=True)
class Piece:
    """A part of an argument's value."""

    text: str
    ungrounded: bool = False
    """That it is a number which nobody had said when the call was made."""


@dataclass(frozen=True)
class Argument:
    """One argument of a call, and what is known of its ungrounded numbers."""

    name: str
    pieces: list[Piece]
    notes: list[str]


@dataclass(frozen=True)
class Call:
    """One tool call and what came of it; the marks are paths of a divergence."""

    tool: str
    arguments: list[Argument]
    sign: str
    result: str
    failed: bool
    note: str
    mark: str = ""
    result_mark: str = ""
    note_mark: str = ""


def calls_of(run: Run, row: int, marks: dict[int, str]) -> Iterator[Call]:
    """Yield the calls of one turn; `marks` has the paths of divergences by step."""
    steps = [(i, step) for i, step in enumerate(run.steps) if turn(run, step) == row]
    orders = [step.order for _, step in steps if step.order is not None]
    for index, step in steps:
        mark = marks.get(index, "")
        field = mark.partition("].")[2].partition(".")[0]
        note = ""
        if step.order is None and step.ok is False:
            note = "not executed"
        elif step.order is not None and (orders != sorted(orders) or field == "order"):
            note = f"executed as number {step.order + 1}"
        elif mark and not field:
            note = "executed"
        result = step.result
        yield Call(
            tool=step.tool,
            arguments=_arguments(step),
            sign="✗" if step.ok is False else "→",
            result="nothing was seen of its result" if result is None else result,
            failed=step.ok is False,
            note=note,
            mark=mark if field in ("tool", "arguments") else "",
            result_mark=mark if field == "result" else "",
            note_mark=mark if field in ("", "order") else "",
        )


def _arguments(step: Step) -> list[Argument]:
    if not isinstance(step.arguments, dict):
        return [_argument("", step.arguments_text, step)]
    return [_argument(k, text(value), step) for k, value in step.arguments.items()]


def _argument(name: str, value: str, step: Step) -> Argument:
    found = [each for each in step.ungrounded if each["argument"] == name]
    pieces = list(_pieces(value, {each["number"] for each in found}))
    return Argument(name, pieces, list(dict.fromkeys(map(note, found))))


def _pieces(value: str, numbers: set[str]) -> Iterator[Piece]:
    """The value cut where one of the numbers stands; where none is found as it was
    written, the whole value stands for it."""
    any_of = "|".join(sorted(map(re.escape, numbers), key=len, reverse=True))
    number = rf"(?<![A-Za-z_\d.])(?:{any_of})(?!\.?\d)"
    plain = unicodedata.normalize("NFKC", value)  # as grounding reads it: ３ is 3
    places = list(re.finditer(number, plain)) if numbers else []
    if len(plain) != len(value) or not places:
        yield Piece(value, ungrounded=bool(numbers))
        return
    end = 0
    for place in places:
        yield Piece(value[end : place.start()])
        yield Piece(value[place.start() : place.end()], ungrounded=True)
        end = place.end()
    yield Piece(value[end:])
