"""Where a run parts from the measure: the cells it concerns, and what they hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

from equivalence.judge.compare import Divergence, Verdict, explain
from equivalence.runs.record import Run, Step
from equivalence.show.page.values import Part, contrast

CAUSE_SIGNS = {"request": "↑", "reply": "↓", "tool": "ƒ", "control": "◇"}


@dataclass(frozen=True)
class Parting:
    """Where one run parts from the measure, and what stands there on both sides."""

    column: int
    measure: str
    name: str
    divergence: Divergence
    sentence: str
    row: int
    """Number of the model call, 0 for the end of the run."""
    right_row: int
    """The same for the run itself, where its steps stand in other turns."""
    left: Part
    right: Part
    steps: tuple[int | None, int | None] = (None, None)
    """The step in which they part, in the measure and in the run."""

    @property
    def cause(self) -> str:
        return self.divergence.cause

    @property
    def path(self) -> str:
        return self.divergence.path

    @property
    def sign(self) -> str:
        return CAUSE_SIGNS[self.cause]


def parting_of(
    column: int,
    measure: str,
    name: str,
    left: Run,
    right: Run,
    verdict: Verdict,
    place: Divergence,
) -> Parting:
    """Return where the run of a column, `right`, parts from the measure, `left`."""
    ends = {
        "status": (left.status, right.status),
        "answer": (left.answer, right.answer),
    }
    last = max(len(left.model_calls), len(right.model_calls))
    row = min(place.model_call, last)
    if ends.get(place.path) == (place.left, place.right):
        row = 0
    steps = _parted_steps(left, right, place)
    before, now = contrast(place.left, place.right)
    return Parting(
        column=column,
        measure=measure,
        name=name,
        divergence=place,
        sentence=explain(verdict),
        row=row,
        right_row=row if steps[1] is None else turn(right, right.steps[steps[1]]),
        left=before,
        right=now,
        steps=steps,
    )


def _parted_steps(
    left: Run, right: Run, place: Divergence
) -> tuple[int | None, int | None]:
    """The step that a path such as steps[3].result means, in both runs: by its place in
    the turn, or in the whole run where one has its tool calls in text."""
    found = re.match(r"steps\[(\d+)\]", place.path)
    if not found:
        return None, None
    index = int(found[1])
    if "text" in (left.protocol, right.protocol):
        return index, index
    lefts, rights = (
        [i for i, step in enumerate(run.steps) if step.turn == place.model_call]
        for run in (left, right)
    )
    return index, rights[lefts.index(index)]


def turn(run: Run, step: Step) -> int:
    """Return the turn in which a step is shown: its own, or the nearest there is."""
    return min(max(step.turn, 1), len(run.model_calls))
