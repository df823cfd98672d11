"""Runs and verdicts for people: tables in the terminal, drawn with rich."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import IO, Any, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from equivalence.gateway.canonical import excerpts, spelling_alone
from equivalence.judge.compare import (
    RULES,
    Divergence,
    Verdict,
    explain,
    tally,
)
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs import output
from equivalence.runs.hanging import Hanging
from equivalence.runs.hints import hint
from equivalence.runs.record import Run, Step
from equivalence.runs.words import (
    call,
    ending,
    mark,
    not_seen,
    short,
    ungrounded,
    visible,
)

T = TypeVar("T")

NARROWEST_COLUMN = 24
LONGEST_VALUE = 300

COLOURS = {
    "equivalent": "green",
    "accepted": "green",
    "indistinguishable": "green",
    "different": "red",
    "inconclusive": "yellow",
}


def console(file: IO[str] | None = None) -> Console:
    """Return a console that never fails on a character its encoding lacks."""
    file = file or sys.stdout
    reconfigure = getattr(file, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="replace")
    return output.console(file)


def text(words: str, style: str = "") -> Text:
    """Return the words for the console. What comes from a model, a tool or a file never
    steers the terminal: it is shown as text."""
    return Hanging(visible(words), style)


def tracked(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Yield the items, with a bar, how many of how many, the rate and the remaining
    time, on standard error if that is a screen."""
    screen = console(sys.stderr)
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )

    class Rate(TextColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.1f}/s" if task.speed else "")

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(""),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=screen, transient=True, disable=not screen.is_terminal
    ) as progress:
        yield from progress.track(items, total)


def turns(run: Run) -> list[str]:
    """Return the trace, one text a model call and a last one for the end."""
    found = []
    for number in range(1, len(run.model_calls) + 1):
        asked = [step for step in run.steps if step.turn == number]
        if asked:
            found.append("\n".join(line for step in asked for line in _lines(step)))
    return [*found, ending(run)]


def _lines(step: Step) -> Iterator[str]:
    yield call(step)
    for number in step.ungrounded:
        yield f"  {ungrounded(number['number'])}"
    result = not_seen(step) if step.result is None else short(step.result)
    yield f"  {mark(step)} {result}"


def side_by_side(out: Console, runs: Sequence[Run]) -> None:
    """Draw the traces of one question: columns are implementations, rows are turns.
    Where the window is too narrow for that, those with the same trace share a column;
    where it still is, one stands below the other. What is not as in the first column
    is coloured."""
    out.print()
    for earlier in runs[0].history:
        out.print(text(_("  earlier: {earlier}").format(earlier=earlier), "dim"))
    out.print(text(_("Question: {question}").format(question=runs[0].question), "bold"))
    columns = [(run.implementation, turns(run)) for run in runs]
    if out.width < NARROWEST_COLUMN * len(columns):
        columns = _shared(columns)
    if out.width < NARROWEST_COLUMN * len(columns):
        for name, trace in columns:
            out.print(Rule(text(f"{name} ", "bold cyan"), align="left"))
            for turn in trace:
                out.print(text(turn))
        out.print(Rule())
        return
    table = Table(show_lines=True, expand=True)
    for name, _trace in columns:
        table.add_column(escape(visible(name)), ratio=1, overflow="fold")
    for row in zip_longest(*(trace for _name, trace in columns), fillvalue=""):
        table.add_row(*(text(cell, "yellow" * (cell != row[0])) for cell in row))
    out.print(table)


def _shared(columns: Sequence[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """The columns with those of the same trace joined: "stage1 = stage2"."""
    joined: dict[tuple[str, ...], list[str]] = {}
    for name, trace in columns:
        joined.setdefault(tuple(trace), []).append(name)
    return [(" = ".join(names), list(trace)) for trace, names in joined.items()]


def verdicts(out: Console, found: Sequence[Verdict]) -> None:
    """Print the verdicts of one question, those that say the same as one."""
    alike: dict[str, list[Verdict]] = {}
    for each in found:
        same = replace(each, right="")
        alike.setdefault(repr(same), []).append(each)
    for first, *others in alike.values():
        names = ", ".join([first.right, *(each.right for each in others)])
        verdict(out, replace(first, right=names))


def verdict(out: Console, found: Verdict) -> None:
    """Print one verdict: who, what, and where the two part."""
    line = text(_("{left} vs {right}: ").format(left=found.left, right=found.right))
    line.append(_(found.verdict), COLOURS[found.verdict])
    if place := found.divergence:
        line.append(
            _(", cause: {cause}, model call {model_call}, {path}").format(
                cause=place.cause, model_call=place.model_call, path=place.path
            )
        )
    out.print(line)
    if place:
        for name, value in zip((found.left, found.right), apart(place), strict=True):
            out.print(text(f"  {name}: {value}"))
        if (offset := place.offset) is not None:
            kind = (
                _(" (blanks alone)") if spelling_alone(place.left, place.right) else ""
            )
            out.print(
                text(
                    _("  they part at character {offset}{kind}").format(
                        offset=offset, kind=kind
                    ),
                    "dim",
                )
            )
    if found.verdict != "equivalent":
        out.print(text(f"  {explain(found)}", "dim"))


def apart(place: Divergence) -> tuple[str, str]:
    """Return the two values, short enough to read; where they would look the same then,
    what stands around the first character that is not."""
    left, right = short(place.left), short(place.right)
    if place.cause == "control":  # the words are ours
        return translated(left), translated(right)
    if left == right:
        around = excerpts(place.left, place.right, LONGEST_VALUE)
        left, right = map(visible, around)
    return left, right


def summary(
    out: Console,
    verdicts: Sequence[Verdict],
    ignored: Iterable[str] = (),
    paths: Sequence[str] = (),
) -> None:
    """Print how many comparisons came to what, and the rules by which something was
    ignored."""
    if not verdicts:
        return
    counts = dict.fromkeys(COLOURS, 0)
    for found in verdicts:
        counts[found.verdict] += 1
    out.print()
    rules(out, ignored)
    if paths:
        out.print(
            text(
                _("Ignored as asked: {paths}").format(paths=", ".join(paths)), "yellow"
            )
        )
    out.print(text(tally(counts), "bold"))


def absent(out: Console, accept: Any) -> None:
    """Print which accepted differences have not occurred: their entries can go."""
    for reason in getattr(accept, "absent", ()):
        out.print(
            text(
                _("accepted, but it did not occur: {reason}").format(reason=reason),
                "yellow",
            )
        )


def rules(out: Console, names: Iterable[str]) -> None:
    """Print these rules of comparing, each with its reason."""
    wanted = {*names}
    if wanted:
        out.print(_("Ignored in the comparison:"))
    for name, sentence in RULES.items():
        if name in wanted:
            out.print(text("  - " + _(sentence), "dim"))


def notes(out: Console, runs: Iterable[Run]) -> None:
    """Print the warnings of the runs, each once, with those it holds for, and what to
    do where the endpoint failed."""
    said: dict[str, dict[str, None]] = {}
    cures: dict[str, None] = {}
    for run in runs:
        if run.status == "model_error" and (advice := hint(run.error)):
            cures.setdefault(advice)
        for warning in run.warnings:
            said.setdefault(warning, {}).setdefault(run.implementation)
    for warning, names in said.items():
        out.print(
            text(
                _("  note, {names}: {warning}").format(
                    names=", ".join(names), warning=translated(warning)
                ),
                "yellow",
            )
        )
    for advice in cures:
        out.print(text(f"  {advice}", "yellow"))
