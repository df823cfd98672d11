"""record: runs into a file, to be replayed without the model."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from equivalence.commands.arguments import plan_of, run_file
from equivalence.commands.run import gave_up
from equivalence.judge.compare import among_each_other
from equivalence.language import _
from equivalence.runs.files import to_json
from equivalence.runs.record import Run
from equivalence.runs.session import EndpointFailed, gather
from equivalence.runs.upstreams import Upstreams
from equivalence.show import terminal
from equivalence.table import Table


def record_command(arguments: argparse.Namespace, table: Table) -> int:
    """Record what the arguments ask for; return the exit code: 0 when every run came to
    an end that the endpoint did not spoil."""
    plan = plan_of(arguments, table)
    new_upstream = Upstreams(plan.settings, table.upstream, table.folder)
    runs: list[Run] = []
    failure = None
    with run_file(arguments.out) as out:
        gathered = gather(plan, new_upstream, out, again=arguments.again)
        try:
            for run in terminal.tracked(gathered, _("recording"), len(plan)):
                runs.append(run)
        except EndpointFailed as error:
            failure = error
    ends = Counter(run.status for run in runs)
    console = terminal.console(sys.stderr if arguments.json else sys.stdout)
    words = ", ".join(f"{count} {status}" for status, count in ends.most_common())
    console.print(
        terminal.text(
            _("{count} runs in {out}: {words}").format(
                count=len(runs), out=arguments.out, words=words
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
        document = {
            "runs": [to_json(run) for run in runs],
            "verdicts": [verdict.to_json() for verdict in among_each_other(runs)],
        }
        print(json.dumps(document, ensure_ascii=False))
    return 3 if failure or ends["model_error"] or ends["failed"] else 0
