"""Drift for people: strategies and how often each was taken, agreement, verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivalence.judge.compare import counted
from equivalence.judge.drift import LEVEL, LOOKS, Drift, DriftVerdict
from equivalence.judge.fisher import smallest_p
from equivalence.show.terminal import COLOURS, apart


def drift(out: Console, one: Drift, verdicts: Sequence[DriftVerdict]) -> None:
    out.print()
    for earlier in one.history:
        out.print(Text(f"  earlier: {earlier}", "dim"))
    out.print(Text(f"Question: {one.question}", "bold"))
    table = Table(show_lines=True, expand=True)
    table.add_column("strategy: a line a turn, + in one turn", ratio=3, overflow="fold")
    for name in one.runs:
        table.add_column(escape(name), justify="right", overflow="fold")
    counts = {name: Counter(told) for name, told in one.strategies.items()}
    totals = sum(counts.values(), Counter[str]())
    for text, _ in totals.most_common():
        row = (str(counts[name][text] or "") for name in one.runs)
        table.add_row(Text(text), *row)
    table.add_row("runs", *(str(len(told)) for told in one.strategies.values()))
    if any(map(one.ungrounded, one.runs)):
        marked = (str(one.ungrounded(name)) for name in one.runs)
        table.add_row("of these with an ungrounded number", *marked)
    out.print(table)
    _agreements(out, one)
    if one.failed:
        out.print(Text(f"  left out: {one.failed} runs the endpoint failed", "yellow"))
    for verdict in verdicts:
        _line(out, verdict)


def _agreements(out: Console, one: Drift) -> None:
    table = Table(title="Agreement of two runs", title_justify="left")
    table.add_column("")
    for name in one.runs:
        table.add_column(escape(name), justify="right", overflow="fold")
    for left in one.runs:
        shares = (one.agreement(left, right) for right in one.runs)
        table.add_row(escape(left), *(_share(share) for share in shares))
    out.print(table)
    out.print(Text("  The diagonal is the noise floor: each with itself.", "dim"))


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _line(out: Console, verdict: DriftVerdict) -> None:
    line = Text(f"{verdict.left} vs {verdict.right}: ")
    line.append(verdict.verdict, COLOURS[verdict.verdict])
    own = " and ".join(map(_share, verdict.own_agreement))
    line.append(
        f", agreement {_share(verdict.agreement)}, with themselves {own};"
        f" p = {verdict.p:.2g} ({verdict.method})"
    )
    out.print(line)
    if verdict.verdict == "inconclusive":
        smallest = min(1, LOOKS * smallest_p(*verdict.runs))
        advice = (
            f"  Too few runs: the clearest difference would have p = {smallest:.2g}."
        )
        out.print(Text(advice, "yellow"))
    if place := verdict.divergence:
        out.print(
            Text(f"  The code differs in the first request, {place.path}:", "red")
        )
        names = (verdict.left, verdict.right)
        for name, value in zip(names, apart(place), strict=True):
            out.print(Text(f"    {name}: {value}"))


def drift_summary(out: Console, verdicts: Sequence[DriftVerdict]) -> None:
    if not verdicts:
        return
    out.print()
    out.print(
        Text(
            f"Test: Freeman-Halton, on the strategies with and without arguments, p of"
            f" the smaller times {LOOKS}. Different: p <= {verdicts[0].level:.2g}"
            f" ({LEVEL} / {len(verdicts)}).",
            "dim",
        )
    )
    counts = Counter(verdict.verdict for verdict in verdicts)
    words = ", ".join(f"{count} {name}" for name, count in counts.items())
    out.print(Text(f"{counted(len(verdicts), 'comparison')}: {words}", "bold"))
