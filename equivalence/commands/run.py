"""run: implementations on questions, compared."""

from __future__ import annotations

import argparse
import sys

from equivalence.commands.arguments import judge_of, plan_of, run_file
from equivalence.judge.exit_codes import exit_code
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs.session import EndpointFailed, gather, together
from equivalence.runs.upstreams import Upstreams
from equivalence.show.markdown import write_markdown
from equivalence.show.report import Report
from equivalence.table import Table


def run_command(arguments: argparse.Namespace, table: Table) -> int:
    """Run what the arguments ask for; return the exit code."""
    plan = plan_of(arguments, table)
    new_upstream = Upstreams(plan.settings, table.upstream, table.folder)
    judge, failure = judge_of(arguments), None
    report = Report(judge, as_json=arguments.json, rules=arguments.rules)
    with run_file(arguments.out) as out, report:
        runs = gather(plan, new_upstream, out, again=arguments.again)
        try:
            for group in together(runs, plan):
                report.add(group, [judge(group[0], run) for run in group[1:]])
        except EndpointFailed as error:
            failure = error
    if failure:
        print(gave_up(failure, arguments.out is not None), file=sys.stderr)
    write_markdown(arguments.markdown, report.verdicts)
    return exit_code(report.verdicts, report.statuses, failed=bool(failure))


def gave_up(failure: EndpointFailed, kept: bool) -> str:
    """Return in one line that the endpoint failed too often, and what to do."""
    words = _("given up: {failure}")
    if kept:
        words = _("given up: {failure}; the same command goes on from here")
    return words.format(failure=translated(str(failure)))
