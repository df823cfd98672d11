"""step: one question through the source of implementations, line by line, as a page."""

from __future__ import annotations

import argparse

from equivalence.commands.arguments import (
    conversations_of,
    implementations_of,
    settings_of,
)
from equivalence.errors import UsageError
from equivalence.gateway import Upstream
from equivalence.gateway.playback import Playback
from equivalence.judge.replay import settings_of as settings_recorded
from equivalence.language import _
from equivalence.runs.files import read_runs
from equivalence.runs.implementation import Implementation
from equivalence.runs.lines import trace
from equivalence.runs.plan import CLOCK
from equivalence.runs.record import Run
from equivalence.runs.upstreams import Upstreams, new_gateway
from equivalence.runs.watched import load_tools
from equivalence.show.page.step import write_steps
from equivalence.table import Table


def step_command(arguments: argparse.Namespace, table: Table) -> int:
    """Write the page and say in one line what is on it; return 0."""
    implementations = implementations_of(table, arguments.implementation)
    recorded: dict[str, Run] = {}
    if arguments.recorded:
        recorded = _recorded(arguments)
        question = next(iter(recorded.values())).question
    else:
        asked = [arguments.question] if arguments.question else []
        question = conversations_of(table, asked, None)[0][0]
    settings = settings_of(arguments)
    if settings.clock is None:
        settings = settings.model_copy(update={"clock": CLOCK})
    tools = load_tools(arguments.tools or table.tools or "")
    new_upstream = (
        None if recorded else Upstreams(settings, table.upstream, table.folder)
    )
    traces = []
    with new_gateway(settings, Playback()) as gateway:
        for number, implementation in enumerate(implementations, 1):
            upstream: Upstream
            if new_upstream is None:
                run = _answers_for(implementation, recorded)
                settings = settings_recorded(run)
                upstream = Playback(run.model_calls, redact=table.redaction.request)
            else:
                upstream = new_upstream(number)
            traces.append(
                trace(
                    implementation,
                    question,
                    settings,
                    gateway,
                    tools,
                    upstream,
                    table.redaction,
                )
            )
    inputs = [arguments.recorded] if arguments.recorded else []
    print(write_steps(traces, arguments.out, *inputs))
    return 0


def _recorded(arguments: argparse.Namespace) -> dict[str, Run]:
    """The recorded runs of one question that follows no other, by implementation."""
    found: dict[str, Run] = {}
    for run in read_runs(arguments.recorded):
        question = next(iter(found.values())).question if found else arguments.question
        if question in (None, run.question) and not run.history:
            found.setdefault(run.implementation, run)
    if not found:
        raise UsageError(
            _("{recorded} has no run of such a first question").format(
                recorded=arguments.recorded
            )
        )
    return found


def _answers_for(implementation: Implementation, recorded: dict[str, Run]) -> Run:
    """The recorded run on whose replies it goes: its own, else the first one in which
    the model asks for tools in its way."""
    alike = (r for r in recorded.values() if r.protocol == implementation.protocol)
    run = recorded.get(implementation.name) or next(alike, None)
    if run is None:
        raise UsageError(
            _("nothing is recorded that {name} could be answered with").format(
                name=implementation.name
            )
        )
    return run
