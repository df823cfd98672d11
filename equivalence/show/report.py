"""Runs and their verdicts as they come: shown at once, or at the end as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from equivalence.judge.compare import RULES, Judge, Verdict, ignored
from equivalence.runs.files import to_json
from equivalence.runs.record import Run
from equivalence.show import terminal


class Report:
    """Gathers runs and verdicts; a context manager, whose end shows the summary."""

    def __init__(self, judge: Judge, *, as_json: bool, rules: bool = False) -> None:
        self.judge = judge
        self.ignored = set(RULES) if rules else set()
        self.out = terminal.console(sys.stderr if as_json else sys.stdout)
        self.statuses: set[str] = set()
        """How runs ended."""
        self.verdicts: list[Verdict] = []
        self.document = JsonRuns() if as_json else None

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def add(self, runs: Sequence[Run], verdicts: Sequence[Verdict]) -> None:
        """Show the runs of one question and what their comparison came to."""
        self.statuses.update(run.status for run in runs)
        self.verdicts += verdicts
        if self.document:
            for run in runs:
                self.document.add(run)
        for run in runs[1:]:
            self.ignored |= ignored(runs[0], run, self.judge.rules)
        terminal.side_by_side(self.out, runs)
        terminal.notes(self.out, runs)
        terminal.verdicts(self.out, verdicts)

    def end(self) -> None:
        """Show the summary, and print the JSON document if it was asked for."""
        terminal.summary(self.out, self.verdicts, self.ignored, self.judge.rules.ignore)
        terminal.absent(self.out, self.judge.accept)
        if self.document:
            self.document.end(verdicts=[each.to_json() for each in self.verdicts])


class JsonRuns:
    """Runs as one JSON document on standard output, each written when it is there, so
    that none is kept; what is told of them stands behind."""

    def __init__(self) -> None:
        self._before = '{"runs": ['

    def add(self, run: Run) -> None:
        """Write one run."""
        text = json.dumps(to_json(run), ensure_ascii=False)
        sys.stdout.write(self._before + text)
        self._before = ", "

    def end(self, **told: Any) -> None:
        """Write what is told of the runs, and the end of the document."""
        begun = "" if self._before == ", " else self._before
        rest = json.dumps(told, ensure_ascii=False)[1:]
        sys.stdout.write(f"{begun}], {rest}\n")
