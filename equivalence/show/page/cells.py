"""A cell of the table: what one implementation did in one turn, or how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from equivalence.judge.compare import reply, request
from equivalence.runs.record import Run
from equivalence.show.page.calls import Call
from equivalence.show.page.changes import Beside, Change
from equivalence.show.page.json_lines import Block, blocks, reply_path
from equivalence.show.page.partings import Parting, turn
from equivalence.show.page.source import Snippet


@dataclass(frozen=True)
class Pane:
    """A request or a reply in full."""

    title: str
    blocks: list[Block]
    status: Any = None
    status_mark: str = ""


@dataclass
class Cell:
    """What one implementation did in one turn."""

    column: int
    number: int
    parting: Parting | None = None
    """That it parts from the measure here."""
    partings: list[Parting] = field(default_factory=list)
    """In the measure's column: who parts from it here."""
    there: bool = False
    """Whether it made this model call at all."""
    there_mark: str = ""
    ended: str = ""
    """How the run ended, where it ended before this call and another went on."""
    same: bool = False
    facts: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    said: str = ""
    calls: list[Call] = field(default_factory=list)
    answers: bool = False
    panes: list[Pane] = field(default_factory=list)
    added: list[Change] = field(default_factory=list)
    beside: Beside | None = None
    """None in the measure's column."""
    source: list[Snippet] = field(default_factory=list)


@dataclass
class End:
    """How one run ended, and under what it ran."""

    column: int
    run: Run
    meaning: str
    advice: str
    parting: Parting | None
    partings: list[Parting]
    same: bool
    status_mark: str
    answer_mark: str
    source: list[Snippet]


def facts(run: Run, row: int) -> list[str]:
    """Return what there is to say of a model call beside its content."""
    exchange = run.model_calls[row - 1]
    found = []
    if exchange.status != 200:
        found.append(f"HTTP {exchange['status']}")
    if exchange.attempt:
        found.append(f"{exchange['attempt']} failed before it")
    if exchange.ms is not None:
        found.append(
            f"{exchange['ms']:.0f} ms"
            if exchange.ms >= 10
            else f"{exchange['ms']:.1f} ms"
        )
    return found


def panes(exchange: dict[str, Any], sides: Sequence[Parting]) -> Iterator[Pane]:
    """Yield the request and the reply in full, marked where a run parts there."""
    asked = [p.path for p in sides if p.divergence.part == "request"]
    yield Pane("Request", blocks(exchange.request, asked))
    told = [p.path for p in sides if p.divergence.part == "reply"]
    status = [path for path in told if path == "$.status"]
    paths = [reply_path(path, exchange) for path in told if path not in status]
    yield Pane(
        "Reply",
        blocks(exchange.reply, paths),
        exchange.status,
        "".join(status[:1]),
    )
    if exchange.repairs:
        yield Pane("Reply before repair", blocks(exchange.raw_reply))


def same(measure: Run, run: Run, row: int) -> bool:
    """Return whether two cells show the same: on a phone one stands for both."""
    left, right = measure.model_calls[row - 1], run.model_calls[row - 1]
    if request(left) != request(right) or reply(left) != reply(right):
        return False
    if left.repairs != right.repairs:
        return False
    a, b = (
        [
            (s.tool, s.arguments, s.result, s.ungrounded)
            for s in each.steps
            if turn(each, s) == row
        ]
        for each in (measure, run)
    )
    return a == b
