"""Runs and verdicts for people: tables in the terminal, drawn with rich."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from equivalence.compare import RULES, Verdict, explain
from equivalence.record import STATUSES, Run, Step

NARROWEST_COLUMN = 24
LONGEST_VALUE = 300

COLOURS = {
    "equivalent": "green",
    "indistinguishable": "green",
    "different": "red",
    "inconclusive": "yellow",
}


def console(file: IO[str] | None = None) -> Console:
    """Return a console that never fails on a character its encoding lacks."""
    file = file or sys.stdout
    reconfigure = getattr(file, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="replace")
    return Console(file=file, highlight=False, soft_wrap=False)


def call(step: Step) -> str:
    """Return the call as it would be written in Python: get_weather(city="北京")."""
    if not isinstance(step.arguments, dict):
        return f"{step.tool}({step.arguments_text})"
    inner = (
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in step.arguments.items()
    )
    return f"{step.tool}({', '.join(inner)})"


def short(value: Any, limit: int = LONGEST_VALUE) -> str:
    """Return the value in one line of at most `limit` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def turns(run: Run) -> list[str]:
    """Return the trace, one text a model call and a last one for the end."""
    found = []
    for number, _ in enumerate(run.model_calls, 1):
        asked = [step for step in run.steps if step.turn == number]
        if asked:
            found.append(
                "\n".join(f"{call(s)}\n  {mark(s)} {short(s.result)}" for s in asked)
            )
    return [*found, ending(run)]


def mark(step: Step) -> str:
    """Return the sign in front of a result: ✗ where the call did not work."""
    return "✗" if step.ok is False else "→"


def ending(run: Run) -> str:
    """Return the answer, or how the run ended where it has none."""
    if run.status == "completed":
        return run.answer
    words = [f"[{run.status}] {STATUSES.get(run.status, '')}"]
    words += [part for part in (run.error, run.answer) if part]
    return "\n".join(words)


def side_by_side(out: Console, runs: Sequence[Run]) -> None:
    """Draw the traces of one question: columns are implementations, rows are turns; one
    below the other where the window is too narrow for that."""
    out.print()
    for earlier in runs[0].history:
        out.print(Text(f"  earlier: {earlier}", "dim"))
    out.print(Text(f"Question: {runs[0].question}", "bold"))
    if out.width < NARROWEST_COLUMN * len(runs):
        for run in runs:
            out.print(Text(run.implementation, "bold cyan"))
            for text in turns(run):
                out.print(Text(text))
        return
    table = Table(show_lines=True, expand=True)
    traces = [turns(run) for run in runs]
    for run in runs:
        table.add_column(escape(run.implementation), ratio=1, overflow="fold")
    for row in range(max(map(len, traces))):
        cells = [trace[row] if row < len(trace) else "" for trace in traces]
        table.add_row(*(Text(cell) for cell in cells))
    out.print(table)


def verdict(out: Console, found: Verdict) -> None:
    """Print one verdict: who, what, and where the two part."""
    line = Text(f"{found.left} vs {found.right}: ")
    line.append(found.verdict, COLOURS[found.verdict])
    if place := found.divergence:
        line.append(
            f", cause: {place.cause}, model call {place.model_call}, {place.path}"
        )
    out.print(line)
    if place:
        for name, value in ((found.left, place.left), (found.right, place.right)):
            out.print(Text(f"  {name}: {short(value)}"))
    if found.verdict != "equivalent":
        out.print(Text(f"  {explain(found)}", "dim"))


def summary(out: Console, verdicts: Sequence[Verdict]) -> None:
    """Print how many comparisons came to what, and the rules of comparing."""
    counts = dict.fromkeys(COLOURS, 0)
    for found in verdicts:
        counts[found.verdict] += 1
    out.print()
    out.print("What is looked past:")
    for sentence in RULES.values():
        out.print(Text(f"  - {sentence}", "dim"))
    words = [f"{count} {name}" for name, count in counts.items() if count]
    out.print(Text(f"{len(verdicts)} comparisons: {', '.join(words)}", "bold"))


def notes(out: Console, runs: Iterable[Run]) -> None:
    """Print the warnings of the runs, each once."""
    said = [f"{run.implementation}: {text}" for run in runs for text in run.warnings]
    for text in dict.fromkeys(said):
        out.print(Text(f"  note, {text}", "yellow"))
