"""What every `python -m stageN_…` shares: one question or a conversation, and the trace
printed turn by turn while it happens.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.text import Text

from config import load_settings, make_gateway
from equivalence.errors import UsageError
from equivalence.gateway import Exchange
from equivalence.language import N_, _, translate_argparse
from equivalence.phrases import translated
from equivalence.runs.grounding import Said, note, said_before
from equivalence.runs.hints import hint
from equivalence.runs.observe import Observed, observe
from equivalence.runs.output import FilledHelpFormatter, console, run_command
from equivalence.runs.record import Run
from equivalence.runs.steps import Execution, tool_calls
from equivalence.runs.words import ending, short, ungrounded, visible
from equivalence.table import Table, read_table
from toolkit.wire import WirePrinter
from tools import TOOLS

EXAMPLES = N_("现在几点了？ · What is the weather in Beijing? · /new · quit")
ABOUT = (
    N_("langgraph's create_react_agent"),
    N_("langchain's create_agent, which replaces it"),
    N_("a StateGraph drawn by hand"),
    N_("a for-loop over a list"),
    N_("the loop on the openai client alone"),
    N_("the loop for models without tool calling"),
    N_("create_react_agent as it comes"),
    N_("create_agent as it comes"),
    N_("the article's StateGraph"),
    N_("the article's StateGraph with langgraph's ToolNode"),
    N_("the article's for-loop"),
)
"""What pyproject.toml says of the ladder's implementations."""

GOODBYES = ("q", "quit", "exit", "退出", "再见")
HAN = re.compile("[\u3400-\u9fff]")


def main(stage: str, *, successor: str | None = None) -> int:
    """Run one stage's command line; return the exit code: 0 when every question was
    answered, 1 when one was not, 2 for wrong usage or configuration."""
    return run_command(partial(_main, stage, successor))


def _main(stage: str, successor: str | None) -> int:
    table = read_table(Path(__file__).parent)  # the ladder's, wherever it is started
    arguments = _parser(table, stage, successor).parse_args()
    chosen = successor if getattr(arguments, "successor", False) else stage
    settings = load_settings(
        base_url=arguments.base_url,
        model=arguments.model,
        temperature=arguments.temperature,
        max_steps=arguments.max_steps,
        repair=False if arguments.raw else None,
    )
    implementation = table.find(chosen or stage)
    out = console()
    with make_gateway(settings) as gateway:

        def ask(question: str, after: Observed | None = None) -> Observed:
            printer = TracePrinter(partial(out.print, soft_wrap=True))
            wire = WirePrinter(printer.write)

            def exchange(each: Exchange) -> None:
                if arguments.wire:
                    wire.exchange(each)
                printer.exchange(each)

            observed = observe(
                implementation,
                question,
                settings,
                gateway,
                TOOLS,
                after=after,
                on_exchange=exchange,
                on_execution=printer.execution,
                on_text=printer.text,
            )
            printer.end(observed.run)
            return observed

        try:
            if arguments.question:
                run = ask(" ".join(arguments.question)).run
                return 0 if run.status == "completed" else 1
            title = f"{implementation.name}, {settings.model}"
            print(
                _("{title}. For example: {examples}").format(
                    title=visible(title), examples=_(EXAMPLES)
                )
            )
            return _converse(ask)
        except KeyboardInterrupt:
            print()
            return 130 if arguments.question else 0


class TracePrinter:
    """Prints a run as it happens: each call when the model asks, each result when it is
    there, and the end."""

    def __init__(self, write: Callable[..., None]) -> None:
        self._write = write
        self.written = ""
        """The text of the reply that is being written, as far as it has come."""
        self.answered = ""
        """That of the last reply, as it was written; "" where it came at once."""
        self.turn = 0
        self.asked = False
        self.said: Said | None = None
        self.results: list[str] = []

    def write(self, text: str, style: str = "") -> None:
        """Print one piece of the trace; nothing in it can steer the terminal."""
        self._write(Text(visible(text), style))

    def text(self, piece: str) -> None:
        """Print a piece of a streamed reply as it is written."""
        self.written += piece
        self._write(Text(visible(piece)), end="")

    def exchange(self, exchange: Exchange) -> None:
        """Print what the model asked for in this reply."""
        if self.written:
            self.write("")
        self.answered, self.written = self.written, ""
        self.said = self.said or said_before(exchange.request)
        for result in self.results:
            self.said.learn(result)
        self.results = []
        if exchange.attempt:
            number = exchange.attempt + 1
            self.write(_("  (attempt {number})").format(number=number), "dim")
        else:
            self.turn += 1
        calls = tool_calls(exchange.reply)
        self.asked = bool(calls)
        for call in calls:
            self._call(call["name"], call["arguments"])
        if exchange.repairs:
            names = ", ".join(exchange.repairs)
            words = _("repaired: {names}").format(names=names)
            self.write(f"        {words}", "yellow")

    def execution(self, execution: Execution) -> None:
        """Print what a tool gave back; and the call, where it came as plain text."""
        if not self.asked:
            arguments = json.dumps(execution.arguments, ensure_ascii=False)
            self._call(execution.tool, arguments)
        sign = "→" if execution.ok else "✗"
        words = execution.returned if execution.raised is None else execution.raised
        result = words or ""
        self.write(f"        {sign} {short(result)}")
        self.results.append(result)

    def _call(self, tool: str, arguments: str) -> None:
        turn = _("turn {number}").format(number=self.turn)
        self.write(f"{turn}  {tool}({arguments})", "cyan")
        for number in self.said.missing(arguments) if self.said else ():
            self.write(f"        {ungrounded(number.text)}", "yellow")

    def end(self, run: Run) -> None:
        """Print the calls that were not run, and the answer or what came instead."""
        for step in run.steps:
            if step.order is None:
                turn = _("turn {number}").format(number=step.turn)
                text = f"        ✗ {turn}: {short(step.result or '')}"
                self.write(text, "red")
        if run.status != "completed":
            self.write(ending(run), "red")
        elif run.answer.strip() != self.answered.strip():  # else it was just written
            self.write(ending(run), "bold")
        for found in (each for step in run.steps for each in step.ungrounded):
            self.write(translated(note(found)), "yellow")
        if advice := hint(run.error) or _(_ADVICE.get(run.status, "")):
            self.write(advice, "yellow")


_ADVICE = {
    "step_limit": N_("Raise --max-steps, or ask for less at a time."),
    "empty": N_("The model said nothing: ask again, or try another model."),
    "truncated": N_("Raise LLM_MAX_TOKENS, or ask for a shorter answer."),
    "unparsed_call": N_(
        "The server does not parse this model's calls: python -m equivalence probe"
        " says what to change."
    ),
}


def _parser(table: Table, stage: str, successor: str | None) -> argparse.ArgumentParser:
    about = table.find(stage).about
    translate_argparse()
    parser = argparse.ArgumentParser(
        formatter_class=FilledHelpFormatter,
        description=_(
            "{stage}: the agent as {about}. Without a question it is a"
            " conversation that remembers its turns: /new starts over,"
            " quit ends it."
        ).format(stage=stage, about=_(about)),
        epilog=_(
            "Without LLM_BASE_URL (environment or .env) the offline"
            " model answers: a scripted stand-in, no language model."
        ),
    )
    parser.add_argument("question", nargs="*", help=_("one question"))
    add_settings(parser)
    parser.add_argument(
        "--wire",
        action="store_true",
        help=_("print each request and reply, too, as they go over the wire"),
    )
    if successor:
        parser.add_argument(
            "--successor",
            action="store_true",
            help=_("run {about}").format(about=_(table.find(successor).about)),
        )
    return parser


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options that override a setting of the environment."""
    parser.add_argument("--base-url", metavar="URL", help=_("endpoint (LLM_BASE_URL)"))
    parser.add_argument("--model", metavar="NAME", help=_("model name (LLM_MODEL)"))
    parser.add_argument("--temperature", type=float, metavar="T", help=_("default 0"))
    parser.add_argument(
        "--max-steps",
        type=int,
        metavar="N",
        help=_("budget of model calls, default 10"),
    )
    parser.add_argument(
        "--raw", action="store_true", help=_("switch the gateway's repairs off")
    )


def _converse(ask: Callable[..., Observed]) -> int:
    after: Observed | None = None
    asked = ""
    while True:
        question = _read_line()
        if question is None:
            print()
            return 0
        if question.casefold() in GOODBYES:
            chinese = HAN.search(question) or HAN.search(asked)
            print("再见！" if chinese else _("Goodbye."))
            return 0
        asked = question or asked
        if question == "/new":
            after = None
            print(_("A new conversation."))
        elif question:
            after = ask(question, after)


def _read_line() -> str | None:
    """What the user typed, None at the end of the input. Raises UsageError if there is
    no input to read: it is closed, or a test runner's."""
    try:
        return input("> ").strip()
    except EOFError:
        return None
    except (RuntimeError, OSError, ValueError) as error:
        raise UsageError(
            _(
                "no conversation without an input to read ({error}): give"
                " the question as an argument"
            ).format(error=error)
        ) from None
