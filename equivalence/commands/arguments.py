"""What several commands take from their command line, and what they make of it."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivalence.errors import UsageError
from equivalence.language import N_, _, counted

if TYPE_CHECKING:
    from equivalence.judge.compare import Judge
    from equivalence.runs.files import RunFile
    from equivalence.runs.implementation import Implementation
    from equivalence.runs.plan import Conversation, Plan
    from equivalence.settings import Settings
    from equivalence.table import Table


def add_asked(
    parser: argparse.ArgumentParser,
    *,
    questions: str = N_("the questions of the table"),
    repeats: int = 1,
) -> None:
    """Add who is asked what, and how often."""
    parser.add_argument(
        "question",
        nargs="*",
        help=_("default: {questions}").format(questions=_(questions)),
    )
    parser.add_argument("--questions", type=Path, metavar="FILE", help=_("one a line"))
    add_implementations(parser)
    parser.add_argument("--tools", metavar="module:NAME", help=_("your own tools"))
    add_command(parser)
    add_model(parser)
    parser.add_argument(
        "--repeats",
        type=int,
        default=repeats,
        metavar="R",
        help=_("default %(default)s"),
    )
    add_scale(parser)
    parser.add_argument("--raw", action="store_true", help=_("switch repairs off"))
    parser.add_argument(
        "--again", action="store_true", help=_("ask anew what the file holds already")
    )


def add_scale(parser: argparse.ArgumentParser) -> None:
    """Add how many runs are asked at once, and by whom."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help=_(
            "so many runs at once, each in a process of its own; a server may answer"
            " differently under load, so the record says it"
        ),
    )
    parser.add_argument(
        "--shard",
        default="1/1",
        metavar="K/N",
        help=_("only part K of N of what is asked, whole conversations: 3/8"),
    )
    parser.add_argument(
        "--dask",
        default="",
        metavar="ADDRESS",
        help=_("let the workers of a Dask cluster ask: tcp://HOST:8786"),
    )


def scale_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a plan for that. Raises UsageError if one makes no sense."""
    if arguments.jobs < 1:
        raise UsageError(_("--jobs must be at least 1"))
    if arguments.dask and arguments.jobs != 1:
        raise UsageError(_("--jobs is for this machine: --dask asks all its workers"))
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", arguments.shard)
    part, parts = map(int, found.groups()) if found else (0, 0)
    if not 1 <= part <= parts:
        raise UsageError(
            _("--shard {shard}: write K/N with K from 1 to N, such as 3/8").format(
                shard=arguments.shard
            )
        )
    return {"jobs": arguments.jobs, "dask": arguments.dask, "shard": (part, parts)}


def add_command(parser: argparse.ArgumentParser) -> None:
    """Add agents that are commands."""
    parser.add_argument(
        "--command",
        dest="commands",
        action="append",
        default=[],
        metavar='"CMD {question}"',
        help=_("an agent in any language; its base URL is in $OPENAI_BASE_URL"),
    )


def add_implementations(parser: argparse.ArgumentParser) -> None:
    """Add the choice of implementations."""
    parser.add_argument(
        "--implementation",
        action="append",
        metavar="NAME|module:function",
        help=_("repeat it; the first is the baseline of the others"),
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the model."""
    parser.add_argument("--base-url", metavar="URL", help=_("endpoint (LLM_BASE_URL)"))
    parser.add_argument("--model", metavar="NAME", help=_("model name (LLM_MODEL)"))
    parser.add_argument("--temperature", type=float, metavar="T", help=_("default 0"))
    parser.add_argument("--max-steps", type=int, metavar="N", help=_("default 10"))


def add_output(parser: argparse.ArgumentParser, *, out: bool = True) -> None:
    """Add where the result goes."""
    parser.add_argument(
        "--json", action="store_true", help=_("print one JSON document, nothing else")
    )
    if out:
        parser.add_argument(
            "--out",
            type=Path,
            metavar="FILE",
            help=_("write each run to it; the same command goes on where it ended"),
        )


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """Add how runs are compared, what of it is accepted, and how that is told."""
    add_judge(parser)
    parser.add_argument(
        "--rules", action="store_true", help=_("print every rule of comparing")
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help=_("write the verdicts for a pull request's comment"),
    )


def add_judge(parser: argparse.ArgumentParser) -> None:
    """Add how runs are compared, and what of it is accepted."""
    parser.add_argument(
        "--compare",
        choices=("requests", "steps"),
        default="requests",
        help=_(
            "what is compared: steps for implementations whose requests"
            " can never be equal (tool, arguments, result, status and"
            " answer); default %(default)s"
        ),
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATH",
        help=_(
            "pass over what stands there: $.temperature, $.messages[*].name; repeat it"
        ),
    )
    parser.add_argument(
        "--accept",
        type=Path,
        metavar="FILE",
        help=_("differences that are known, TOML"),
    )


def judge_of(arguments: argparse.Namespace) -> Judge:
    """Return the judge that the arguments ask for. Raises UsageError if a rule cannot
    be one, or the file of accepted differences cannot be read."""
    from equivalence.judge.accepted import read_accepted
    from equivalence.judge.compare import Judge, Rules

    rules = Rules(arguments.compare, tuple(arguments.ignore))
    return Judge(rules, read_accepted(arguments.accept))


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings of environment, .env and arguments. Raises UsageError if one
    cannot work."""
    from equivalence.settings import load_settings

    return load_settings(
        base_url=arguments.base_url,
        model=arguments.model,
        temperature=arguments.temperature,
        max_steps=arguments.max_steps,
        repair=False if getattr(arguments, "raw", False) else None,
    )


def plan_of(arguments: argparse.Namespace, table: Table) -> Plan:
    """Return what the arguments ask for, else the table. Raises UsageError if something
    of it cannot be had."""
    from equivalence.runs.plan import Plan
    from equivalence.runs.watched import load_tools

    if arguments.repeats < 1:
        raise UsageError(_("--repeats must be at least 1"))
    tools_name = arguments.tools or table.tools or ""
    return Plan(
        implementations_of(table, arguments.implementation, arguments.commands),
        conversations_of(table, arguments.question, arguments.questions),
        settings_of(arguments),
        load_tools(tools_name),
        tools_name,
        arguments.repeats,
        getattr(arguments, "note", ""),
        table.redaction,
        **scale_of(arguments),
    )


def implementations_of(
    table: Table, names: Sequence[str] | None, commands: Sequence[str] = ()
) -> list[Implementation]:
    """Return the implementations of these names, and those that commands start; those
    of the table where nothing is named."""
    from equivalence.runs.implementation import command

    if names is None and not commands:
        found = list(table.implementations.values())
        if not found:
            raise UsageError(
                _(
                    "nothing to run: name --implementation module:function or"
                    " --command, or list them in"
                    " [tool.equivalence.implementations] of pyproject.toml"
                )
            )
    else:
        found = [*map(table.find, names or ()), *map(command, commands)]
    for implementation in found:
        implementation.check()
    return found


def conversations_of(
    table: Table, questions: Sequence[str], file: Path | None
) -> list[Conversation]:
    """Return the questions of the command line, then those of the file; those of the
    table where there are none. Raises UsageError if there are none at all, or one is
    the name of a file."""
    from equivalence.runs.plan import read_questions

    for question in questions:
        if os.path.isfile(question):  # and not Path.is_file: a question may be long
            raise UsageError(
                _(
                    "{question} is a file: questions in a file are for"
                    " --questions, recorded runs for report, diff, replay or"
                    " --recorded"
                ).format(question=question)
            )
    found: list[Conversation] = [[question] for question in questions]
    file = file or (None if found else table.questions)
    if file:
        found += read_questions(file)
    if not found:
        raise UsageError(_("nothing to ask: give a question, or --questions FILE"))
    return found


@contextlib.contextmanager
def run_file(path: Path | None) -> Iterator[RunFile | None]:
    """Open the file that runs are written to; None where none is named. It says how
    many runs are there already."""
    if path is None:
        yield None
        return
    from equivalence.runs.files import RunFile

    with RunFile(path) as file:
        if len(file):
            print(
                _("{path} holds {runs}; those asked for are not asked again").format(
                    path=path, runs=counted(len(file), "{count} run", "{count} runs")
                ),
                file=sys.stderr,
            )
        yield file
