"""Replay: implementations on recorded answers, so that only the code can differ.

Each implementation on its own recording tells whether it still is what was recorded.
Each on the recordings of the others (cross-replay) tells whether two implementations
are the same when the model is taken out of the comparison. Nothing here has an address
or a key: a request that is not in the recording fails and says where it differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
    tally = Tally()
    for each in played:
        tally.add(each)
    return tally.cells


class Tally:
    """What replays come to, told as they come: no run is kept."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self.ends = Counter[str]()
        """How the replayed runs ended."""
        self.sources: dict[Source, None] = {}
        self.versions: dict[tuple[str, str], None] = {}
        """The packages that they were recorded with, and their versions."""
        self._cells: dict[tuple[str, str], Cell] = {}

    def add(self, each: Replayed) -> None:
        """Take in one replay."""
        recorded, settings = each.recorded, each.recorded.settings
        self.verdicts.append(each.verdict)
        self.ends[each.run.status] += 1
        source = Source(
            recorded.recorded[:10],
            settings.get("model"),
            settings.get("base_url"),
            settings.get("temperature", 0),
            recorded.note,
        )
        self.sources.setdefault(source)
        self.versions.update(dict.fromkeys(recorded.versions.items()))
        pair = each.source, each.implementation
        cell = self._cells.get(pair) or Cell(*pair, 0, 0)
        equal = cell.equal + each.faithful
        cell = replace(cell, equal=equal, total=cell.total + 1)
        if cell.cause is None and (place := each.verdict.divergence):
            cell = replace(
                cell,
                cause=place.cause,
                model_call=place.model_call,
                path=place.path,
                question=recorded.question,
            )
        self._cells[pair] = cell

    @property
    def cells(self) -> list[Cell]:
        """The cross-replay table, a cell for each pair that was played."""
        return list(self._cells.values())


class Source(NamedTuple):
    """Where recorded replies come from."""

    date: str
    model: str | None
    base_url: str | None
    temperature: float
    note: str
