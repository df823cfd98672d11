"""Runs and their verdicts as they come: shown at once, or at the end as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from equivalence.judge.compare import RULES, Judge, Verdict, ignored
from equivalence.runs.files import to_json
from equivalence.runs.record import Run
from equivalence.show import terminal


class Report:
    """Gathers runs and verdicts; a context manager, whose end shows the summary."""

    def __init__(self, judge: Judge, *, as_json: bool, rules: bool = False) -> None:
        self.as_json = as_json
        self.judge = judge
        self.ignored = set(RULES) if rules else set()
        self.out = terminal.console(sys.stderr if as_json else sys.stdout)
        self.runs: list[Run] = []
        self.verdicts: list[Verdict] = []

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def add(self, runs: Sequence[Run], verdicts: Sequence[Verdict]) -> None:
        """Show the runs of one question and what their comparison came to."""
        self.runs += runs
        self.verdicts += verdicts
        for run in runs[1:]:
            self.ignored |= ignored(runs[0], run, self.judge.rules)
        terminal.side_by_side(self.out, runs)
        terminal.notes(self.out, runs)
        terminal.verdicts(self.out, verdicts)

    def end(self) -> None:
        """Show the summary, and print the JSON document if it was asked for."""
        terminal.summary(self.out, self.verdicts, self.ignored, self.judge.rules.ignore)
        terminal.absent(self.out, self.judge.accept)
        if self.as_json:
            document = {
                "runs": [to_json(run) for run in self.runs],
                "verdicts": [verdict.to_json() for verdict in self.verdicts],
            }
            print(json.dumps(document, ensure_ascii=False))
