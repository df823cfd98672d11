"""drift: many runs of one question; do two differ more often than each from itself?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from equivalence.commands.arguments import plan_of, run_file
from equivalence.commands.run import gave_up
from equivalence.errors import UsageError
from equivalence.judge.drift import by_question, judged
from equivalence.judge.exit_codes import exit_code
from equivalence.runs.files import read_runs, to_json
from equivalence.runs.plan import read_questions
from equivalence.runs.record import Run
from equivalence.runs.session import EndpointFailed, gather
from equivalence.runs.upstreams import upstreams
from equivalence.show import drift as show
from equivalence.show import terminal
from equivalence.table import Table


def drift_command(arguments: argparse.Namespace, table: Table) -> int:
    """Gather the runs, show what they come to; return the exit code."""
    runs: list[Run] = []
    failure: EndpointFailed | None = None
    interrupted = False
    try:
        runs.extend(_gathered(arguments, table, runs))
    except KeyboardInterrupt:
        interrupted = True
        if not runs:
            raise
    except EndpointFailed as error:
        failure = error
    drifts = by_question(runs)
    verdicts = judged(drifts)
    out = terminal.console(sys.stderr if arguments.json else sys.stdout)
    for drift in drifts:
        asked = drift.question, tuple(drift.history)
        show.drift(
            out, drift, [v for v in verdicts if (v.question, v.history) == asked]
        )
    show.drift_summary(out, verdicts)
    if arguments.json:
        document = {
            "runs": [to_json(run) for run in runs],
            "verdicts": [verdict.to_json() for verdict in verdicts],
            "drift": [drift.to_json() for drift in drifts],
        }
        print(json.dumps(document, ensure_ascii=False))
    if failure:
        print(gave_up(failure, arguments.out is not None), file=sys.stderr)
    if interrupted:
        print(f"interrupted: {len(runs)} runs are what this rests on", file=sys.stderr)
        return 130
    return exit_code(verdicts, runs, failed=bool(failure))


def _gathered(
    arguments: argparse.Namespace, table: Table, runs: list[Run]
) -> Iterator[Run]:
    """The runs, from the files they were recorded in or made now."""
    if arguments.recorded:
        names = arguments.implementation
        for run in read_runs(*arguments.recorded):
            if arguments.question and run.question not in arguments.question:
                continue
            if names and run.implementation not in names:
                continue
            yield run
        return
    if not arguments.question and not arguments.questions:
        if not table.questions:
            raise UsageError("nothing to ask: give a question, or --questions FILE")
        arguments.question = read_questions(table.questions)[0]
    plan = plan_of(arguments, table)
    new_upstream = upstreams(plan.settings, table.upstream, table.folder)
    with run_file(arguments.out) as out:
        gathered = gather(
            plan, new_upstream, out, again=arguments.again, seed=arguments.seed
        )
        yield from terminal.tracked(gathered, "asking", len(plan))
