"""The command line of the instrument: what each command takes, and where it is.

Only what a command needs is imported: --help, list and diff load neither LangChain nor
openai nor pydantic.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from equivalence import __version__
from equivalence.commands.arguments import (
    add_asked,
    add_command,
    add_comparison,
    add_implementations,
    add_judge,
    add_model,
    add_output,
    add_scale,
)
from equivalence.judge.exit_codes import EXIT_CODES
from equivalence.language import N_, _, translate_argparse
from equivalence.runs.output import (
    HelpFormatter,
    nothing_but_the_document,
    run_command,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    return run_command(partial(_main, argv))


def _main(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        command = f"{arguments.run}_command"
        module = import_module(f"equivalence.commands.{arguments.run}")
        function = getattr(module, command)
        as_json = getattr(arguments, "json", False)
        with nothing_but_the_document() if as_json else nullcontext():
            if not arguments.needs_table:
                return int(function(arguments))
            from equivalence.table import read_table

            return int(function(arguments, read_table()))
    except KeyboardInterrupt:
        print(_interrupted(arguments), file=sys.stderr)
        return 130


def _interrupted(arguments: argparse.Namespace) -> str:
    """What Ctrl-C left."""
    out = getattr(arguments, "out", None)
    if not out or arguments.run not in RECORDING:
        return _("interrupted")
    if out.is_file() and out.stat().st_size:  # a run is written whole, or not at all
        return _("interrupted; what was recorded is kept in {out}").format(out=out)
    return _("interrupted; nothing was recorded yet")


RECORDING = ("run", "record", "drift", "score", "replay")
"""The commands that write runs as they come."""


class _Command(argparse.ArgumentParser):
    """The parser of a command, which takes in its options when it is the one that was
    named: all of those of all commands take longer than Python needs to start."""

    def __init__(self, **how: Any) -> None:
        self._options: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        super().__init__(**how)

    def add_argument(self, *names: str, **how: Any) -> Any:
        """Keep an option for later."""
        self._options.append((names, how))

    def parse_known_args(self, *given: Any, **how: Any) -> Any:
        """Parse, as a parser does; the command line has named this command."""
        for names, option in self._options:
            super().add_argument(*names, **option)
        self._options.clear()
        return super().parse_known_args(*given, **how)


def _width() -> int:
    """The width of help, as argparse has it; its own way there loads the compressors of
    shutil."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns) - 2
    try:
        terminal = sys.__stdout__.fileno() if sys.__stdout__ else -1
        return (os.get_terminal_size(terminal).columns or 80) - 2
    except (ValueError, OSError):  # no terminal
        return 78


def _parser() -> argparse.ArgumentParser:
    translate_argparse()
    layout = partial(HelpFormatter, width=_width())
    parser = argparse.ArgumentParser(
        prog="python -m equivalence",
        description=_(
            "Prove on the wire whether two versions of an agent are the same."
        ),
        epilog=_(EXIT_CODES),
        formatter_class=layout,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"equivalence {__version__}",
        help=_("show program's version number and exit"),
    )
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", parser_class=_Command
    )

    def add(
        name: str, about: str, more: str = "", *, needs_table: bool = True
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=about,
            description=_("{about}. {more}")
            .format(about=f"{about[0].upper()}{about[1:]}", more=more)
            .strip(),
            epilog=_(EXIT_CODES),
            formatter_class=layout,
        )
        command.set_defaults(run=name, needs_table=needs_table)
        return command

    run = add("run", _("run implementations on questions and compare them"))
    add_asked(run)
    add_comparison(run)
    add_output(run)

    record = add(
        "record",
        _("record runs into a file, to be replayed without the model"),
        _("The same command goes on with an interrupted recording."),
    )
    add_asked(record)
    record.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=_("file to write")
    )
    record.add_argument(
        "--note", default="", metavar="TEXT", help=_("what to know about the server")
    )
    add_output(record, out=False)

    replay = add("replay", _("run implementations on recorded answers, offline"))
    replay.add_argument("file", type=Path, metavar="FILE")
    replay.add_argument(
        "question",
        nargs="*",
        metavar="FILE|QUESTION",
        help=_("more files; and questions: only these, with their traces"),
    )
    replay.add_argument(
        "--implementation",
        action="append",
        metavar="NAME|module:function",
        help=_("on the answers recorded for each other one; default: each on its own"),
    )
    replay.add_argument(
        "--cross",
        action="store_true",
        help=_("each on the answers of all the others too"),
    )
    replay.add_argument(
        "--command",
        dest="commands",
        action="append",
        default=[],
        metavar='"CMD {question}"',
        help=_("an agent in any language, on the recorded answers"),
    )
    replay.add_argument(
        "--tools",
        metavar="recorded|module:NAME",
        help=_(
            "recorded: run no tool, answer with its recorded results; else your own"
        ),
    )
    replay.add_argument(
        "--from",
        dest="first_live",
        type=int,
        metavar="N",
        help=_("a live model answers from model call N on: only the model can differ"),
    )
    replay.add_argument("--model", metavar="NAME", help=_("of --from"))
    replay.add_argument("--base-url", metavar="URL", help=_("of --from"))
    add_comparison(replay)
    add_output(replay)

    drift = add(
        "drift", _("ask many times: do two differ more often than each from itself?")
    )
    add_asked(drift, questions=N_("the first one of the table"), repeats=20)
    drift.add_argument(
        "--seed", type=int, default=0, metavar="N", help=_("of the offline model")
    )
    drift.add_argument(
        "--recorded",
        action="append",
        type=Path,
        metavar="FILE",
        help=_("ask nobody: take the runs of a file; repeat it"),
    )
    add_output(drift)

    diff = add(
        "diff",
        _("compare recorded runs: what differs is shown, what is equal counted"),
        needs_table=False,
    )
    diff.add_argument("files", nargs="+", type=Path, metavar="RUNS.jsonl")
    diff.add_argument(
        "--against",
        nargs="+",
        type=Path,
        metavar="RUNS.jsonl",
        help=_("the right side, where a side has several files"),
    )
    add_comparison(diff)
    diff.add_argument("--all", action="store_true", help=_("show equal runs too"))
    add_output(diff, out=False)

    matrix = add(
        "matrix",
        _("every mechanism scenario in front of implementations"),
        _(
            "Those of the table are compared with each other; where"
            " some are named, each is judged by what the scenarios"
            " expect: 0 all survived, 1 some not, 2 none applied to it."
        ),
    )
    add_implementations(matrix)
    add_command(matrix)
    matrix.add_argument(
        "--raw", action="store_true", help=_("named ones get the replies unrepaired")
    )
    matrix.add_argument("--scenario", metavar="NAME", help=_("one of them, in full"))
    matrix.add_argument(
        "--scenarios",
        type=Path,
        metavar="FOLDER",
        help=_("your own, with the tools of the table"),
    )
    matrix.add_argument("--tools", metavar="module:NAME", help=_("your own tools"))
    matrix.add_argument(
        "--json", action="store_true", help=_("print one JSON document")
    )

    itself = add(
        "self",
        _("each implementation against itself, with concurrent tools: never different"),
    )
    add_implementations(itself)
    add_command(itself)
    itself.add_argument(
        "--comparisons",
        type=int,
        default=200,
        metavar="N",
        help=_("default %(default)s"),
    )
    itself.add_argument(
        "--json", action="store_true", help=_("print one JSON document")
    )

    report = add("report", _("write recorded runs as one self-contained HTML page"))
    report.add_argument("files", nargs="+", type=Path, metavar="RUNS.jsonl")
    report.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help=_("default: report.html; replaced at once, never half written"),
    )
    report.add_argument(
        "--all",
        action="store_true",
        help=_("draw each question turn by turn, however many there are"),
    )
    add_judge(report)

    step = add(
        "step",
        _(
            "one question through the source of implementations, line"
            " by line, as a page"
        ),
        _("The lines are those that were at work when it ran."),
    )
    step.add_argument("question", nargs="?", help=_("default: the first of the table"))
    step.add_argument(
        "--recorded",
        type=Path,
        metavar="FILE",
        help=_("take the replies from its runs"),
    )
    add_implementations(step)
    step.add_argument("--tools", metavar="module:NAME", help=_("your own tools"))
    add_model(step)
    step.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("step.html"),
        metavar="FILE",
        help=_("default: step.html"),
    )

    score = add(
        "score",
        _("the benchmark: how many cases are completed, at what cost"),
        _("Ctrl-C ends it with the figures so far."),
    )
    score.add_argument(
        "--recorded",
        action="append",
        type=Path,
        metavar="FILE",
        help=_("ask nobody: take the runs of a file; repeat it"),
    )
    add_implementations(score)
    add_model(score)
    score.add_argument(
        "--cases", type=Path, metavar="FILE", help=_("default: the cases of the table")
    )
    score.add_argument(
        "--failed", action="store_true", help=_("list what was not completed, and why")
    )
    score.add_argument(
        "--again", action="store_true", help=_("ask anew what the file holds already")
    )
    add_scale(score)
    add_output(score)

    cost = add(
        "cost",
        _("what each implementation costs: time, memory, lines, depth of the stack"),
        _("Beside it stand loops by hand. Exit code 3: something was not measured."),
    )
    add_implementations(cost)
    cost.add_argument(
        "--rounds", type=int, default=20, metavar="N", help=_("default %(default)s")
    )
    cost.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="S",
        help=_("no new measurement begins after so many; default %(default)s"),
    )
    cost.add_argument(
        "--longest",
        type=int,
        default=50,
        metavar="N",
        help=_("model calls of the longest run that is measured; default %(default)s"),
    )
    cost.add_argument(
        "--peers",
        type=Path,
        metavar="FOLDER",
        help=_("beside it other agent libraries, from the environment in FOLDER"),
    )
    cost.add_argument(
        "--svg", type=Path, metavar="FILE", help=_("draw the growth into this file")
    )
    cost.add_argument("--json", action="store_true", help=_("print one JSON document"))

    export = add("export", _("write recorded runs in a form that other tools read"))
    export.add_argument("files", nargs="+", type=Path, metavar="RUNS.jsonl")
    export.add_argument(
        "--to",
        required=True,
        choices=("otlp", "messages"),
        help=_(
            "otlp: OpenTelemetry's GenAI spans, JSON lines; messages: a"
            " JSON list of conversations"
        ),
    )
    export.add_argument(
        "-o",
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help=_("replaced at once"),
    )

    probe = add(
        "probe",
        _("what an endpoint can do, and which implementations will work with it"),
        _("Exit code 0: those with tool calls will; 1: they will not; 3: not known."),
    )
    probe.add_argument("--base-url", metavar="URL", help=_("endpoint (LLM_BASE_URL)"))
    probe.add_argument("--model", metavar="NAME", help=_("model name (LLM_MODEL)"))
    probe.add_argument("--json", action="store_true", help=_("print one JSON document"))

    gateway = add("gateway", _("the gateway alone, for any client"))
    gateway.add_argument("--upstream", metavar="URL", help=_("endpoint (LLM_BASE_URL)"))
    gateway.add_argument(
        "--port", type=int, default=8100, help=_("default 8100; 0: any")
    )
    gateway.add_argument(
        "--address",
        metavar="TEXT",
        help=_(
            "what stands in its URL before /v1; default: made up, so"
            " that no other user of this machine knows it"
        ),
    )
    gateway.add_argument(
        "--raw", action="store_true", help=_("pass replies unrepaired")
    )
    gateway.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help=_("write each conversation that passes through as a run record"),
    )
    gateway.add_argument(
        "--name", default="gateway", help=_("of the recorded implementation")
    )
    gateway.add_argument(
        "--idle",
        type=float,
        default=60,
        metavar="SECONDS",
        help=_("a conversation ends when nothing has come for so long; default 60"),
    )

    add("list", _("list the implementations of the table"))
    return parser
