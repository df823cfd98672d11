"""Replays for people: who did the same on whose answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivalence.judge.compare import Verdict
from equivalence.judge.replay import Cell, Replayed, Source, Tally
from equivalence.language import _
from equivalence.runs.observe import installed_versions
from equivalence.runs.record import Run
from equivalence.show import terminal
from equivalence.show.terminal import text


def replays(
    out: Console,
    played: Tally,
    among: Sequence[Verdict],
    in_full: Sequence[Replayed] = (),
) -> None:
    """Print where the recordings come from, who did the same on whose answers, and how
    the recorded runs compare with each other; the traces of those `in_full`."""
    for source in played.sources:
        out.print(text(_source(source)))
    for difference in _versions(played):
        out.print(text(difference, "yellow"))
    if in_full:
        _traces(out, in_full)
    _cross_table(out, played.cells)
    unequal = [each for each in played.verdicts if each.divergence]
    for verdict in unequal:
        terminal.verdict(out, verdict)
    if among:
        _among(out, among)
    count = len(played.verdicts)
    words = ", ".join(f"{n} {status}" for status, n in played.ends.most_common())
    out.print(
        _("{count} runs replayed, no model asked: {words}").format(
            count=count, words=words
        )
    )
    words = _("{equal} did exactly what was recorded, {count} did not").format(
        equal=count - len(unequal), count=len(unequal)
    )
    out.print(text(words, "bold"))


def _source(source: Source) -> str:
    server = source.base_url or _("its own upstream")
    note = f". {source.note}." if source.note else "."
    return _(
        "Recorded {date} from {model} at {server}, temperature {temperature:g}{note}"
    ).format(
        date=source.date,
        model=source.model,
        server=server,
        temperature=source.temperature,
        note=note,
    )


def _versions(played: Tally) -> list[str]:
    """What is installed in another version than when it was recorded."""
    here = installed_versions()
    found: dict[str, None] = {}
    for package, version in played.versions:
        if here.get(package) != version:
            now = here.get(package, _("not installed"))
            found[
                _("Recorded with {package} {version}, here it is {now}.").format(
                    package=package, version=version, now=now
                )
            ] = None
    return list(found)


def _traces(out: Console, played: Sequence[Replayed]) -> None:
    together: dict[tuple[Any, ...], list[Run]] = {}
    for each in played:
        run = each.run
        if each.source != each.implementation:
            run = replace(
                run,
                implementation=_("{implementation} for {source}").format(
                    implementation=each.implementation, source=each.source
                ),
            )
        key = (run.repeat, *run.history, run.question)
        together.setdefault(key, []).append(run)
    for runs in together.values():
        terminal.side_by_side(out, runs)
        terminal.notes(out, runs)


def _cross_table(out: Console, table: Sequence[Cell]) -> None:
    """Draw who did the same on whose answers, or where it first did otherwise."""
    at = {(cell.source, cell.implementation): cell for cell in table}
    sources = list(dict.fromkeys(cell.source for cell in table))
    names = list(dict.fromkeys(cell.implementation for cell in table))
    drawn = Table()
    drawn.add_column(_("answers of"), overflow="fold")
    if all(source == name for source, name in at):
        drawn.add_column(_("replayed by itself"), overflow="fold")
        for source in sources:
            drawn.add_row(escape(source), _cell_text(at[source, source]))
        names = []
    else:
        for name in names:
            drawn.add_column(escape(name), overflow="fold")
        for source in sources:
            row = (_cell_text(at.get((source, name))) for name in names)
            drawn.add_row(escape(source), *row)
    out.print(drawn)
    if any((source, name) not in at for source in sources for name in names):
        words = _("  –: the two ask the model in different forms (tools, or text)")
        out.print(text(words, "dim"))


def _cell_text(cell: Cell | None) -> Text:
    if cell is None:
        return text("–", "dim")
    equal = f"{cell.equal}/{cell.total}"
    if cell.cause is None:
        return text(equal, "green")
    return text(f"{equal}, {cell.cause} {cell.model_call} {cell.path}", "red")


def _among(out: Console, among: Sequence[Verdict]) -> None:
    """Print how the recorded runs compare with each other, as `run` would."""
    out.print(_("As recorded, among each other:"))
    pairs: dict[tuple[str, str], Counter[str]] = {}
    for verdict in among:
        place = verdict.divergence
        words = (
            _("{verdict}, cause: {cause}").format(
                verdict=_(verdict.verdict), cause=place.cause
            )
            if place
            else _(verdict.verdict)
        )
        pairs.setdefault((verdict.left, verdict.right), Counter())[words] += 1
    for (left, right), counts in pairs.items():
        words = "; ".join(
            _("{count} {verdict}").format(count=count, verdict=what)
            for what, count in counts.most_common()
        )
        out.print(
            text(
                _("  {left} vs {right}: {words}").format(
                    left=left, right=right, words=words
                )
            )
        )
    replies = sum(
        verdict.divergence is not None and verdict.divergence.cause == "reply"
        for verdict in among
    )
    if replies:
        share = _("{replies} of {count}").format(replies=replies, count=len(among))
        words = _(
            "  In {share} the same request got another reply: not the code."
        ).format(share=share)
        out.print(text(words, "dim"))
