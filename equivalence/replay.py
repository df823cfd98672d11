"""Replay: implementations on recorded answers, so that only the code can differ.

Each implementation on its own recording tells whether it still is what was recorded.
Each on the recordings of the others (cross-replay) tells whether two implementations
are the same when the model is taken out of the comparison. Nothing here has an address
or a key: a request that is not on the cassette fails and says where it differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivalence import record, show
from equivalence.cassette_file import Recording, cassette_path, read_cassette
from equivalence.compare import Judge, Verdict, among_each_other
from equivalence.implementations import protocol
from equivalence.observe import installed_versions
from equivalence.record import Run
from equivalence.run import Session, Subject
from equivalence.trial import DEMO_TOOLS, load_tools, subjects
from gateway import Cassette, Gateway
from usage import UsageError

RECORDED = " as recorded"


@dataclass(frozen=True)
class Replayed:
    """One recorded run, and the same question replayed on its answers."""

    source: str
    """The implementation for which the answers were recorded."""
    subject: str
    recorded: Run
    run: Run
    verdict: Verdict

    @property
    def faithful(self) -> bool:
        """Whether the code did on these answers just what was recorded."""
        return self.verdict.divergence is None


def replay(
    recording: Recording,
    source: str,
    subject: Subject,
    tools: Sequence[Callable[..., Any]],
    questions: Sequence[str] = (),
) -> Iterator[Replayed]:
    """Yield each run recorded for `source`, with the subject in its place. `questions`:
    only conversations in which one of these is asked; none: all."""
    settings, judge = recording.settings, Judge()
    with Gateway(Cassette(), repair=settings.repair) as gateway:
        session = Session(settings, tools, gateway)
        for asked, recorded in recording.of(source):
            if not _wanted(recording, recorded.run, questions):
                continue
            mine = replace(asked, implementation=subject.name)
            run = session.ask(subject, mine, Cassette(recorded.exchanges))
            left = replace(recorded.run, implementation=source + RECORDED)
            yield Replayed(source, subject.name, recorded.run, run, judge(left, run))


def comparable(source: str, subject: str) -> bool:
    """Whether the two ask the model in the same form, so that one can be answered from
    what was recorded for the other."""
    return protocol(source) == protocol(subject)


def _wanted(recording: Recording, run: Run, questions: Sequence[str]) -> bool:
    """Whether the run belongs to a conversation with one of the questions, or leads to
    one of them."""
    if not questions or {*run.history, run.question} & {*questions}:
        return True
    so_far = [*run.history, run.question]
    return any(
        asked.question in questions and [*asked.history][: len(so_far)] == so_far
        for asked in recording.runs
    )


# ------------------------------------------------------------------------ the command


def replay_command(arguments: argparse.Namespace) -> int:
    """Replay what the arguments ask for; return the exit code."""
    path = cassette_path(arguments.cassette)
    recording = read_cassette(path)
    if not recording.runs:
        raise UsageError(f"{path} holds no finished run")
    tools = load_tools(arguments.tools or _recorded_tools(recording, path))
    own = arguments.implementation is None
    pairs = [
        (source, subject)
        for subject in subjects(arguments.implementation or _by_name(recording, path))
        for source in recording.implementations
        if comparable(source, subject.name)
        and (source == subject.name or arguments.cross or not own)
    ]
    total = sum(
        _wanted(recording, recorded.run, arguments.question)
        for source, _ in pairs
        for _, recorded in recording.of(source)
    )
    if not total:
        raise UsageError(f"{path} has no recorded run of these questions to replay")
    runs = (
        each
        for source, subject in pairs
        for each in replay(recording, source, subject, tools, arguments.question)
    )
    played = list(show.tracked(runs, "replaying", total))
    if arguments.out:
        for each in played:
            record.append(arguments.out, each.run)
    among = among_each_other(each.recorded for each in played) if own else []
    out = show.console(sys.stderr if arguments.json else sys.stdout)
    _show(out, recording, played, among, in_full=bool(arguments.question))
    if arguments.json:
        document = {
            "recorded": recording.header,
            "runs": [each.run.to_json() for each in played],
            "verdicts": [
                *(each.verdict.to_json() for each in played),
                *(verdict.to_json() for verdict in among),
            ],
            "cross": [asdict(cell) for cell in cells(played)],
        }
        print(json.dumps(document, ensure_ascii=False))
    return exit_code(played, among)


def exit_code(played: Sequence[Replayed], among: Sequence[Verdict]) -> int:
    """Return 1 where the code differs, 3 where only the model did or a run failed, 0
    where all is equal."""
    verdicts = [each.verdict for each in played]
    if any(_blames_code(verdict) for verdict in (*verdicts, *among)):
        return 1
    return 3 if any(v.verdict != "equivalent" for v in (*verdicts, *among)) else 0


def _blames_code(verdict: Verdict) -> bool:
    """Whether the code made the difference: not where the model's reply did, and not
    where the two ask it in different forms, so that it decides otherwise."""
    place = verdict.divergence
    if place is None or verdict.verdict != "different" or place.cause == "reply":
        return False
    return comparable(verdict.left.removesuffix(RECORDED), verdict.right)


@dataclass(frozen=True)
class Cell:
    """One implementation on all answers recorded for one: how often it did the same,
    and where it first did not."""

    source: str
    subject: str
    equal: int
    total: int
    cause: str | None = None
    model_call: int | None = None
    path: str | None = None
    question: str | None = None


def cells(played: Iterable[Replayed]) -> list[Cell]:
    """Return the cross-replay table, a cell for each pair that was played."""
    together: dict[tuple[str, str], list[Replayed]] = {}
    for each in played:
        together.setdefault((each.source, each.subject), []).append(each)
    found = []
    for (source, subject), group in together.items():
        equal = sum(each.faithful for each in group)
        cell = Cell(source, subject, equal, len(group))
        first = next((each for each in group if not each.faithful), None)
        if first and (place := first.verdict.divergence):
            cell = replace(
                cell,
                cause=place.cause,
                model_call=place.model_call,
                path=place.path,
                question=first.recorded.question,
            )
        found.append(cell)
    return found


def _recorded_tools(recording: Recording, path: Path) -> str:
    tools = str(recording.header["tools"])
    if tools != DEMO_TOOLS:  # a file does not decide what is imported here
        raise UsageError(f"{path} was recorded with --tools {tools}: give it here too")
    return tools


def _by_name(recording: Recording, path: Path) -> list[str]:
    """The recorded implementations that can be called by their name here."""
    names = [name for name in recording.implementations if "{question}" not in name]
    if not names:
        raise UsageError(f"{path} was recorded for commands: name an --implementation")
    return names


def _show(
    out: Console,
    recording: Recording,
    played: Sequence[Replayed],
    among: Sequence[Verdict],
    *,
    in_full: bool,
) -> None:
    header = recording.header
    out.print(
        Text(
            f"Recorded {header['recorded'][:10]} from {header['model']} at"
            f" {header['server']}, temperature {recording.settings.temperature:g}"
            + (f". {header['note']}." if header["note"] else ".")
        )
    )
    for difference in _versions(played):
        out.print(Text(difference, "yellow"))
    if in_full:
        _traces(out, played)
    table = cells(played)
    _cross_table(out, table)
    for each in played:
        if not each.faithful:
            show.verdict(out, each.verdict)
    if among:
        _among(out, among)
    ends = Counter(each.run.status for each in played)
    words = ", ".join(f"{count} {status}" for status, count in ends.most_common())
    out.print(f"{len(played)} runs replayed, no model asked: {words}")
    equal = sum(each.faithful for each in played)
    words = f"{equal} did exactly what was recorded, {len(played) - equal} did not"
    out.print(Text(words, "bold"))


def _versions(played: Sequence[Replayed]) -> list[str]:
    """What is installed otherwise than when it was recorded."""
    here = installed_versions()
    found: dict[str, None] = {}
    for each in played:
        for package, version in each.recorded.versions.items():
            if here.get(package) != version:
                now = here.get(package, "not installed")
                found[f"Recorded with {package} {version}, here it is {now}."] = None
    return list(found)


def _traces(out: Console, played: Sequence[Replayed]) -> None:
    together: dict[tuple[Any, ...], list[Run]] = {}
    for each in played:
        run = each.run
        if each.source != each.subject:
            run = replace(run, implementation=f"{each.subject} for {each.source}")
        key = (run.repeat, *run.history, run.question)
        together.setdefault(key, []).append(run)
    for runs in together.values():
        show.side_by_side(out, runs)
        show.notes(out, runs)


def _cross_table(out: Console, table: Sequence[Cell]) -> None:
    """Draw who did the same on whose answers, or where it first did otherwise."""
    at = {(cell.source, cell.subject): cell for cell in table}
    sources = list(dict.fromkeys(cell.source for cell in table))
    names = list(dict.fromkeys(cell.subject for cell in table))
    drawn = Table()
    drawn.add_column("answers of", overflow="fold")
    if all(source == name for source, name in at):
        drawn.add_column("replayed by itself", overflow="fold")
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
    if any(not comparable(source, name) for source in sources for name in names):
        words = "  –: the two ask the model in different forms (tools, or text)"
        out.print(Text(words, "dim"))


def _cell_text(cell: Cell | None) -> Text:
    if cell is None:
        return Text("–", "dim")
    equal = f"{cell.equal}/{cell.total}"
    if cell.cause is None:
        return Text(equal, "green")
    return Text(f"{equal}, {cell.cause} {cell.model_call} {cell.path}", "red")


def _among(out: Console, among: Sequence[Verdict]) -> None:
    """Print how the recorded runs compare with each other, as `run` would."""
    out.print("As recorded, among each other:")
    pairs: dict[tuple[str, str], Counter[str]] = {}
    for verdict in among:
        place = verdict.divergence
        words = f"{verdict.verdict}, cause: {place.cause}" if place else verdict.verdict
        pairs.setdefault((verdict.left, verdict.right), Counter())[words] += 1
    for (left, right), counts in pairs.items():
        words = "; ".join(f"{count} {what}" for what, count in counts.most_common())
        out.print(Text(f"  {left} vs {right}: {words}"))
    replies = sum(
        verdict.divergence is not None
        and verdict.divergence.cause == "reply"
        and comparable(verdict.left, verdict.right)
        for verdict in among
    )
    if replies:
        share = f"{replies} of {len(among)}"
        words = f"  In {share} the same request got another reply: not the code."
        out.print(Text(words, "dim"))
