"""The figures of the benchmark for people: the table, and what was not completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivalence.language import _, counted, ngettext
from equivalence.phrases import translated
from equivalence.runs.words import short, visible

if TYPE_CHECKING:
    from equivalence.score.cases import Published
    from equivalence.score.figures import Answered, Score

NONE = "–"
SHORT_NAME = len("successor")
"""Names of up to this length are not broken; in a narrow window the labels are."""


def table(out: Console, scores: Sequence[Score], published: Published | None) -> None:
    """Draw the figures: one a row, implementations across, the published ones last."""
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    grid.add_column("", overflow="fold")
    for score in scores:
        name = score.implementation
        fits = len(name) <= SHORT_NAME
        grid.add_column(
            escape(visible(name)), justify="right", overflow="fold", no_wrap=fits
        )
    if published:
        grid.add_column(_("published"), justify="right", style="dim", no_wrap=True)

    def row(label: str, values: Sequence[str], beside: str = "") -> None:
        grid.add_row(label, *values, *([beside] if published else ()))

    def known(name: str) -> float | None:
        return getattr(published, name, None)

    share = _share
    completed = [share(score.completed) for score in scores]
    row(_("cases completed"), completed, share(known("completed"), ""))
    for kind in scores[0].by_kind if scores else ():
        counts = [score.by_kind[kind] for score in scores]
        if any(total for _done, total in counts):
            row("  " + _(kind), [f"{done}/{total}" for done, total in counts])
    worked = [share(score.calls_worked) for score in scores]
    row(_("tool calls that worked"), worked, share(known("calls_worked"), ""))
    row(_("tool calls not expected"), [str(score.extra_calls) for score in scores])
    calls = [_number(score.model_calls, 1) for score in scores]
    row(_("model calls a question"), calls, _number(known("model_calls"), 1, ""))
    seconds = [_number(score.seconds, 2) for score in scores]
    row(_("seconds a question"), seconds, _number(known("seconds"), 2, ""))
    peaks = list(map(_peak, scores))
    row(_("peak context, tokens"), peaks, _count(known("peak_context"), ""))
    unread = [share(score.unread) for score in scores]
    row(_("replies that did not parse"), unread, share(known("unread"), ""))
    out.print(grid)


def notes(
    out: Console,
    scores: Sequence[Score],
    models: Sequence[str],
    published: Published | None,
) -> None:
    """Say what the figures rest on."""
    for score in scores:
        if score.left_out:
            words = _("{cases} left out: the endpoint failed.").format(
                cases=counted(score.left_out, "{count} case", "{count} cases")
            )
            out.print(Text(f"{score.implementation}: {words}", "yellow"))
    lines = [
        _(
            "Model: {models}. Seconds are those of the machine that"
            " asked, from the first request to the last reply."
        ).format(models=", ".join(models))
    ]
    if any(score.peak_estimated for score in scores):
        lines.append(
            _(
                "≈ is estimated, from the bytes: the replies did not tell"
                " their prompt_tokens."
            )
        )
    if published:
        lines.append(published.note)
    for line in lines:
        out.print(Text(visible(line), "dim"))


def failures(out: Console, failed: Sequence[Answered], *, listed: bool) -> None:
    """Tell how many cases were not completed, or list them with the reasons."""
    if not failed:
        return
    if not listed:
        words = ngettext(
            "{count} time a case was not completed; --failed lists them",
            "{count} times a case was not completed; --failed lists them",
            len(failed),
        )
        out.print(words.format(count=len(failed)))
        return
    for each in failed:
        out.print()
        out.print(Text(visible(f"{each.implementation}, {each.case.id}"), "bold"))
        for run in each.runs:
            out.print(Text(f"  {visible(run.question)}"))
            out.print(Text(f"  → {short(run.answer) or f'[{run.status}]'}", "dim"))
        for reason in each.outcome.reasons:
            out.print(Text(f"  ✗ {short(translated(reason))}", "red"))


def _share(value: float | None, absent: str = NONE) -> str:
    return absent if value is None else f"{value:.1f}".removesuffix(".0") + " %"


def _number(value: float | None, places: int, absent: str = NONE) -> str:
    return absent if value is None else f"{value:.{places}f}"


def _count(value: float | None, absent: str = NONE) -> str:
    return absent if value is None else f"{value:,.0f}"


def _peak(score: Score) -> str:
    return ("≈" if score.peak_estimated else "") + _count(score.peak_context)
