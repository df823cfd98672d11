"""Runs and their verdicts as they come: shown at once, or at the end as JSON."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from equivalence.judge.compare import RULES, Judge, Verdict, ignored
from equivalence.runs.files import to_json
from equivalence.runs.output import json_stream
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
    """Runs as one JSON document on standard output. Each waits in a file until the end,
    so that none is kept in memory, and nothing that an agent prints meanwhile gets into
    the document; what is told of them stands behind."""

    def __init__(self) -> None:
        self._written = tempfile.TemporaryFile(  # noqa: SIM115, the end closes it
            "w+", encoding="utf-8", errors="surrogatepass"
        )
        self._between = ""

    def add(self, run: Run) -> None:
        """Write one run."""
        text = json.dumps(to_json(run), ensure_ascii=False)
        self._written.write(self._between + text)
        self._between = ", "

    def end(self, **told: Any) -> None:
        """Print the runs, and what is told of them."""
        out = json_stream()
        with self._written as written:
            written.seek(0)
            out.write('{"runs": [')
            shutil.copyfileobj(written, out)
        rest = json.dumps(told, ensure_ascii=False)[1:]
        out.write(f"], {rest}\n")
