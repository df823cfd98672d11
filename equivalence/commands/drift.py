"""drift: many runs of one question; do two differ more often than each from itself?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from equivalence.commands.arguments import plan_of, run_file
from equivalence.commands.run import gave_up
from equivalence.errors import UsageError
from equivalence.judge.drift import Drifts, judged
from equivalence.judge.exit_codes import exit_code
from equivalence.language import _
from equivalence.runs.files import read_runs
from equivalence.runs.record import Run
from equivalence.runs.session import EndpointFailed, gather
from equivalence.runs.upstreams import Upstreams
from equivalence.show import drift as show
from equivalence.show import terminal
from equivalence.show.report import JsonRuns
from equivalence.table import Table


def drift_command(arguments: argparse.Namespace, table: Table) -> int:
    """Count what the runs decided as they come, show what they come to; return the exit
    code."""
    counted = Drifts(arguments.implementation or ())
    ends: set[str] = set()
    document = JsonRuns() if arguments.json else None
    failure: EndpointFailed | None = None
    interrupted = False
    try:
        for run in _gathered(arguments, table):
            counted.add(run)
            ends.add(run.status)
            if document:
                document.add(run)
    except KeyboardInterrupt:
        interrupted = True
        if not counted.runs:
            raise
    except EndpointFailed as error:
        failure = error
    if arguments.recorded and not counted.runs:
        raise UsageError(_("nothing of that is in what was recorded"))
    drifts = list(counted)
    verdicts = judged(drifts)
    out = terminal.console(sys.stderr if arguments.json else sys.stdout)
    for drift, found in zip(drifts, verdicts, strict=True):
        show.drift(out, drift, found)
    every = [verdict for found in verdicts for verdict in found]
    show.drift_summary(out, every)
    if document:
        document.end(
            verdicts=[verdict.to_json() for verdict in every],
            drift=[drift.to_json() for drift in drifts],
        )
    if failure:
        print(gave_up(failure, arguments.out is not None), file=sys.stderr)
    if interrupted or failure:
        words = (
            _("interrupted: {count} runs are what this rests on")
            if interrupted
            else _("{count} runs are what this rests on")
        )
        print(words.format(count=counted.runs), file=sys.stderr)
    if interrupted:
        return 130
    return exit_code(every, ends, failed=bool(failure))


def _gathered(arguments: argparse.Namespace, table: Table) -> Iterator[Run]:
    """The runs, from the files they were recorded in or made now."""
    if arguments.recorded:
        names = arguments.implementation
        questions = table.redaction.texts(arguments.question)
        for path in arguments.recorded:
            for run in _latest(path):
                if questions and run.question not in questions:
                    continue
                if not names or run.implementation in names:
                    yield run
        return
    plan = plan_of(arguments, table)
    if not arguments.question and not arguments.questions:
        plan = replace(plan, conversations=plan.conversations[:1])
    new_upstream = Upstreams(plan.settings, table.upstream, table.folder)
    with run_file(arguments.out) as out:
        gathered = gather(
            plan, new_upstream, out, again=arguments.again, seed=arguments.seed
        )
        yield from terminal.tracked(gathered, _("asking"), len(plan))


def _latest(path: Path) -> Iterator[Run]:
    """The runs of a file; of one that was asked anew in it only the later one. It is
    read twice, so that no run is kept."""
    last = {run.asked: number for number, run in enumerate(read_runs(path))}
    for number, run in enumerate(read_runs(path)):
        if last[run.asked] == number:
            yield run
