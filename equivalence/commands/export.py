"""export: run records in a form that other tools read."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator

from equivalence.errors import UsageError
from equivalence.language import _, counted
from equivalence.runs.record import Run
from equivalence.table import Table
from equivalence.traces import read_runs
from equivalence.traces.write import messages, otlp


def export_command(arguments: argparse.Namespace, table: Table) -> int:
    """Write the runs; return 0. The file is replaced at once, or stays as it was."""
    out = arguments.out
    if any(out.resolve() == path.resolve() for path in arguments.files):
        raise UsageError(_("{out} is one of the files to read").format(out=out))
    if out.exists() and not out.is_file():
        raise UsageError(_("{out} is not a regular file").format(out=out))
    count = 0
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with draft.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            for text in _texts(arguments.to, read_runs(*arguments.files)):
                file.write(text)
                count += 1
            if arguments.to == "messages":
                file.write("]\n" if count else "[]\n")
        os.replace(draft, out)
    finally:
        draft.unlink(missing_ok=True)
    runs = counted(count, "{count} run", "{count} runs")
    print(f"{out}: {runs}", file=sys.stderr)
    return 0


def _texts(form: str, runs: Iterator[Run]) -> Iterator[str]:
    """The text of each run: a line of OTLP, or an element of one JSON list."""
    for number, run in enumerate(runs):
        if form == "otlp":
            yield json.dumps(otlp(run), ensure_ascii=False) + "\n"
        else:
            start = ",\n" if number else "[\n"
            yield start + json.dumps(messages(run), ensure_ascii=False)
