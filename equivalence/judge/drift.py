"""Drift: do two implementations decide differently, or does the model just vary?

Each implementation is asked the same question many times. What it did is its strategy:
which calls, in one turn or one after another, with which arguments. How often two of
its own runs agree is the noise floor; two implementations are different only when they
differ more than that, by an exact test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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


def _told(run: Run, told: Callable[[Step], str]) -> str:
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


def agreement(
    left: Counter[str], right: Counter[str], *, itself: bool = False
) -> float | None:
    """Return how many of all pairs of one from each side are equal; with `itself`, of
    all pairs of two different runs. None where there is no pair."""
    if itself:
        equal = sum(count * (count - 1) for count in left.values())
        pairs = left.total() * (left.total() - 1)
    else:
        equal = sum(count * right[key] for key, count in left.items())
        pairs = left.total() * right.total()
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

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as it stands in JSON. It is on all repeats together."""
        data = super().to_json()
        del data["repeat"]
        own = ("p", "level", "method", "agreement", "own_agreement", "runs")
        return data | {name: getattr(self, name) for name in own}


@dataclass
class Decisions:
    """What one implementation decided at one question, counted: no run is kept."""

    strategies: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    ungrounded: int = 0
    """Runs with a call in which a number was made up."""
    protocol: str = ""
    request: Any = None
    """The first request of its first run, in the form in which requests are compared;
    None where there was none."""

    @property
    def runs(self) -> int:
        """How many runs they are."""
        return self.strategies.total()

    def add(self, run: Run) -> None:
        """Count the run."""
        if not self.runs:
            self.protocol = run.protocol
            self.request = next(map(request, run.model_calls[:1]), None)
        self.strategies[strategy(run)] += 1
        self.shapes[shape(run)] += 1
        self.ungrounded += any(step.ungrounded for step in run.steps)


class Drift:
    """One question, after one history, by implementation. Runs that the endpoint failed
    tell nothing of a decision and are left out."""

    def __init__(self, question: str, history: Sequence[str] = ()) -> None:
        self.question = question
        self.history = tuple(history)
        self.failed = 0
        """Runs that the endpoint failed."""
        self.by_name: dict[str, Decisions] = {}
        """What each implementation decided; the first one is the baseline."""

    def add(self, run: Run) -> None:
        """Count the run."""
        decisions = self.by_name.setdefault(run.implementation, Decisions())
        if run.status == "model_error":
            self.failed += 1
        else:
            decisions.add(run)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The baseline with each other implementation."""
        first, *others = self.by_name
        return [(first, other) for other in others]

    def agreement(self, left: str, right: str) -> float | None:
        """Return the share of pairs of runs that agree, two different ones where both
        are of one implementation."""
        lefts, rights = self.by_name[left].strategies, self.by_name[right].strategies
        return agreement(lefts, rights, itself=left == right)

    def verdicts(self, level: float) -> list[DriftVerdict]:
        """Return a verdict for each pair, at this level of significance."""
        return [self._verdict(*pair, level) for pair in self.pairs]

    def _verdict(self, left: str, right: str, level: float) -> DriftVerdict:
        a, b = self.by_name[left], self.by_name[right]
        test = _test(a, b)
        if not a.runs or not b.runs:
            verdict = "inconclusive"
        elif len({*a.strategies, *b.strategies}) == 1:
            verdict = "equivalent"
        elif test.p <= level:
            verdict = "different"
        elif LOOKS * smallest_p(a.runs, b.runs) > level:
            verdict = "inconclusive"
        else:
            verdict = "indistinguishable"
        return DriftVerdict(
            left,
            right,
            self.question,
            verdict,
            self._first_requests(a, b),
            p=test.p,
            level=level,
            method=test.method,
            agreement=self.agreement(left, right),
            own_agreement=(self.agreement(left, left), self.agreement(right, right)),
            runs=(a.runs, b.runs),
            history=self.history,
        )

    def _first_requests(self, a: Decisions, b: Decisions) -> Divergence | None:
        """Where the first requests of two implementations differ, None where they are
        the same or cannot be, because the two ask in different forms. Of a follow-up
        question only what stands beside the messages: its conversation has drifted."""
        if a.request is None or b.request is None or a.protocol != b.protocol:
            return None
        for place in differences(a.request, b.request):
            if not (self.history and place[0].startswith("$.messages")):
                return Divergence("request", 1, *place)
        return None

    def to_json(self) -> dict[str, Any]:
        """Return what was counted, as it stands in JSON."""
        names = self.by_name
        return {
            "question": self.question,
            "history": list(self.history),
            "strategies": {name: each.strategies for name, each in names.items()},
            "agreement": {
                left: {right: self.agreement(left, right) for right in names}
                for left in names
            },
            "ungrounded_runs": {name: each.ungrounded for name, each in names.items()},
            "failed": self.failed,
        }


def _test(a: Decisions, b: Decisions) -> Test:
    """The clearer of both looks."""
    looks = (
        freeman_halton(a.strategies, b.strategies),
        freeman_halton(a.shapes, b.shapes),
    )
    clearer = min(looks, key=lambda test: test.p)
    return replace(clearer, p=min(1.0, LOOKS * clearer.p))


class Drifts:
    """The drift of each question, in order of appearance, counted as the runs come.

    The implementation that is named first, or appears first of all, is the baseline at
    each question.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.runs = 0
        self._names = {name: place for place, name in enumerate(names)}
        self._by_question: dict[tuple[str, ...], Drift] = {}

    def add(self, run: Run) -> None:
        """Count the run at its question."""
        self.runs += 1
        self._names.setdefault(run.implementation, len(self._names))
        asked = (*run.history, run.question)
        if asked not in self._by_question:
            self._by_question[asked] = Drift(run.question, run.history)
        self._by_question[asked].add(run)

    def __iter__(self) -> Iterator[Drift]:
        for drift in self._by_question.values():
            ordered = sorted(drift.by_name, key=lambda name: self._names[name])
            drift.by_name = {name: drift.by_name[name] for name in ordered}
            yield drift


def by_question(runs: Iterable[Run], names: Iterable[str] = ()) -> list[Drift]:
    """Return the drift of each question; `names` in the order of the implementations,
    the baseline first."""
    drifts = Drifts(names)
    for run in runs:
        drifts.add(run)
    return list(drifts)


def judged(drifts: Sequence[Drift]) -> list[list[DriftVerdict]]:
    """Return the verdicts of each, LEVEL shared out equally among all their pairs."""
    pairs = sum(len(drift.pairs) for drift in drifts)
    return [drift.verdicts(LEVEL / max(pairs, 1)) for drift in drifts]
