"""The costs for people: one table, and the growth below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs.words import visible

if TYPE_CHECKING:
    from equivalence.cost.measuring import Cost

NONE = "–"


def table(out: Console, costs: Sequence[Cost]) -> None:
    """Draw the figures, one cost a row, and name what was not measured."""
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    grid.add_column("", no_wrap=True)
    for head in (
        _("ms a call"),
        _("less wire"),
        _("× openai"),
        _("1st ms"),
        _("2nd ms"),
        _("import ms"),
        _("MB"),
        _("lines"),
        _("depth"),
    ):
        grid.add_column(head, justify="right", overflow="fold")
    for cost in costs:
        memory = None if cost.memory_bytes is None else cost.memory_bytes / 1e6
        grid.add_row(
            escape(visible(cost.name)),
            _number(cost.ms_per_call, 2),
            _number(cost.ms_without_wire, 2),
            _number(cost.ratio, 2),
            _number(cost.first_ms, 0),
            _number(cost.later_ms, 0),
            _number(cost.import_ms, 0),
            _number(memory, 0),
            _number(cost.lines, 0),
            _number(cost.depth, 0),
        )
    out.print(grid)
    rounds = min((cost.rounds for cost in costs if cost.rounds), default=0)
    words = _("Medians of {rounds} rounds; a question has {calls} model calls.")
    out.print(words.format(rounds=rounds, calls=costs[0].calls))
    lengths = sorted({calls for cost in costs for calls in cost.growth})
    if lengths:
        growth = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
        growth.add_column(_("ms a call, in a run of so many model calls"))
        for calls in lengths:
            growth.add_column(str(calls), justify="right")
        growth.add_column(_("growth: calls to the power of"), justify="right")
        for cost in costs:
            values = [_number(cost.growth.get(calls), 2) for calls in lengths]
            name = escape(visible(cost.name))
            growth.add_row(name, *values, _number(cost.exponent, 2))
        out.print(growth)
    for cost in costs:
        if cost.error:
            words = _("{name} is not measured: {error}")
            out.print(
                words.format(
                    name=visible(cost.name), error=translated(visible(cost.error))
                ),
                markup=False,
            )
        for length, why in cost.left_out.items():
            words = _("{name}: a run of {calls} model calls is left out: {why}")
            out.print(
                words.format(
                    name=visible(cost.name), calls=length, why=translated(visible(why))
                ),
                markup=False,
            )


def _number(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"
