"""Drift for people: strategies and how often each was taken, agreement, verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivalence.judge.compare import tally
from equivalence.judge.drift import LEVEL, LOOKS, Drift, DriftVerdict
from equivalence.judge.fisher import smallest_p
from equivalence.language import _, counted
from equivalence.phrases import translated
from equivalence.runs.words import visible
from equivalence.show.terminal import COLOURS, apart

MOST_STRATEGIES = 100
"""So many strategies of one question are listed, the commonest; the rest are one row.
"""


def drift(out: Console, one: Drift, verdicts: Sequence[DriftVerdict]) -> None:
    """Print what was decided at one question, how often two runs agree, and the
    verdicts."""
    out.print()
    for earlier in one.history:
        out.print(
            Text(_("  earlier: {earlier}").format(earlier=visible(earlier)), "dim")
        )
    out.print(
        Text(_("Question: {question}").format(question=visible(one.question)), "bold")
    )
    table = Table(show_lines=True, expand=True)
    table.add_column(
        _("strategy: a line a turn, + in one turn"), ratio=3, overflow="fold"
    )
    for name in one.by_name:
        table.add_column(escape(visible(name)), justify="right", overflow="fold")
    decided = list(one.by_name.values())
    totals = sum((each.strategies for each in decided), Counter[str]())
    for text, _count in totals.most_common(MOST_STRATEGIES):
        row = (str(each.strategies[text] or "") for each in decided)
        table.add_row(Text(visible(text)), *row)
    if rest := [text for text, _count in totals.most_common()[MOST_STRATEGIES:]]:
        row = (str(sum(each.strategies[text] for text in rest)) for each in decided)
        table.add_row(
            _("{count:,} others, rarer than these").format(count=len(rest)), *row
        )
    table.add_row(_("runs"), *(str(each.runs) for each in decided))
    if any(each.ungrounded for each in decided):
        marked = (str(each.ungrounded) for each in decided)
        table.add_row(_("of these with a number that was made up"), *marked)
    out.print(table)
    _agreements(out, one)
    if one.failed:
        runs = counted(one.failed, "{count} run", "{count} runs")
        out.print(
            Text(
                _("  left out: {runs} that the endpoint failed").format(runs=runs),
                "yellow",
            )
        )
    for verdict in verdicts:
        _line(out, verdict)


def _agreements(out: Console, one: Drift) -> None:
    table = Table(title=_("Agreement of two runs"), title_justify="left")
    table.add_column("")
    for name in one.by_name:
        table.add_column(escape(visible(name)), justify="right", overflow="fold")
    for left in one.by_name:
        shares = (one.agreement(left, right) for right in one.by_name)
        table.add_row(escape(visible(left)), *(_share(share) for share in shares))
    out.print(table)
    out.print(Text(_("  The diagonal is the noise floor: each with itself."), "dim"))


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _line(out: Console, verdict: DriftVerdict) -> None:
    versus = _("{left} vs {right}: ").format(left=verdict.left, right=verdict.right)
    line = Text(visible(versus))
    line.append(_(verdict.verdict), COLOURS[verdict.verdict])
    own = _(" and ").join(map(_share, verdict.own_agreement))
    line.append(
        _(
            ", agreement {agreement}, with themselves {own}; p = {p:.2g} ({method})"
        ).format(
            agreement=_share(verdict.agreement),
            own=own,
            p=verdict.p,
            method=translated(verdict.method),
        )
    )
    out.print(line)
    if verdict.verdict == "inconclusive":
        smallest = min(1, LOOKS * smallest_p(*verdict.runs))
        advice = _(
            "  Too few runs: the clearest difference would have p = {smallest:.2g}."
        ).format(smallest=smallest)
        out.print(Text(advice, "yellow"))
    if place := verdict.divergence:
        out.print(
            Text(
                _("  The first requests differ, {path}:").format(path=place.path), "red"
            )
        )
        names = (verdict.left, verdict.right)
        for name, value in zip(names, apart(place), strict=True):
            out.print(Text(visible(f"    {name}: {value}")))


def drift_summary(out: Console, verdicts: Sequence[DriftVerdict]) -> None:
    """Print the test, its level, and how many comparisons came to what."""
    if not verdicts:
        return
    out.print()
    out.print(
        Text(
            _(
                "Test: Freeman-Halton, on the strategies with and without"
                " arguments, p of the smaller times {looks}. Different: p"
                " <= {level:.2g} ({of_all} / {count})."
            ).format(
                looks=LOOKS, level=verdicts[0].level, of_all=LEVEL, count=len(verdicts)
            ),
            "dim",
        )
    )
    counts = Counter(verdict.verdict for verdict in verdicts)
    out.print(Text(tally(counts), "bold"))
