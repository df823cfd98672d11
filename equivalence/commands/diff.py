"""diff: recorded runs of two files, compared."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from equivalence.errors import UsageError
from equivalence.judge.compare import Judge, pair
from equivalence.judge.exit_codes import exit_code
from equivalence.runs.files import read_runs
from equivalence.show.report import Report
from equivalence.table import Table


def diff_command(arguments: argparse.Namespace, table: Table) -> int:
    """Compare the runs of two files, question by question; return the exit code."""
    paths = (arguments.left, arguments.right)
    pairs, alone = pair(*(list(read_runs(path)) for path in paths))
    if not pairs:
        raise UsageError("the two files have no question in common")
    judge = Judge()
    with Report(as_json=arguments.json) as report:
        for couple in pairs:
            left, right = (
                replace(run, implementation=f"{run.implementation} in {path.name}")
                for run, path in zip(couple, paths, strict=True)
            )
            report.add([left, right], [judge(left, right)])
    for question in dict.fromkeys(run.question for run in alone):
        print(f"in one file only: {question}", file=sys.stderr)
    return exit_code(report.verdicts, failed=bool(alone))
