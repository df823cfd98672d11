"""Record runs on a cassette: from the endpoint what is not there yet."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from config import Settings, make_gateway
from equivalence import show
from equivalence.cassette_file import cassette_path, make_header
from equivalence.compare import among_each_other, compare
from equivalence.questions import Conversation
from equivalence.record import Run
from equivalence.recorder import Recorder
from equivalence.run import (
    Session,
    Subject,
    own_upstream,
    planned,
    with_clock,
)
from equivalence.trial import DEMO_TOOLS, trial
from gateway import Cassette, RecordedExchange, Upstream
from gateway.upstreams import Reply
from usage import UsageError

FAILURES = 3
"""So many runs in a row that the endpoint failed end the recording."""


class EndpointFailed(OSError):
    """The endpoint failed several runs in a row."""


def record_command(arguments: argparse.Namespace) -> int:
    """Record what the arguments ask for; return the exit code."""
    asked = trial(arguments)
    path = cassette_path(arguments.out)
    recording = record_all(
        path,
        asked.subjects,
        asked.conversations,
        asked.settings,
        asked.tools,
        tools_name=arguments.tools or DEMO_TOOLS,
        repeats=asked.repeats,
        note=arguments.note,
    )
    runs = list(show.tracked(recording, "recording", asked.runs))
    ends = Counter(run.status for run in runs)
    out = show.console(sys.stderr if arguments.json else sys.stdout)
    out.print(f"{len(runs)} runs in {path}: ", end="")
    out.print(", ".join(f"{count} {status}" for status, count in ends.most_common()))
    out.print(f"replay: python -m equivalence replay {path}")
    if arguments.json:
        document = {
            "runs": [run.to_json() for run in runs],
            "verdicts": [verdict.to_json() for verdict in among_each_other(runs)],
        }
        print(json.dumps(document, ensure_ascii=False))
    return 3 if ends["model_error"] else 0


def record_all(
    path: Path,
    subjects: Sequence[Subject],
    conversations: Sequence[Conversation],
    settings: Settings,
    tools: Sequence[Callable[..., Any]],
    *,
    tools_name: str = "tools:TOOLS",
    repeats: int = 1,
    note: str = "",
) -> Iterator[Run]:
    """Yield the runs, recorded: those that the cassette at `path` has already come from
    it, the others from the endpoint. ValueError where the cassette was recorded under
    other conditions or with other code; EndpointFailed where going on is of no use."""
    settings = with_clock(settings)
    failed = 0
    renewed: set[tuple[str, int, tuple[str, ...]]] = set()  # what followed is stale
    header = make_header(settings, tools_name, note)
    with Recorder(path, header) as recorder, make_gateway(settings) as gateway:
        session = Session(settings, tools, gateway)
        plan = planned(subjects, conversations, repeats)
        for number, subject, asked in plan:
            conversation = subject.name, asked.repeat, asked.history
            recorded = recorder.recording.runs.get(asked)
            if recorded and conversation not in renewed and _answered(recorded.run):
                # Played again, because questions that follow need its conversation.
                run = session.ask(subject, asked, Cassette(recorded.exchanges))
                _check_replay(path, recorded.run, run)
                yield recorded.run
                continue
            renewed.add((*conversation[:2], (*asked.history, asked.question)))
            endpoint = own_upstream(settings, number) or gateway.upstream
            upstream = Resumed(recorder.begin(asked), endpoint)
            run = session.ask(subject, asked, upstream, recorder.exchange)
            recorder.end(run)
            yield run
            failed = failed + 1 if run.status == "model_error" else 0
            if failed == FAILURES:
                raise EndpointFailed(
                    f"the endpoint failed {failed} runs in a row, the last one with:"
                    f" {run.error}. What was recorded is kept; the same command goes on"
                    " from here"
                )


def _answered(run: Run) -> bool:
    """Whether the endpoint did its part, so that the run need not be tried again."""
    return run.status != "model_error"


def _check_replay(path: Path, recorded: Run, again: Run) -> None:
    if place := compare(recorded, again):
        raise UsageError(
            f"{path} was recorded with other code: {recorded.implementation} on"
            f" {recorded.question!r} differs in {place.path}, model call"
            f" {place.model_call}. Record into another file"
        )


class Resumed:
    """Answers from what an interrupted run had got already, as long as the requests are
    the same, and then from the endpoint."""

    def __init__(self, got: Sequence[RecordedExchange], beyond: Upstream) -> None:
        self.got = Cassette(got)
        self.beyond = beyond

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        if reply := self.got.next_reply(request):
            return reply
        self.got = Cassette()
        return await self.beyond.answer(request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self.beyond.models(authorization)

    async def close(self) -> None:
        await self.beyond.close()
