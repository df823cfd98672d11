"""The matrix for people: where each implementation parts from the baseline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivalence.judge.compare import Divergence, Judge
from equivalence.language import N_, _
from equivalence.matrix.scenarios import Scenario
from equivalence.matrix.survival import OUTCOMES, Outcome
from equivalence.matrix.table import Cell
from equivalence.phrases import translated
from equivalence.runs.record import Run
from equivalence.runs.words import short
from equivalence.show.terminal import side_by_side, verdict

KINDS = (
    *(N_("arguments"), N_("calls as text"), N_("content"), N_("conversation")),
    *(N_("finish reasons"), N_("happy path"), N_("ids"), N_("limits"), N_("order")),
    *(N_("reasoning"), N_("streaming"), N_("tool errors"), N_("tool names")),
    N_("tool results"),
)
"""The kinds of our own scenarios, in words."""


def matrix_table(out: Console, cells: Sequence[Cell], group: str) -> None:
    """Draw one group of the matrix: scenarios down, implementations across."""
    cells = [cell for cell in cells if cell.group == group]
    names = list(dict.fromkeys(cell.implementation for cell in cells))
    table = Table(
        title=_("{group}: compared with {baseline}").format(
            group=group, baseline=names[0]
        ),
        title_justify="left",
    )
    table.add_column(_("scenario"), overflow="fold")
    for name in names[1:]:
        table.add_column(escape(name), overflow="fold")
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.scenario, {})[cell.implementation] = cell
    for scenario, row in rows.items():
        table.add_row(scenario, *(_cell_text(row[name]) for name in names[1:]))
    out.print(table)


def _cell_text(cell: Cell) -> Text:
    if place := cell.divergence:
        return Text(f"{place.cause} {place.model_call} {place.path}", "red")
    return Text(
        _("equal") if cell.same_bytes else _("equal, not the same bytes"), "green"
    )


def matrix_tally(
    out: Console, counts: Mapping[tuple[str, str], tuple[int, int]]
) -> None:
    """Print in how many scenarios each implementation was equal to its baseline."""
    baselines: dict[str, str] = {}
    for (group, name), (equal, total) in counts.items():
        baseline = baselines.setdefault(group, name)
        if name != baseline:
            out.print(
                Text(
                    _("{group}: {baseline} vs {name}: {equal}/{total} equal").format(
                        group=group,
                        baseline=baseline,
                        name=name,
                        equal=equal,
                        total=total,
                    )
                )
            )


def survival(out: Console, outcomes: Sequence[Outcome], *, raw: bool) -> None:
    """Draw, for each agent, a table by kind of scenario, then each scenario that it did
    not survive, with the first thing that was not right."""
    for name in dict.fromkeys(each.implementation for each in outcomes):
        mine = [each for each in outcomes if each.implementation == name]
        where = _("alone") if raw else _("behind the gateway's repairs (alone: --raw)")
        table = Table(title=escape(f"{name}, {where}"), title_justify="left")
        table.add_column(_("kind"))
        for outcome in OUTCOMES:
            table.add_column(_(outcome), justify="right")
        for kind in dict.fromkeys(each.scenario.kind for each in mine):
            of_kind = [each for each in mine if each.scenario.kind == kind]
            table.add_row(
                _(kind.replace("_", " ")), *_counted(of_kind), end_section=False
            )
        table.add_section()
        table.add_row(_("all"), *_counted(mine), style="bold")
        out.print(table)
        for each in mine:
            if each.outcome == "not survived":
                out.print(Text(f"{each.scenario.name}: {each.scenario.why}", "red"))
                out.print(Text(f"  {short(translated(each.reasons[0]))}"))
        for reason, count in Counter(
            each.reasons[0] for each in mine if each.outcome == "not applicable"
        ).items():
            out.print(
                Text(
                    _("not applicable, {count}: {reason}").format(
                        count=count, reason=translated(reason)
                    ),
                    "dim",
                )
            )


def _counted(outcomes: Sequence[Outcome]) -> list[str]:
    counts = Counter(each.outcome for each in outcomes)
    return [str(counts[outcome] or "") for outcome in OUTCOMES]


def scenario_in_full(out: Console, scenario: Scenario, cells: Sequence[Cell]) -> None:
    """Print one scenario: why it is there, the traces, and the first differing request
    or reply of each pair, side by side with the differing line marked."""
    out.print(Text(f"{scenario.name}: {scenario.why}", "bold"))
    for group in dict.fromkeys(cell.group for cell in cells):
        members = [cell for cell in cells if cell.group == group]
        for index in range(len(members[0].runs)):
            side_by_side(out, [cell.runs[index] for cell in members])
        judge, baseline = Judge(), members[0]
        for cell in members[1:]:
            for left, right in zip(baseline.runs, cell.runs, strict=True):
                found = judge(left, right)
                verdict(out, found)
                if found.divergence:
                    _exchanges_side_by_side(out, left, right, found.divergence)


def _exchanges_side_by_side(
    out: Console, left: Run, right: Run, place: Divergence
) -> None:
    part = "reply" if place.part == "reply" else "request"
    request = _("{name}: request {number}")
    table = Table(expand=True)
    columns = []
    for run in (left, right):
        words = _("{name}: reply {number}") if part == "reply" else request
        title = words.format(name=run.implementation, number=place.model_call)
        table.add_column(title, ratio=1)
        calls = run.model_calls
        found = len(calls) >= place.model_call
        sent = getattr(calls[place.model_call - 1], part) if found else {}
        plain = {**sent} if isinstance(sent, dict) else {}
        plain.pop("tools", None)  # the same long text in each; shown where it differs
        columns.append(json.dumps(plain, ensure_ascii=False, indent=1).splitlines())
    for a, b in zip_longest(*columns, fillvalue=""):
        style = "" if a == b else "bold red"
        table.add_row(Text(a, style), Text(b, style))
    out.print(table)
