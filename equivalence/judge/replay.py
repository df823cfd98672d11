"""Replay: implementations on recorded answers, so that only the code can differ.

Each implementation on its own recording tells whether it still is what was recorded.
Each on the recordings of the others (cross-replay) tells whether two implementations
are the same when the model is taken out of the comparison. Nothing here has an address
or a key: a request that is not in the recording fails and says where it differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equivalence.gateway import Fork, Playback, Upstream
from equivalence.judge.compare import Judge, Verdict
from equivalence.runs.implementation import Implementation
from equivalence.runs.plan import Plan
from equivalence.runs.record import Run
from equivalence.runs.recorded_tools import RecordedTools
from equivalence.runs.redaction import NOTHING, Redaction
from equivalence.runs.session import Session
from equivalence.runs.upstreams import NewUpstream, new_gateway
from equivalence.settings import Settings

RECORDED = " as recorded"


@dataclass(frozen=True)
class Replayed:
    """One recorded run, and the same question replayed on its answers."""

    source: str
    """The implementation for which the answers were recorded."""
    implementation: str
    recorded: Run
    run: Run
    verdict: Verdict

    @property
    def faithful(self) -> bool:
        """Whether the code did on these answers just what was recorded."""
        return self.verdict.divergence is None


@dataclass(frozen=True)
class Live:
    """A live model that goes on where a recording is left."""

    first_call: int
    """Number of the first model call that it answers, from 1."""
    model: str
    base_url: str | None
    new_upstream: NewUpstream


def replay(
    runs: Sequence[Run],
    implementation: Implementation,
    tools: Sequence[Any],
    judge: Judge | None = None,
    *,
    tools_recorded: bool = False,
    live: Live | None = None,
    redaction: Redaction = NOTHING,
) -> Iterator[Replayed]:
    """Yield each of the recorded runs with the implementation in its place, on the
    recorded replies; they are those of one source, in the order of their conversations.

    `tools_recorded`: tools are not run, their results are the recorded ones. `live`: a
    model that answers from some model call on, so that it is what differs. Raises
    UsageError if a question is there without the one that it follows.
    """
    judge = judge or Judge()
    if not runs:
        return
    settings = settings_of(runs[0])
    if live:
        changes = {"model": live.model, "base_url": live.base_url}
        settings = settings.model_copy(update=changes)
    conversations = [[*run.history, run.question] for run in runs]
    plan = Plan(
        [implementation],
        conversations,
        settings,
        tools,
        runs[0].tools,
        redaction=redaction,
    )
    closing = live.new_upstream(0) if live else Playback()
    with new_gateway(settings, closing) as gateway:
        session = Session(plan, gateway)
        for number, run in enumerate(runs, 1):
            mine = replace(run.asked, implementation=implementation.name)
            given = RecordedTools(tools, run) if tools_recorded else None
            rules = replace(judge.rules, by="steps") if run.rebuilt else judge.rules
            ignores = rules.ignores_in_request
            upstream: Upstream = Playback(run.model_calls, ignores, redaction.request)
            if live:
                beyond = live.new_upstream(number)
                upstream = Fork(
                    run.model_calls,
                    live.first_call,
                    beyond,
                    ignores,
                    redaction.request,
                )
            again = session.ask(implementation, mine, upstream, given)
            if given is not None:
                again.warnings += [
                    f"{call} is not in the recording: it was not run"
                    for call in given.missed
                ]
            left = replace(run, implementation=run.implementation + RECORDED)
            yield Replayed(
                run.implementation, implementation.name, run, again, judge(left, again)
            )


def settings_of(run: Run) -> Settings:
    """Return the settings under which the run was recorded; those that the record does
    not know have their defaults, whatever the environment says."""
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in Settings.model_fields.items()
    }
    return Settings(**{**defaults, **run.settings})


@dataclass(frozen=True)
class Cell:
    """One implementation on all answers recorded for one: how often it did the same,
    and where it first did not."""

    source: str
    implementation: str
    equal: int
    total: int
    cause: str | None = None
    model_call: int | None = None
    path: str | None = None
    question: str | None = None


def cells(played: Iterable[Replayed]) -> list[Cell]:
    """Return the cross-replay table, a cell for each pair that was played."""
    together: dict[tuple[str, str], list[Replayed]] = {}
    for each in played:
        together.setdefault((each.source, each.implementation), []).append(each)
    found = []
    for (source, implementation), group in together.items():
        equal = sum(each.faithful for each in group)
        cell = Cell(source, implementation, equal, len(group))
        first = next((each for each in group if not each.faithful), None)
        if first and (place := first.verdict.divergence):
            cell = replace(
                cell,
                cause=place.cause,
                model_call=place.model_call,
                path=place.path,
                question=first.recorded.question,
            )
        found.append(cell)
    return found
