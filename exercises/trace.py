"""One question to the learner's file, printed turn by turn while it happens."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from rich.console import Console

from chat import TracePrinter
from config import make_gateway
from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import observe
from equivalence.settings import load_settings
from exercises.checking import Strict, load
from tools import TOOLS


def trace(file: Path, question: str, *, strict: bool) -> int:
    """Return 0 if the question was answered, 1 if not. Raises UsageError if the file
    has no agent. `strict`: the server refuses what strict providers refuse."""
    module = load(file)
    if isinstance(module, BaseException):
        raise UsageError(f"{file.name}: {type(module).__name__}: {module}")
    agent = getattr(module, "run_agent", None)
    if agent is None:
        raise UsageError(
            _("{file} has no {name}.").format(file=file.name, name="run_agent")
        )
    settings = load_settings()
    tools = getattr(module, "TOOLS", TOOLS)
    printer = TracePrinter(partial(Console(highlight=False).print, soft_wrap=True))
    with make_gateway(settings) as gateway:
        observed = observe(
            Implementation(file.name, agent=agent),
            question,
            settings,
            gateway,
            tools,
            upstream=Strict(gateway.upstream) if strict else None,
            on_exchange=printer.exchange,
            on_execution=printer.execution,
        )
    printer.end(observed.run)
    sys.stdout.flush()
    return 0 if observed.run.status == "completed" else 1
