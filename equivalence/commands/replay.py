"""replay: implementations on recorded answers, offline."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from equivalence.commands.arguments import (
    implementations_of,
    judge_of,
    run_file,
)
from equivalence.errors import UsageError
from equivalence.judge.compare import Judge, among_each_other
from equivalence.judge.exit_codes import exit_code
from equivalence.judge.replay import Live, Replayed, Tally, replay
from equivalence.language import _
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Asked, Run
from equivalence.runs.upstreams import Upstreams
from equivalence.runs.watched import load_tools
from equivalence.settings import load_settings
from equivalence.show import replay as show
from equivalence.show import terminal
from equivalence.show.markdown import write_markdown
from equivalence.show.report import JsonRuns
from equivalence.table import Table
from equivalence.traces import run_index


def replay_command(arguments: argparse.Namespace, table: Table) -> int:
    """Replay what the arguments ask for; return the exit code, which is about what the
    code did on the recorded replies."""
    paths, asked_for = [arguments.file], []
    for text in arguments.question:
        if os.path.isfile(text):  # and not Path.is_file: a question may be long
            paths.append(Path(text))
        else:
            asked_for.append(text)
    path = " ".join(map(str, paths))
    index = run_index(paths)
    recorded = list(index.places)
    if not recorded:
        raise UsageError(_("{path} holds no run").format(path=path))
    questions = table.redaction.texts(asked_for)
    wanted = _wanted(recorded, questions)
    if not wanted:
        raise UsageError(
            _("{path} has no recorded run of these questions to replay").format(
                path=path
            )
        )
    own = arguments.implementation is None and not arguments.commands
    implementations = (
        _recorded_ones(path, wanted, table)
        if own
        else implementations_of(table, arguments.implementation, arguments.commands)
    )
    by_source: dict[str, list[Asked]] = {}
    for each in wanted:
        by_source.setdefault(each.implementation, []).append(each)
    pairs = [
        (index.runs(those), implementation)
        for implementation in implementations
        for source, those in by_source.items()
        if source == implementation.name or arguments.cross or not own
    ]
    pairs = [(r, one) for r, one in pairs if r[0].protocol == one.protocol]
    tools_recorded = arguments.tools == "recorded"
    named = None if tools_recorded else arguments.tools
    tools = load_tools(named or _recorded_tools(path, index.runs(wanted), table))
    live = _live(arguments, table)
    judge = judge_of(arguments)
    if live:
        rules = replace(judge.rules, ignore=(*judge.rules.ignore, "$.model"))
        judge = Judge(rules, judge.accept)
    total = sum(len(runs) for runs, _ in pairs)
    played, whole = Tally(), list[Replayed]()
    in_full = bool(asked_for) or live is not None
    document = JsonRuns() if arguments.json else None
    replayed = (
        each
        for runs, one in pairs
        for each in replay(
            runs,
            one,
            tools,
            judge,
            tools_recorded=tools_recorded,
            live=live,
            redaction=table.redaction,
        )
    )
    with run_file(arguments.out) as out:
        for again in terminal.tracked(replayed, _("replaying"), total):
            played.add(again)
            if in_full:
                whole.append(again)
            if out is not None:
                out.append(again.run)
            if document:
                document.add(again.run)
    those_played = (each for runs, _one in pairs for each in runs.asked)
    alone = own and not live
    among = list(among_each_other(those_played, index.read)) if alone else []
    index.close()
    console = terminal.console(sys.stderr if arguments.json else sys.stdout)
    done = _("their recorded results") if tools_recorded else _("run again")
    console.print(terminal.text(_("Tools: {done}.").format(done=done)))
    if live:
        console.print(
            terminal.text(
                _("From model call {first_call} on: {model}.").format(
                    first_call=live.first_call, model=live.model
                )
            )
        )
    show.replays(console, played, among, whole)
    if document:
        document.end(
            verdicts=[verdict.to_json() for verdict in played.verdicts],
            recorded=[verdict.to_json() for verdict in among],
            cross=[asdict(cell) for cell in played.cells],
        )
    write_markdown(arguments.markdown, played.verdicts)
    return exit_code(played.verdicts)


def _live(arguments: argparse.Namespace, table: Table) -> Live | None:
    """The live model that goes on from a model call, if one is asked for."""
    if arguments.first_live is None:
        if arguments.model or arguments.base_url:
            raise UsageError(_("--model and --base-url go with --from N"))
        return None
    if arguments.first_live < 1:
        raise UsageError(_("--from: model calls are numbered from 1"))
    settings = load_settings(base_url=arguments.base_url, model=arguments.model)
    new_upstream = Upstreams(settings, table.upstream, table.folder)
    return Live(arguments.first_live, settings.model, settings.base_url, new_upstream)


def _wanted(recorded: Sequence[Asked], questions: Sequence[str]) -> list[Asked]:
    """What belongs to a conversation with one of the questions, or leads to one of
    them; all does where there are none."""
    if not questions:
        return list(recorded)
    chosen = {*questions}
    leading = {
        each.history[:turn]
        for each in recorded
        if each.question in chosen
        for turn in range(1, len(each.history) + 1)
    }
    return [
        each
        for each in recorded
        if {*each.history, each.question} & chosen
        or (*each.history, each.question) in leading
    ]


def _recorded_tools(path: str, runs: Sequence[Run], table: Table) -> str:
    """The tools that the runs were recorded with, if they are those of the table: a
    file does not decide what is imported here."""
    for run in runs:
        if run.tools and run.tools != table.tools:
            raise UsageError(
                _("{path} was recorded with --tools {tools}: give it here too").format(
                    path=path, tools=run.tools
                )
            )
    return next((run.tools for run in runs if run.tools), "")


def _recorded_ones(
    path: str, runs: Sequence[Asked], table: Table
) -> list[Implementation]:
    """The recorded implementations that the table knows by their name: a file does not
    decide what is imported or run here."""
    known = {**table.implementations, **table.variants}
    names = dict.fromkeys(run.implementation for run in runs)
    foreign = [name for name in names if name not in known]
    if foreign:
        print(
            _(
                "passed over, because the table does not list them:"
                " {foreign}; name them with --implementation"
            ).format(foreign=", ".join(foreign)),
            file=sys.stderr,
        )
    found = [known[name] for name in names if name in known]
    if not found:
        raise UsageError(
            _(
                "{path} was recorded for {foreign}, which the table does"
                " not list: name an --implementation"
            ).format(path=path, foreign=", ".join(foreign))
        )
    return found
