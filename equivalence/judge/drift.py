"""Drift: do two implementations decide differently, or does the model just vary?

Each implementation is asked the same question many times. What it did is its strategy:
which calls, in one turn or one after another, with which arguments. How often two of
its own runs agree is the noise floor; two implementations are different only when they
differ more than that, by an exact test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from equivalence.gateway.canonical import differences
from equivalence.judge.compare import Divergence, Verdict, request
from equivalence.judge.fisher import Test, freeman_halton, smallest_p
from equivalence.runs.record import Run, Step
from equivalence.runs.words import call

LEVEL = 0.05
"""The chance, over all tests of a report together, to call equal ones different."""

LOOKS = 2
"""Each pair is tested twice: with the arguments of the calls, and without."""


def strategy(run: Run) -> str:
    """Return what the run did, a line a turn: the calls of one turn joined by " + ",
    and how it ended where that is not an answer."""
    return _told(run, lambda step: call(_normal(step)))


def shape(run: Run) -> str:
    """Return the strategy without the arguments."""
    return _told(run, lambda step: step.tool)


def _told(run: Run, told: Any) -> str:
    turns = groupby(run.steps, key=lambda step: step.turn)
    lines = [" + ".join(told(step) for step in steps) for _, steps in turns]
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
            history=tuple(self.history),
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
