"""record: runs into a file, to be replayed without the model."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from equivalence.commands.arguments import plan_of, run_file
from equivalence.commands.run import gave_up
from equivalence.judge.compare import Judge
from equivalence.language import _
from equivalence.runs.files import RunIndex
from equivalence.runs.plan import Plan
from equivalence.runs.session import EndpointFailed, gather, together
from equivalence.runs.upstreams import Upstreams
from equivalence.show import terminal
from equivalence.show.report import JsonRuns
from equivalence.table import Table


def record_command(arguments: argparse.Namespace, table: Table) -> int:
    """Record what the arguments ask for; return the exit code: 0 when every run came to
    an end that the endpoint did not spoil."""
    plan = plan_of(arguments, table)
    new_upstream = Upstreams(plan.settings, table.upstream, table.folder)
    ends = Counter[str]()
    failure = None
    with run_file(arguments.out) as out:
        gathered = gather(plan, new_upstream, out, again=arguments.again)
        try:
            for run in terminal.tracked(gathered, _("recording"), len(plan)):
                ends[run.status] += 1
        except EndpointFailed as error:
            failure = error
    console = terminal.console(sys.stderr if arguments.json else sys.stdout)
    words = ", ".join(f"{count} {status}" for status, count in ends.most_common())
    console.print(
        terminal.text(
            _("{count} runs in {out}: {words}").format(
                count=ends.total(), out=arguments.out, words=words
            )
        )
    )
    console.print(
        terminal.text(
            _("replay: python -m equivalence replay {out}").format(out=arguments.out)
        )
    )
    if failure:
        print(gave_up(failure, kept=True), file=sys.stderr)
    if arguments.json:
        _print_json(plan, arguments.out)
    return 3 if failure or ends["model_error"] or ends["failed"] else 0


def _print_json(plan: Plan, path: Path) -> None:
    """Print what the file has of the plan, question by question, and how its runs
    compare with each other."""
    index = RunIndex([path])
    asked = [plan.redaction.asked(asked) for *_, asked in plan.runs()]
    there = (index.read(each) for each in asked if each in index.places)
    judge, document = Judge(), JsonRuns()
    verdicts: list[Any] = []
    for first, *others in together(there, plan):
        for run in (first, *others):
            document.add(run)
        verdicts += [judge(first, run).to_json() for run in others]
    document.end(verdicts=verdicts)
    index.close()
