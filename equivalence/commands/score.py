"""score: the benchmark put to implementations, and the figures that come of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import msgspec

from equivalence.commands.arguments import (
    implementations_of,
    run_file,
    scale_of,
    settings_of,
)
from equivalence.commands.run import gave_up
from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.runs.files import read_runs
from equivalence.runs.hints import hint
from equivalence.runs.output import json_stream
from equivalence.runs.plan import CLOCK, Plan
from equivalence.runs.record import Run
from equivalence.runs.session import EndpointFailed, gather
from equivalence.runs.upstreams import Upstreams
from equivalence.runs.watched import load_tools
from equivalence.score.cases import Case, read_cases
from equivalence.score.figures import Answered, Benchmark, score
from equivalence.show import score as show
from equivalence.show import terminal
from equivalence.table import Table


def score_command(arguments: argparse.Namespace, table: Table) -> int:
    """Put the benchmark to the implementations, show the figures; return the exit
    code."""
    path = arguments.cases or table.cases
    if path is None:
        raise UsageError(
            _(
                "no cases: give --cases FILE, or name a file in"
                " [tool.equivalence] (cases = ...)"
            )
        )
    cases, published = read_cases(path, load_tools(table.tools or ""))
    benchmark = Benchmark(cases, table.redaction)
    expected = 0
    failure: EndpointFailed | None = None
    interrupted = False
    try:
        if arguments.recorded:
            names = arguments.implementation
            for run in read_runs(*arguments.recorded):
                if not names or run.implementation in names:
                    benchmark.add(run)
        else:
            plan = _plan(arguments, table, cases)
            expected = len({asked.conversation for *_, asked in plan.runs()})
            for run in _asked(plan, arguments, table):
                benchmark.add(run)
    except KeyboardInterrupt:
        interrupted = True
        if not benchmark.answered:
            raise
    except EndpointFailed as error:
        failure = error
    answered = benchmark.answered
    if arguments.recorded and not answered:
        raise UsageError(_("no case of these is answered in what was recorded"))
    scores = [score(name, answered) for name in benchmark.implementations]
    out = terminal.console(sys.stderr if arguments.json else sys.stdout)
    show.table(out, scores, published)
    show.notes(out, scores, list(benchmark.models), published)
    show.failures(
        out,
        [each for each in answered if not each.outcome.completed],
        listed=arguments.failed,
    )
    if arguments.json:
        document = {
            "scores": [asdict(each) for each in scores],
            "published": msgspec.to_builtins(published),
            "outcomes": [each.to_json() for each in answered],
        }
        print(json.dumps(document, ensure_ascii=False), file=json_stream())
    if interrupted or failure:
        why = _("interrupted")
        if failure:
            why = gave_up(failure, arguments.out is not None)
        rest = _("the figures rest on {count} of {expected} cases").format(
            count=len(answered), expected=expected
        )
        print(_("{why}; {rest}").format(why=why, rest=rest), file=sys.stderr)
    if failure and (advice := hint(str(failure))):
        print(advice, file=sys.stderr)
    return 130 if interrupted else _exit_code(answered, failed=bool(failure))


def _plan(arguments: argparse.Namespace, table: Table, cases: Sequence[Case]) -> Plan:
    """Every case once, at the time that its expected results are of."""
    return Plan(
        implementations_of(table, arguments.implementation),
        [[question.ask for question in case.questions] for case in cases],
        settings_of(arguments).model_copy(update={"clock": CLOCK}),
        load_tools(table.tools or ""),
        table.tools or "",
        redaction=table.redaction,
        **scale_of(arguments),
    )


def _asked(plan: Plan, arguments: argparse.Namespace, table: Table) -> Iterator[Run]:
    new_upstream = Upstreams(plan.settings, table.upstream, table.folder)
    with run_file(arguments.out) as out:
        runs = gather(plan, new_upstream, out, again=arguments.again)
        yield from terminal.tracked(runs, _("asking"), len(plan))


def _exit_code(answered: Sequence[Answered], *, failed: bool) -> int:
    """1 where a case failed, 3 where the endpoint did, 0 where all are completed."""
    judged = [each for each in answered if not each.left_out]
    if not all(each.outcome.completed for each in judged):
        return 1
    return 3 if failed or not judged or len(judged) < len(answered) else 0
