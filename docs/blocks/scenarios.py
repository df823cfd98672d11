"""What the mechanism scenarios and the planted faults show."""

from __future__ import annotations

import functools
import sys
import warnings
from collections import Counter
from typing import Any

import cog

from blocks.page import ROOT, importable, said, table, value
from blocks.source import link

RACES = {
    "one_of_two_parallel_tools_raises": "which of two threads is first is chance",
    "one_of_two_concurrent_tools_raises": "the same, with a tool that takes longer",
    "never_side_by_side": "whether two calls meet is a matter of time",
}
"""Scenarios of which the stock agents make another thing now and then."""


@functools.cache
def stock_cells() -> dict[str, dict[str, Any]]:
    """Play every mechanism scenario in front of every stock implementation, once for
    all pages; return the cells by scenario and implementation."""
    importable()
    from equivalence.matrix.player import Player
    from equivalence.matrix.table import groups, matrix
    from equivalence.table import read_table

    stock = [group for group in groups(read_table(ROOT)) if group.name == "stock"]
    scenarios = [each for each in _scenarios().values() if each.name not in RACES]
    with warnings.catch_warnings(), Player() as player:
        warnings.simplefilter("ignore")  # what scripted replies make pydantic say
        return {
            row[0].scenario: {cell.implementation: cell for cell in row}
            for row in matrix(scenarios, stock, player)
        }


def _variants() -> list[Any]:
    """The stock implementations less the first, with which they are compared."""
    importable()
    from equivalence.table import read_table

    return list(read_table(ROOT).variants.values())[1:]


def stock_tally() -> None:
    """Write in how many scenarios each stock implementation equals the first."""
    cells = stock_cells()
    rows = []
    for each in _variants():
        columns = [row[each.name] for row in cells.values()]
        equal = sum(cell.equal for cell in columns)
        same = sum(cell.same_bytes for cell in columns)
        rows.append((f"`{each.name}`", said(each.about), equal, same, len(columns)))
    head = ("implementation", "what it is", "equal", "same bytes", "scenarios")
    table([*map(said, head)], rows)


def stock_differences() -> None:
    """Write each scenario in which a stock implementation differs from the first."""
    names = [each.name for each in _variants()]
    table(
        (said("scenario"), *(f"`{name}`" for name in names)),
        (
            (scenario, *(_stock_cell(row[name]) for name in names))
            for scenario, row in stock_cells().items()
            if not all(cell.equal for cell in row.values())
        ),
    )


def _stock_cell(cell: Any) -> str:
    if cell.equal:
        return "="
    return f"{cell.divergence.cause} {cell.divergence.model_call}"


def stock_kinds() -> None:
    """Write, for each kind of peculiarity, in how many scenarios each stock
    implementation differs from the first."""
    kinds = {name: each.kind.replace("_", " ") for name, each in _scenarios().items()}
    cells, names = stock_cells(), [each.name for each in _variants()]
    total = Counter(kinds[scenario] for scenario in cells)
    unequal = Counter(
        (kinds[scenario], name)
        for scenario, row in cells.items()
        for name in names
        if not row[name].equal
    )
    head = (
        *map(said, ("kind of peculiarity", "scenarios")),
        *map("`{}`".format, names),
    )
    table(
        head,
        (
            (said(kind), count, *(unequal[kind, name] for name in names))
            for kind, count in total.items()
        ),
    )


def races() -> None:
    """Write which scenarios are left out, and why."""
    table(
        [*map(said, ("scenario", "why"))],
        ((name, said(why)) for name, why in RACES.items()),
    )


def stock_case(scenario: str) -> None:
    """Write what the stock implementations made of one scenario: how their runs end,
    and where they part from the first, both values; those alike in one row."""
    cells = stock_cells()[scenario]
    why = said(_scenarios()[scenario].why)
    cog.outl(said("`{name}`: {why}").format(name=scenario, why=why))
    cog.outl()
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, cell in cells.items():
        rows.setdefault(_stock_outcome(cell), []).append(f"`{name}`")
    head = ("implementation", "ends", "parts from the first", "there", "here")
    said_head = [*map(said, head)]
    table(
        said_head,
        ((said(", ").join(names), *outcome) for outcome, names in rows.items()),
    )
    cog.outl()


def _stock_outcome(cell: Any) -> tuple[str, ...]:
    end = f"`{cell.runs[-1].status}`"
    if cell.equal:
        return (end, "", "", "")
    found = cell.divergence
    where = said("{cause}, model call {number}, `{path}`").format(
        cause=found.cause, number=found.model_call, path=found.path
    )
    return (end, where, *map(_told, (found.left, found.right)))


def _told(side: Any) -> str:
    """One side of a divergence: where it is what the judge says, in the language of the
    page."""
    return value(said(side) if side in ("executed", "not executed") else side)


@functools.cache
def _scenarios() -> dict[str, Any]:
    importable()
    from equivalence.matrix.scenarios import read_scenarios

    return {each.name: each for each in read_scenarios()}


def faults() -> None:
    """Write the planted faults as a table: what each does wrong, and the cause."""
    importable()
    from variants import faults

    table(
        [*map(said, ("fault", "what it does wrong", "cause"))],
        (
            (
                link("variants/faults.py", name, f"`{name}`"),
                said(" ".join((getattr(faults, name).__doc__ or "").split())),
                f"`{cause}`",
            )
            for name, cause in faults.FAULTS.items()
        ),
    )


def cannot_be_equal() -> None:
    """Write what the ladder's own implementations cannot make equal, with the reasons;
    the test that holds the list fails when an entry no longer occurs."""
    importable()
    sys.path.append(str(ROOT / "tests"))
    from test_scenarios import EXCEPTIONS

    table(
        [*map(said, ("scenario", "implementation", "why"))],
        (
            (scenario, f"`{name}`", said(reason))
            for (scenario, name), reason in EXCEPTIONS.items()
        ),
    )
