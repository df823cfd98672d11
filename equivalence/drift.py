"""Drift: do two implementations decide differently, or does the model just vary?

Each implementation is asked the same question many times. What it did is its strategy:
which calls, in one turn or one after another, with which arguments. How often two of
its own runs agree is the noise floor; two implementations are different only when they
differ more than that, by an exact test.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivalence import record, show
from equivalence.cassette_file import SCHEMA, cassette_path, read_cassette
from equivalence.compare import Divergence, Verdict, counted, request
from equivalence.exact import Test, freeman_halton, smallest_p
from equivalence.questions import DEMO, read_questions
from equivalence.record import Run, Step
from equivalence.run import run_each
from equivalence.trial import trial
from gateway.canonical import differences

LEVEL = 0.05
"""The chance, over all tests of a report together, to call equal ones different."""

LOOKS = 2
"""Each pair is tested twice: with the arguments of the calls, and without."""


def strategy(run: Run) -> str:
    """Return what the run did, a line a turn: the calls of one turn joined by " + ",
    and how it ended where that is not an answer."""
    return _told(run, lambda step: show.call(_normal(step)))


def shape(run: Run) -> str:
    """Return the strategy without the arguments."""
    return _told(run, lambda step: step.tool)


def _told(run: Run, call: Any) -> str:
    turns = groupby(run.steps, key=lambda step: step.turn)
    lines = [" + ".join(call(step) for step in steps) for _, steps in turns]
    if not lines:
        lines = ["(no call)"]
    if run.status != "completed":
        lines.append(f"[{run.status}]")
    return "\n".join(lines)


def _normal(step: Step) -> Step:
    """The step with its arguments in one form: sorted, 100.0 as 100."""
    if not isinstance(step.arguments, dict):
        return step
    arguments = {
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in sorted(step.arguments.items())
    }
    return replace(step, arguments=arguments)


def agreement(lefts: Sequence[str], rights: Sequence[str]) -> float | None:
    """Return how many of all pairs of one from each side are equal; with itself, of all
    pairs of two different runs. None where there is no pair."""
    left, right = Counter(lefts), Counter(rights)
    if lefts is rights:
        equal = sum(count * (count - 1) for count in left.values())
        pairs = len(lefts) * (len(lefts) - 1)
    else:
        equal = sum(count * right[key] for key, count in left.items())
        pairs = len(lefts) * len(rights)
    return equal / pairs if pairs else None


@dataclass(frozen=True)
class DriftVerdict(Verdict):
    """Whether two implementations decide differently; the divergence is that of their
    first requests, which needs no repeats to be certain."""

    p: float | None = None
    """The smaller of both looks, times their number; None: nothing to test."""
    level: float | None = None
    """What p is held against: LEVEL shared out among the pairs of the report."""
    method: str = ""
    agreement: float | None = None
    own_agreement: tuple[float | None, float | None] = (None, None)
    runs: tuple[int, int] = (0, 0)


class Drift:
    """The runs of one question by implementation. Runs that the endpoint failed tell
    nothing of a decision and are left out."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.question = runs[0].question
        self.history = runs[0].history
        self.failed = sum(run.status == "model_error" for run in runs)
        self.runs: dict[str, list[Run]] = {}
        for run in runs:
            told = self.runs.setdefault(run.implementation, [])
            if run.status != "model_error":
                told.append(run)
        self.strategies = {
            name: [strategy(run) for run in runs] for name, runs in self.runs.items()
        }

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The first implementation with each other."""
        first, *others = self.runs
        return [(first, other) for other in others]

    def agreement(self, left: str, right: str) -> float | None:
        return agreement(self.strategies[left], self.strategies[right])

    def verdicts(self, level: float) -> list[DriftVerdict]:
        """Return a verdict for each pair, at this level of significance."""
        return [self._verdict(*pair, level) for pair in self.pairs]

    def _verdict(self, left: str, right: str, level: float) -> DriftVerdict:
        lefts, rights = self.strategies[left], self.strategies[right]
        test = self._test(left, right)
        if not lefts or not rights:
            verdict = "inconclusive"
        elif len({*lefts, *rights}) == 1:
            verdict = "equivalent"
        elif test.p <= level:
            verdict = "different"
        elif LOOKS * smallest_p(len(lefts), len(rights)) > level:
            verdict = "inconclusive"
        else:
            verdict = "indistinguishable"
        return DriftVerdict(
            left,
            right,
            self.question,
            verdict,
            self._first_requests(left, right),
            p=test.p,
            level=level,
            method=test.method,
            agreement=self.agreement(left, right),
            own_agreement=(self.agreement(left, left), self.agreement(right, right)),
            runs=(len(lefts), len(rights)),
        )

    def _test(self, left: str, right: str) -> Test:
        with_arguments = freeman_halton(self.strategies[left], self.strategies[right])
        without = freeman_halton(
            *([shape(run) for run in self.runs[name]] for name in (left, right))
        )
        smaller = min(with_arguments, without, key=lambda test: test.p)
        return replace(smaller, p=min(1.0, LOOKS * smaller.p))

    def _first_requests(self, left: str, right: str) -> Divergence | None:
        """Where the first requests of two implementations differ, None where they are
        the same or cannot be, because the two ask in different forms. Of a follow-up
        question only what stands beside the messages: its conversation has drifted."""
        firsts = [next(iter(self.runs[name]), None) for name in (left, right)]
        a, b = (run.model_calls[:1] if run else [] for run in firsts)
        forms = {run.protocol for run in firsts if run}
        if not a or not b or len(forms) > 1:
            return None
        for place in differences(request(a[0]), request(b[0])):
            if not (self.history and place[0].startswith("$.messages")):
                return Divergence("request", 1, *place)
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "history": self.history,
            "strategies": {n: Counter(told) for n, told in self.strategies.items()},
            "agreement": {
                left: {right: self.agreement(left, right) for right in self.runs}
                for left in self.runs
            },
            "ungrounded_runs": {name: self.ungrounded(name) for name in self.runs},
            "failed": self.failed,
        }

    def ungrounded(self, name: str) -> int:
        """How many of its runs have a call with a number from nowhere."""
        return sum(
            any(step.ungrounded for step in run.steps) for run in self.runs[name]
        )


def by_question(runs: Iterable[Run]) -> list[Drift]:
    """Return the drift of each question, in order of appearance; the implementation
    that appears first of all is at each question the one that others are held against.
    """
    together: dict[tuple[str, ...], list[Run]] = {}
    names: dict[str, int] = {}
    for run in runs:
        names.setdefault(run.implementation, len(names))
        together.setdefault((*run.history, run.question), []).append(run)
    return [
        Drift(sorted(group, key=lambda run: names[run.implementation]))
        for group in together.values()
    ]


def judged(drifts: Sequence[Drift]) -> list[DriftVerdict]:
    """Return the verdicts of all, LEVEL shared out equally among their pairs."""
    pairs = sum(len(drift.pairs) for drift in drifts)
    return [v for drift in drifts for v in drift.verdicts(LEVEL / max(pairs, 1))]


# ----------------------------------------------------------------------- the command


def drift_command(arguments: argparse.Namespace) -> int:
    """Gather the runs, show what they come to; return the exit code."""
    runs: list[Run] = []
    interrupted = False
    try:
        for run in _gathered(arguments):
            runs.append(run)
            if arguments.out:
                record.append(arguments.out, run)
    except KeyboardInterrupt:
        interrupted = True
        if not runs:
            raise
    drifts = by_question(runs)
    verdicts = judged(drifts)
    out = show.console(sys.stderr if arguments.json else sys.stdout)
    for drift in drifts:
        _show(out, drift, [v for v in verdicts if v.question == drift.question])
    _summary(out, verdicts)
    if arguments.json:
        document = {
            "runs": [run.to_json() for run in runs],
            "verdicts": [verdict.to_json() for verdict in verdicts],
            "drift": [drift.to_json() for drift in drifts],
        }
        print(json.dumps(document, ensure_ascii=False))
    if interrupted:
        print(f"interrupted: {len(runs)} runs are what this rests on", file=sys.stderr)
        return 130
    found = {verdict.verdict for verdict in verdicts}
    return 1 if "different" in found else 3 if found - {"equivalent"} else 0


def _gathered(arguments: argparse.Namespace) -> Iterator[Run]:
    """The runs, from the files they were recorded in or made now."""
    if arguments.recorded:
        for path in arguments.recorded:
            yield from _recorded(path, arguments)
        return
    if not arguments.question and not arguments.questions:
        arguments.question = read_questions(DEMO)[0]
    asked = trial(arguments)
    runs = run_each(
        asked.subjects,
        asked.conversations,
        asked.settings,
        asked.tools,
        repeats=asked.repeats,
        seed=arguments.seed,
    )
    yield from show.tracked(runs, "asking", asked.runs)


def _recorded(path: Path, arguments: argparse.Namespace) -> Iterator[Run]:
    path = path if path.exists() else cassette_path(path)
    with path.open(encoding="utf-8") as file:
        is_cassette = SCHEMA in file.readline()
    if is_cassette:
        runs = [recorded.run for recorded in read_cassette(path).runs.values()]
    else:
        runs = record.read(path)
    for run in runs:
        if arguments.question and run.question not in arguments.question:
            continue
        if (names := arguments.implementation) and run.implementation not in names:
            continue
        yield run


def _show(out: Console, drift: Drift, verdicts: Sequence[DriftVerdict]) -> None:
    out.print()
    for earlier in drift.history:
        out.print(Text(f"  earlier: {earlier}", "dim"))
    out.print(Text(f"Question: {drift.question}", "bold"))
    table = Table(show_lines=True, expand=True)
    table.add_column("strategy: a line a turn, + in one turn", ratio=3, overflow="fold")
    for name in drift.runs:
        table.add_column(escape(name), justify="right", overflow="fold")
    counts = {name: Counter(told) for name, told in drift.strategies.items()}
    totals = sum(counts.values(), Counter[str]())
    for text, _ in totals.most_common():
        row = (str(counts[name][text] or "") for name in drift.runs)
        table.add_row(Text(text), *row)
    table.add_row("runs", *(str(len(told)) for told in drift.strategies.values()))
    if any(map(drift.ungrounded, drift.runs)):
        marked = (str(drift.ungrounded(name)) for name in drift.runs)
        table.add_row("of these with an ungrounded number", *marked)
    out.print(table)
    _agreements(out, drift)
    if drift.failed:
        out.print(
            Text(f"  left out: {drift.failed} runs the endpoint failed", "yellow")
        )
    for verdict in verdicts:
        _line(out, verdict)


def _agreements(out: Console, drift: Drift) -> None:
    table = Table(title="Agreement of two runs", title_justify="left")
    table.add_column("")
    for name in drift.runs:
        table.add_column(escape(name), justify="right", overflow="fold")
    for left in drift.runs:
        shares = (drift.agreement(left, right) for right in drift.runs)
        table.add_row(escape(left), *(_share(share) for share in shares))
    out.print(table)
    out.print(Text("  The diagonal is the noise floor: each with itself.", "dim"))


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _line(out: Console, verdict: DriftVerdict) -> None:
    line = Text(f"{verdict.left} vs {verdict.right}: ")
    line.append(verdict.verdict, show.COLOURS[verdict.verdict])
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
        for name, value in zip(names, show.apart(place), strict=True):
            out.print(Text(f"    {name}: {value}"))


def _summary(out: Console, verdicts: Sequence[DriftVerdict]) -> None:
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
