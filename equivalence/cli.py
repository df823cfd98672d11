"""Commands of the judge. Only what a command needs is imported: --help, list and diff
load neither LangChain nor openai nor pydantic.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from equivalence import record
from equivalence.compare import Judge, Verdict, pair
from equivalence.implementations import LADDER, STOCK
from equivalence.record import Run
from usage import UsageError

EXIT_CODES = (
    "exit codes: 0 all equivalent, 1 a difference, 3 inconclusive or"
    " indistinguishable, 2 wrong usage or configuration"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:  # a console that lacks a character shows "?" instead
            reconfigure(errors="replace")
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.command(arguments))
    except (UsageError, OSError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; what was recorded is kept", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m equivalence",
        description="Prove on the wire whether two versions of an agent are the same.",
        epilog=EXIT_CODES,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser(
        "run", help="run implementations on questions and compare", epilog=EXIT_CODES
    )
    run.set_defaults(command=_run)
    _add_trial(run)
    _add_output(run)

    recording = commands.add_parser(
        "record",
        help="record every exchange on a cassette, to be replayed without the model",
        epilog="An interrupted recording is continued by the same command.",
    )
    recording.set_defaults(command=_record)
    _add_trial(recording)
    recording.add_argument(
        "--out", type=Path, required=True, metavar="CASSETTE", help="file to write"
    )
    recording.add_argument(
        "--note", default="", metavar="TEXT", help="what to know about the server"
    )
    _add_output(recording, out=False)

    again = commands.add_parser(
        "replay",
        help="run implementations on recorded answers, offline",
        epilog="exit codes: 0 the code did what was recorded and the recordings agree,"
        " 1 the code differs, 3 only the model's replies differ, 2 wrong usage",
    )
    again.set_defaults(command=_replay)
    again.add_argument("cassette", type=Path, metavar="CASSETTE")
    again.add_argument("question", nargs="*", help="only these, with their traces")
    again.add_argument(
        "--implementation",
        action="append",
        metavar="NAME|module:function",
        help="on the answers recorded for each other one; default: each on its own",
    )
    again.add_argument(
        "--cross", action="store_true", help="each on the answers of all the others too"
    )
    again.add_argument("--tools", metavar="module:NAME", help="your own tools")
    _add_output(again)

    noise = commands.add_parser(
        "drift",
        help="ask many times: do two differ more often than each from itself?",
        epilog=EXIT_CODES,
    )
    noise.set_defaults(command=_drift)
    _add_trial(noise, questions="the first demo question", repeats=20)
    noise.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the offline model"
    )
    noise.add_argument(
        "--recorded",
        action="append",
        type=Path,
        metavar="FILE",
        help="ask nobody: take the runs of a cassette or of --out; repeat it",
    )
    _add_output(noise)

    diff = commands.add_parser("diff", help="compare recorded runs", epilog=EXIT_CODES)
    diff.set_defaults(command=_diff)
    diff.add_argument("left", type=Path, metavar="A.jsonl")
    diff.add_argument("right", type=Path, metavar="B.jsonl")
    _add_output(diff, out=False)

    table = commands.add_parser(
        "matrix", help="every mechanism scenario in front of every implementation"
    )
    table.set_defaults(command=_matrix)
    table.add_argument("--scenario", metavar="NAME", help="one of them, in full")
    table.add_argument("--json", action="store_true", help="print one JSON document")

    page = commands.add_parser(
        "report", help="write recorded runs as one self-contained HTML page"
    )
    page.set_defaults(command=_report)
    page.add_argument("files", nargs="+", type=Path, metavar="RUNS.jsonl")
    page.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="default: report.html; replaced at once, never half written",
    )

    figures = commands.add_parser(
        "score",
        help="the benchmark: how many cases are completed, at what cost",
        epilog="exit codes: 0 every case completed, 1 not every case, 2 wrong usage or"
        " configuration. Ctrl-C ends it with the figures so far.",
    )
    figures.set_defaults(command=_score)
    figures.add_argument(
        "--implementation",
        action="append",
        metavar="NAME|module:function",
        help="repeat it; default: the whole ladder",
    )
    _add_model(figures)
    figures.add_argument(
        "--cases", type=Path, metavar="FILE", help="default: scenarios/benchmark.yaml"
    )
    figures.add_argument(
        "--failed", action="store_true", help="list what was not completed, and why"
    )
    _add_output(figures)

    listing = commands.add_parser("list", help="list the implementations")
    listing.set_defaults(command=_list)
    return parser


def _add_trial(
    parser: argparse.ArgumentParser,
    *,
    questions: str = "the demo questions",
    repeats: int = 1,
) -> None:
    parser.add_argument("question", nargs="*", help=f"default: {questions}")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="one a line")
    parser.add_argument(
        "--implementation",
        action="append",
        metavar="NAME|module:function",
        help="repeat it; the first is what the others are compared with",
    )
    parser.add_argument("--tools", metavar="module:NAME", help="your own tools")
    parser.add_argument(
        "--command",
        dest="commands",
        action="append",
        default=[],
        metavar='"CMD {question}"',
        help="an agent in any language; its base URL is in $OPENAI_BASE_URL",
    )
    _add_model(parser)
    parser.add_argument(
        "--repeats", type=int, default=repeats, metavar="R", help="default %(default)s"
    )
    parser.add_argument("--raw", action="store_true", help="switch repairs off")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base-url", metavar="URL", help="endpoint (LLM_BASE_URL)")
    parser.add_argument("--model", metavar="NAME", help="model name (LLM_MODEL)")
    parser.add_argument("--temperature", type=float, metavar="T", help="default 0")
    parser.add_argument("--max-steps", type=int, metavar="N", help="default 10")


def _add_output(parser: argparse.ArgumentParser, *, out: bool = True) -> None:
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document, nothing else"
    )
    if out:
        parser.add_argument("--out", type=Path, metavar="FILE", help="append the runs")


def _run(arguments: argparse.Namespace) -> int:
    from equivalence.run import run_all
    from equivalence.trial import trial

    asked = trial(arguments)
    report = Report(as_json=arguments.json)
    judge = Judge()
    try:
        for runs in run_all(
            asked.subjects,
            asked.conversations,
            asked.settings,
            asked.tools,
            repeats=asked.repeats,
        ):
            for run in runs:
                if arguments.out:
                    record.append(arguments.out, run)
            report.add(runs, [judge(runs[0], run) for run in runs[1:]])
    finally:
        report.end()
    return report.exit_code()


def _record(arguments: argparse.Namespace) -> int:
    from equivalence.recording import record_command

    return record_command(arguments)


def _replay(arguments: argparse.Namespace) -> int:
    from equivalence.replay import replay_command

    return replay_command(arguments)


def _drift(arguments: argparse.Namespace) -> int:
    from equivalence.drift import drift_command

    return drift_command(arguments)


def _diff(arguments: argparse.Namespace) -> int:
    paths = (arguments.left, arguments.right)
    pairs, alone = pair(*(record.read(path) for path in paths))
    if not pairs:
        raise UsageError("the two files have no question in common")
    report, judge = Report(as_json=arguments.json), Judge()
    for couple in pairs:
        left, right = (
            replace(run, implementation=f"{run.implementation} in {path.name}")
            for run, path in zip(couple, paths, strict=True)
        )
        report.add([left, right], [judge(left, right)])
    report.end()
    for question in dict.fromkeys(run.question for run in alone):
        print(f"in one file only: {question}", file=sys.stderr)
    return report.exit_code() or (3 if alone else 0)


def _matrix(arguments: argparse.Namespace) -> int:
    from rich.progress import track

    from equivalence import show
    from equivalence.matrix import GROUPS, matrix, tally
    from equivalence.scenarios import read_scenarios

    scenarios = read_scenarios()
    if arguments.scenario:
        scenarios = [each for each in scenarios if each.name == arguments.scenario]
        if not scenarios:
            raise UsageError(f"no scenario is named {arguments.scenario!r}")
    out = show.console(sys.stderr if arguments.json else sys.stdout)
    rows = track(
        matrix(scenarios, GROUPS),
        "playing",
        total=len(scenarios),
        console=show.console(sys.stderr),
        transient=True,
    )
    cells = [cell for row in rows for cell in row]
    if arguments.scenario:
        show.scenario_in_full(out, scenarios[0], cells)
    else:
        for group in GROUPS:
            show.matrix_table(out, cells, group.name)
    counts = tally(cells)
    show.matrix_tally(out, counts)
    if arguments.json:
        pairs = [
            {"group": group, "implementation": name, "equal": equal, "total": total}
            for (group, name), (equal, total) in counts.items()
        ]
        document = {"cells": [cell.to_json() for cell in cells], "pairs": pairs}
        print(json.dumps(document, ensure_ascii=False, default=str))
    aligned = [cell for cell in cells if cell.group == "aligned"]
    return 0 if all(cell.equal for cell in aligned) else 1


def _report(arguments: argparse.Namespace) -> int:
    from equivalence.report import write_report

    print(write_report(arguments.files, arguments.out))
    return 0


def _score(arguments: argparse.Namespace) -> int:
    from equivalence.score import score_command

    return score_command(arguments)


def _list(arguments: argparse.Namespace) -> int:
    for implementation in (*LADDER, *STOCK):
        print(f"{implementation.name:17}{implementation.about}")
    return 0


class Report:
    """Gathers runs and verdicts: shown at once to people, or at the end as JSON."""

    def __init__(self, *, as_json: bool) -> None:
        from equivalence import show

        self.as_json = as_json
        self.show = show
        self.out = show.console(sys.stderr if as_json else sys.stdout)
        self.runs: list[Run] = []
        self.verdicts: list[Verdict] = []

    def add(self, runs: Sequence[Run], verdicts: Sequence[Verdict]) -> None:
        """Show the runs of one question and what their comparison came to."""
        self.runs += runs
        self.verdicts += verdicts
        self.show.side_by_side(self.out, runs)
        self.show.notes(self.out, runs)
        self.show.verdicts(self.out, verdicts)

    def end(self) -> None:
        """Show the summary, and print the JSON document if it was asked for."""
        self.show.summary(self.out, self.verdicts)
        if self.as_json:
            document = {
                "runs": [run.to_json() for run in self.runs],
                "verdicts": [verdict.to_json() for verdict in self.verdicts],
            }
            print(json.dumps(document, ensure_ascii=False))

    def exit_code(self) -> int:
        """Return 1 for a difference, else 3 for a doubt, else 0."""
        found = {verdict.verdict for verdict in self.verdicts}
        if not self.verdicts:  # one implementation alone: did it answer?
            failed = {run.status for run in self.runs} & {"failed", "model_error"}
            found = {"inconclusive" if failed else "equivalent"}
        return 1 if "different" in found else 3 if found != {"equivalent"} else 0
