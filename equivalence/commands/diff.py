"""diff: recorded runs of two sides, compared. Runs that are equal draw nothing."""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equivalence.commands.arguments import judge_of
from equivalence.errors import UsageError
from equivalence.judge.compare import RULES, Verdict, by_steps, tally
from equivalence.judge.exit_codes import exit_code
from equivalence.language import N_, _, counted
from equivalence.runs.files import Place, RunIndex
from equivalence.runs.output import json_stream
from equivalence.runs.record import Asked, Run
from equivalence.traces import run_index


def diff_command(arguments: argparse.Namespace) -> int:
    """Compare the runs of two sides, question by question; return the exit code."""
    lefts, rights = _sides(arguments)
    left, right = run_index(lefts), run_index(rights)
    pairs, alone = paired(left, right)
    if not pairs:
        raise UsageError(_("the two sides have no question in common"))
    names, label = _names(lefts, rights), _("{implementation} in {file}")
    versions: tuple[Versions, Versions] = ({}, {})
    judge, counts = judge_of(arguments), Counter[str]()
    unequal: list[Verdict] = []
    traced = 0
    document = JsonDocument() if arguments.json else None
    for asked in pairs:
        couple = [
            _labelled(side.read(one), label, names[at][side.places[one].path])
            for at, (side, one) in enumerate(zip((left, right), asked, strict=True))
        ]
        for seen, run in zip(versions, couple, strict=True):
            for package, version in {**run.versions, JOBS: str(run.jobs)}.items():
                seen.setdefault(package, set()).add(version)
        verdict = judge(*couple)
        traced += by_steps(couple[0], couple[1], judge.rules) == "trace"
        counts[verdict.verdict] += 1
        if document:
            places = left.places[asked[0]], right.places[asked[1]]
            document.add(verdict, places)
        if arguments.markdown and verdict.verdict != "equivalent":
            unequal.append(verdict)
        if arguments.all or verdict.verdict != "equivalent":
            _draw(couple, verdict, sys.stderr if document else sys.stdout)
    if document:
        document.end()
    for line in _version_lines(*versions):
        print(line, file=sys.stderr if document else sys.stdout)
    if traced:
        words = counted(traced, "{count} comparison", "{count} comparisons")
        print(
            _("{comparisons} by steps: {rule}").format(
                comparisons=words, rule=_(RULES["trace"])
            ),
            file=sys.stderr if document else sys.stdout,
        )
    print(
        tally(dict(counts.most_common())),
        file=sys.stderr if document else sys.stdout,
    )
    for question in dict.fromkeys(asked.question for asked in alone):
        words = _("on one side only: {question}").format(question=question)
        print(words, file=sys.stderr)
    if arguments.markdown:
        from equivalence.show.markdown import write_markdown

        equal = [Verdict("", "", "", "equivalent")] * counts["equivalent"]
        write_markdown(arguments.markdown, [*equal, *unequal])
    found = [Verdict("", "", "", name) for name in counts]
    return exit_code(found, failed=bool(alone))


Versions = dict[str, set[str]]
"""The versions of each package that runs were made with, and how many at once."""

JOBS = N_("runs at once")


def _version_lines(left: Versions, right: Versions) -> list[str]:
    """A line for each package whose versions are not the same on both sides."""
    return [
        _("{package}: {left} on the left, {right} on the right").format(
            package=_(JOBS)
            if package == JOBS
            else _("versions: {package}").format(package=package),
            left=_listed(left.get(package)),
            right=_listed(right.get(package)),
        )
        for package in dict.fromkeys([*left, *right])
        if left.get(package) != right.get(package)
    ]


def _listed(versions: set[str] | None) -> str:
    return _(" and ").join(sorted(versions)) if versions else _("not known")


def _sides(arguments: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """The files of either side."""
    if arguments.against:
        return arguments.files, arguments.against
    if len(arguments.files) != 2:
        raise UsageError(
            _("name two files, or the left ones and --against the right ones")
        )
    return arguments.files[:1], arguments.files[1:]


def paired(
    left: RunIndex, right: RunIndex
) -> tuple[list[tuple[Asked, Asked]], list[Asked]]:
    """Pair the runs of the same question, history and repeat: those of the same
    implementation where both sides know it, else each with each. Return the pairs and
    the runs without a partner."""
    shared = _implementations(left) & _implementations(right)
    by_question: dict[tuple[Any, ...], list[Asked]] = {}
    for asked in right.places:
        by_question.setdefault(_question(asked), []).append(asked)
    pairs = [
        (asked, other)
        for asked in left.places
        for other in by_question.get(_question(asked), ())
        if not shared or asked.implementation == other.implementation
    ]
    partnered = {asked for couple in pairs for asked in couple}
    alone = [a for side in (left, right) for a in side.places if a not in partnered]
    return pairs, alone


def _implementations(side: RunIndex) -> set[str]:
    return {asked.implementation for asked in side.places}


def _question(asked: Asked) -> tuple[Any, ...]:
    return asked.question, asked.history, asked.repeat


def _names(lefts: Sequence[Path], rights: Sequence[Path]) -> list[dict[Path, str]]:
    """How each file is called beside a run of it: by its name, whole where two have the
    same."""
    everyone = list(dict.fromkeys([*lefts, *rights]))
    alike = len({path.name for path in everyone}) < len(everyone)
    return [
        {path: str(path) if alike else path.name for path in side}
        for side in (lefts, rights)
    ]


def _labelled(run: Run, label: str, file: str) -> Run:
    labelled = copy.copy(run)
    labelled.implementation = label.format(implementation=run.implementation, file=file)
    return labelled


def _draw(runs: Sequence[Run], verdict: Verdict, file: Any) -> None:
    from equivalence.show import terminal

    out = terminal.console(file)
    terminal.side_by_side(out, runs)
    terminal.notes(out, runs)
    terminal.verdicts(out, [verdict])


class JsonDocument:
    """The verdicts as one JSON document, written as they come; each says where its two
    runs stand."""

    def __init__(self) -> None:
        print('{"verdicts": [', end="", file=json_stream())
        self._between = ""

    def add(self, verdict: Verdict, places: tuple[Place, Place]) -> None:
        """Write one verdict."""
        where = {
            f"{side}_run": {
                "file": str(place.path),
                "run" if place.offset is None else "line": place.number,
            }
            for side, place in zip(("left", "right"), places, strict=True)
        }
        text = json.dumps({**verdict.to_json(), **where}, ensure_ascii=False)
        print(self._between + text, end="", file=json_stream())
        self._between = ",\n"

    def end(self) -> None:
        """Write the end of the document."""
        print("]}", file=json_stream())
