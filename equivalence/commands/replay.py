"""replay: implementations on recorded answers, offline."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from equivalence.commands.arguments import (
    implementations_of,
    judge_of,
    load_tools,
    run_file,
)
from equivalence.errors import UsageError
from equivalence.judge.compare import among_each_other
from equivalence.judge.exit_codes import exit_code
from equivalence.judge.replay import cells, replay
from equivalence.runs.files import read_runs, to_json
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Run
from equivalence.show import replay as show
from equivalence.show import terminal
from equivalence.show.markdown import write_markdown
from equivalence.table import Table


def replay_command(arguments: argparse.Namespace, table: Table) -> int:
    """Replay what the arguments ask for; return the exit code, which is about what the
    code did on the recorded replies."""
    path = arguments.file
    recorded = list({run.asked: run for run in read_runs(path)}.values())
    if not recorded:
        raise UsageError(f"{path} holds no run")
    wanted = [run for run in recorded if _wanted(run, recorded, arguments.question)]
    if not wanted:
        raise UsageError(f"{path} has no recorded run of these questions to replay")
    own = arguments.implementation is None
    implementations = (
        _recorded_ones(path, wanted, table)
        if own
        else implementations_of(table, arguments.implementation)
    )
    pairs = [
        ([run for run in wanted if run.implementation == source], implementation)
        for implementation in implementations
        for source in dict.fromkeys(run.implementation for run in wanted)
        if source == implementation.name or arguments.cross or not own
    ]
    pairs = [(r, one) for r, one in pairs if r[0].protocol == one.protocol]
    tools = load_tools(arguments.tools or _recorded_tools(path, wanted, table))
    judge = judge_of(arguments)
    total = sum(len(runs) for runs, _ in pairs)
    replayed = (each for runs, one in pairs for each in replay(runs, one, tools, judge))
    with run_file(arguments.out) as out:
        played = []
        for each in terminal.tracked(replayed, "replaying", total):
            played.append(each)
            if out is not None:
                out.append(each.run)
    among = among_each_other(each.recorded for each in played) if own else []
    console = terminal.console(sys.stderr if arguments.json else sys.stdout)
    show.replays(console, played, among, in_full=bool(arguments.question))
    if arguments.json:
        document = {
            "runs": [to_json(each.run) for each in played],
            "verdicts": [each.verdict.to_json() for each in played],
            "recorded": [verdict.to_json() for verdict in among],
            "cross": [asdict(cell) for cell in cells(played)],
        }
        print(json.dumps(document, ensure_ascii=False))
    write_markdown(arguments.markdown, [each.verdict for each in played])
    return exit_code([each.verdict for each in played])


def _wanted(run: Run, recorded: Sequence[Run], questions: Sequence[str]) -> bool:
    """Whether the run belongs to a conversation with one of the questions, or leads to
    one of them; all do where there are none."""
    if not questions or {*run.history, run.question} & {*questions}:
        return True
    so_far = [*run.history, run.question]
    return any(
        other.question in questions and other.history[: len(so_far)] == so_far
        for other in recorded
    )


def _recorded_tools(path: Path, runs: Sequence[Run], table: Table) -> str:
    """The tools that the runs were recorded with, if they are those of the table: a
    file does not decide what is imported here."""
    for run in runs:
        if run.tools and run.tools != table.tools:
            raise UsageError(
                f"{path} was recorded with --tools {run.tools}: give it here too"
            )
    return next((run.tools for run in runs if run.tools), "")


def _recorded_ones(
    path: Path, runs: Sequence[Run], table: Table
) -> list[Implementation]:
    """The recorded implementations that the table knows by their name: a file does not
    decide what is imported or run here."""
    known = {**table.implementations, **table.variants}
    names = dict.fromkeys(run.implementation for run in runs)
    foreign = [name for name in names if name not in known]
    if foreign:
        print(
            f"passed over, because the table does not list them: {', '.join(foreign)};"
            " name them with --implementation",
            file=sys.stderr,
        )
    found = [known[name] for name in names if name in known]
    if not found:
        raise UsageError(
            f"{path} was recorded for {', '.join(foreign)}, which the table does not"
            " list: name an --implementation"
        )
    return found
