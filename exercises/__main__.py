"""The command line: python -m exercises [COMMAND] [EXERCISE]."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from equivalence.errors import UsageError
from equivalence.language import N_, _, language, translate_argparse
from equivalence.phrases import translated
from equivalence.runs.output import HelpFormatter, wrapped
from exercises.exercise import EXERCISES, Exercise, find, markdown
from exercises.texts import TEXTS

FILE = "my_agent.py"
LIMIT = 120
"""Seconds that a check may take."""

EXIT_CODES = N_(
    "exit codes:\n"
    "  0    PASS, or the command did its work\n"
    "  1    FAIL\n"
    "  2    wrong usage or files\n"
    "  130  interrupted by Ctrl-C\n"
)
SAY = TEXTS["any"]


def main(words: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # a console that lacks a character shows "?"
    arguments = _parser().parse_args(words)
    try:
        code = int(arguments.command(arguments))
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(_("error: {error}").format(error=error), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def listed(arguments: argparse.Namespace) -> int:
    """Print the exercises, in reading order."""
    if getattr(arguments, "markdown", False):
        print(markdown())
        return 0
    for exercise in EXERCISES:
        print(f"{exercise.number:<4}{exercise.name:<15}{exercise.title}")
    return 0


def start(arguments: argparse.Namespace) -> int:
    """Copy where the exercise starts to the learner's file, which must not be there."""
    exercise, file = find(arguments.exercise), Path(arguments.file)
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(_start_of(exercise))
    except FileExistsError:
        raise UsageError(SAY["is_there"].format(file=file)) from None
    except OSError as error:
        words = SAY["no_folder"].format(file=file, reason=translated(error.strerror))
        raise UsageError(words) from None
    print(SAY["started"].format(file=file, number=exercise.number))
    print()
    _print_text(exercise.task)
    print()
    named = "" if arguments.file == FILE else f" --file {file}"
    print(SAY["then"].format(number=exercise.number, file=named))
    return 0


def _start_of(exercise: Exercise) -> str:
    """Where the exercise starts. Its first lines say what to do; a reader of another
    language gets the task in that language."""
    text = exercise.start.read_text(encoding="utf-8")
    if language() == "en":
        return text
    opening, _english, code = text.split('"""', 2)
    head = SAY["starts"].format(number=exercise.number, title=exercise.title)
    task = "\n".join(wrapped(exercise.task, 88))
    return f'{opening}"""{head}\n\n{task}\n"""{code}'


def hint(arguments: argparse.Namespace) -> int:
    """Print the hint."""
    _print_text(find(arguments.exercise).hint)
    return 0


def solution(arguments: argparse.Namespace) -> int:
    """Print the solution."""
    print(find(arguments.exercise).solution.read_text(encoding="utf-8"), end="")
    return 0


def check(arguments: argparse.Namespace) -> int:
    """Check the learner's file and print PASS, or FAIL with the reason."""
    exercise, file = find(arguments.exercise), _existing(arguments)
    return _within_the_limit(
        lambda: _check(exercise, file), exercise, file, arguments.limit
    )


def _check(exercise: Exercise, file: Path) -> int:
    from equivalence.gateway import Gateway
    from exercises.checking import Checked, Failed
    from offline_model import OfflineModel

    try:
        with Gateway(OfflineModel(), timeout=LIMIT) as gateway:
            Checked(exercise, file, gateway).check()
    except Failed as failed:
        _print_failure(exercise, failed.reason, failed.details)
        return 1
    _print_verdict("pass", exercise, tries=exercise.tries)
    return 0


def ask(arguments: argparse.Namespace) -> int:
    """Ask the learner's file one question and print what it does, turn by turn."""
    from exercises.trace import trace

    return trace(_existing(arguments), arguments.question, strict=arguments.strict)


def _existing(arguments: argparse.Namespace) -> Path:
    file = Path(arguments.file)
    if not file.is_file():
        number = getattr(arguments, "exercise", None) or "NUMBER"
        raise UsageError(SAY["no_file"].format(file=file, number=number))
    return file.resolve()


def _within_the_limit(
    work: Callable[[], int], exercise: Exercise, file: Path, limit: float
) -> int:
    """Do the work in a thread of its own. If it has not ended after `limit` seconds,
    the process ends without it."""
    codes: list[int] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            codes.append(work())
        except BaseException as error:  # raised below, in the main thread
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit)
    if errors:
        raise errors[0]
    if codes:
        return codes[0]
    _print_failure(exercise, SAY["too_long"].format(seconds=limit, file=file.name), ())
    sys.stdout.flush()
    os._exit(1)  # threads of the file may wait for ever


def _print_failure(exercise: Exercise, reason: str, details: object) -> None:
    _print_verdict("fail", exercise, reason=reason)
    for line in details if isinstance(details, list | tuple) else ():
        print(f"  {line}")
    print(SAY["more"].format(number=exercise.number))


def _print_verdict(key: str, exercise: Exercise, **values: str) -> None:
    _print_text(SAY[key].format(number=exercise.number, name=exercise.name, **values))


def _print_text(text: str) -> None:
    print("\n".join(wrapped(text, 88)))


def _parser() -> argparse.ArgumentParser:
    translate_argparse()
    parser = argparse.ArgumentParser(
        prog="python -m exercises",
        description=_(
            "The exercises of the tutorial. You work in my_agent.py, which git ignores."
            " Without a command they are listed."
        ),
        epilog=_(EXIT_CODES),
        formatter_class=HelpFormatter,
    )
    parser.set_defaults(command=listed)
    commands = parser.add_subparsers(metavar="COMMAND")
    every = commands.add_parser("list", help=_("list the exercises"))
    every.add_argument("--markdown", action="store_true", help=_("as in the README"))
    every.set_defaults(command=listed)
    for command, about in (
        (start, _("copy where it starts to my_agent.py, and print the task")),
        (check, _("say PASS, or FAIL with the reason")),
        (hint, _("print the hint")),
        (solution, _("print the solution")),
    ):
        adding = commands.add_parser(command.__name__, help=about)
        adding.add_argument(
            "exercise", metavar="EXERCISE", help=_("its number or name")
        )
        adding.set_defaults(command=command)
        if command in (start, check):
            adding.add_argument("--file", default=FILE, help=_("default %(default)s"))
        if command is check:
            adding.add_argument(
                "--limit",
                type=float,
                default=LIMIT,
                metavar="SECONDS",
                help=_("so long may it take, default %(default)s"),
            )
    asking = commands.add_parser(
        "ask", help=_("ask my_agent.py a question and look on")
    )
    asking.add_argument("question", metavar="QUESTION")
    asking.add_argument("--file", default=FILE, help=_("default %(default)s"))
    asking.add_argument(
        "--strict",
        action="store_true",
        help=_("a server that refuses what strict providers refuse"),
    )
    asking.set_defaults(command=ask)
    return parser


if __name__ == "__main__":
    sys.exit(main())
