"""Ask what a plan says, and keep what was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway import Gateway, Playback, Upstream
from equivalence.language import _
from equivalence.runs.files import RunFile, check_conditions
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import Observed, new_run, observe
from equivalence.runs.plan import Plan
from equivalence.runs.record import Asked, Run
from equivalence.runs.upstreams import NewUpstream, Upstreams, new_gateway

FAILURES = 3
"""So many runs in a row that the endpoint failed end what is going on."""


class EndpointFailed(OSError):
    """The endpoint failed several runs in a row, so that going on is of no use."""


class Session:
    """Asks implementations one question after another, and keeps the conversation that
    each has returned, for the questions that follow."""

    def __init__(self, plan: Plan, gateway: Gateway) -> None:
        self.plan = plan
        self.gateway = gateway
        self._ended: dict[tuple[str, int, tuple[str, ...]], Observed | _Taken] = {}
        self._parts: dict[str, set[tuple[str, ...]]] = {}
        """The questions, each with its history, of what begins with a question."""
        for conversation in plan.conversations:
            parts = self._parts.setdefault(conversation[0], set())
            for turn in range(1, len(conversation) + 1):
                parts.add(tuple(conversation[:turn]))
        self._open: dict[tuple[str, int, str], set[tuple[str, ...]]] = {}
        """What is still to be asked of a conversation; what has none is forgotten."""
        self._followed = {
            tuple(conversation[:turn])
            for conversation in plan.conversations
            for turn in range(1, len(conversation))
        }

    def ask(
        self,
        implementation: Implementation,
        asked: Asked,
        upstream: Upstream | None = None,
        tools: Sequence[Any] | None = None,
    ) -> Run:
        """Return the run. `tools` None: those of the plan. Raises UsageError if an
        earlier question of its conversation was not asked here."""
        observed = observe(
            implementation,
            asked.question,
            self.plan.settings,
            self.gateway,
            self.plan.tools if tools is None else tools,
            upstream=upstream,
            after=self._before(implementation, asked),
            repeat=asked.repeat,
            tools_name=self.plan.tools_name,
            note=self.plan.note,
            redaction=self.plan.redaction,
        )
        observed.run.jobs = self.plan.jobs
        self._keep(asked, observed)
        return observed.run

    def take(self, implementation: Implementation, asked: Asked, run: Run) -> None:
        """Take a recorded run for asked. Only if a question follows is it played again,
        on its own replies, for the conversation that it leads to."""
        self._keep(asked, _Taken(implementation, asked, run))

    def ask_each(
        self,
        runs: Iterable[tuple[int, Implementation, Asked]],
        new_upstream: NewUpstream,
        recorded: Recorded,
        seed: int,
    ) -> Iterator[tuple[Run, bool]]:
        """Yield the runs, one after another, each with whether it was asked now and not
        taken from what is `recorded`. What follows one asked now is asked now too."""
        renewed: set[tuple[str, int, tuple[str, ...]]] = set()
        for number, implementation, asked in runs:
            key = asked.implementation, asked.repeat, asked.history
            run = None if key in renewed else recorded(implementation, asked)
            if run is not None:
                self.take(implementation, asked, run)
                yield run, False
                continue
            renewed.add((*key[:2], (*asked.history, asked.question)))
            upstream = new_upstream(seed * 1_000_000 + number)
            yield self.ask(implementation, asked, upstream), True

    def _before(self, implementation: Implementation, asked: Asked) -> Observed | None:
        if not asked.history:
            return None
        key = asked.implementation, asked.repeat, asked.history
        before = self._ended.get(key)
        if before is None:
            raise UsageError(
                _(
                    "{implementation} was not asked {history!r}, which"
                    " {question!r} follows"
                ).format(
                    implementation=asked.implementation,
                    history=asked.history[-1],
                    question=asked.question,
                )
            )
        if isinstance(before, _Taken):
            before = self._ended[key] = self._played_again(before)
        return before

    def _played_again(self, taken: _Taken) -> Observed:
        playback = Playback(taken.run.model_calls, redact=self.plan.redaction.request)
        run = self.ask(taken.implementation, taken.asked, playback)
        if run.status != taken.run.status:
            raise UsageError(
                _(
                    "{implementation} was recorded with other code: on its own"
                    " replies to {question!r} it ends as {status}, not as"
                    " {recorded}. Ask anew with --again"
                ).format(
                    implementation=taken.asked.implementation,
                    question=taken.asked.question,
                    status=run.status,
                    recorded=taken.run.status,
                )
            )
        observed = self._ended[self._key(taken.asked)]
        assert isinstance(observed, Observed)
        return observed

    def _keep(self, asked: Asked, ended: Observed | _Taken) -> None:
        now = (*asked.history, asked.question)
        if now in self._followed:
            self._ended[self._key(asked)] = ended
        parts = self._parts.get(now[0], set())
        if len(parts) < 2:
            return
        left = self._open.setdefault(asked.conversation, {*parts})
        left.discard(now)
        if not left:
            for part in parts:
                self._ended.pop((asked.implementation, asked.repeat, part), None)
            del self._open[asked.conversation]

    @staticmethod
    def _key(asked: Asked) -> tuple[str, int, tuple[str, ...]]:
        history = (*asked.history, asked.question)
        return asked.implementation, asked.repeat, history


@dataclass(frozen=True)
class _Taken:
    """A recorded run in the place of one that was asked."""

    implementation: Implementation
    asked: Asked
    run: Run


def gather(
    plan: Plan,
    new_upstream: NewUpstream,
    out: RunFile | None = None,
    *,
    again: bool = False,
    seed: int = 0,
) -> Iterator[Run]:
    """Yield the runs of the plan: one after another, because a server may answer
    differently under load, unless the plan has several jobs or a Dask cluster.

    With `out`, a run that it holds already is taken from there, unless `again`, and
    each other one is written as soon as it is there. A run that the endpoint failed is
    asked anew, and so is what followed it. Raises UsageError if `out` was made under
    other conditions, EndpointFailed after FAILURES in a row.
    """

    def recorded(implementation: Implementation, asked: Asked) -> Run | None:
        run = None
        if out is not None and not again:
            run = out.get(plan.redaction.asked(asked))
        if out is None or run is None or run.status == "model_error":
            return None
        now = new_run(implementation, asked.question, plan.settings)
        now.tools = plan.tools_name
        check_conditions(run, plan.redaction.run(now), out.path)
        return run

    failed = 0
    with _asking(plan, new_upstream, recorded, seed) as runs:
        for run, new in runs:
            if new and out is not None:
                out.append(run)
            yield run
            if new:
                failed = failed + 1 if run.status == "model_error" else 0
            if failed == FAILURES:
                raise EndpointFailed(
                    f"the endpoint failed {failed} runs in a row, the last one with:"
                    f" {run.error}"
                )


Recorded = Callable[[Implementation, Asked], Run | None]
"""Returns the run that need not be asked again; None if there is none."""


@contextmanager
def _asking(
    plan: Plan, new_upstream: NewUpstream, recorded: Recorded, seed: int
) -> Iterator[Iterator[tuple[Run, bool]]]:
    """Yield what asks: it yields each run, and whether it was asked now."""
    if plan.jobs == 1 and not plan.dask:
        with new_gateway(plan.settings, new_upstream(0)) as gateway:
            session = Session(plan, gateway)
            yield session.ask_each(plan.runs(), new_upstream, recorded, seed)
        return
    from equivalence.runs import workers

    assert isinstance(new_upstream, Upstreams)
    where = workers.cluster(plan.dask) if plan.dask else workers.processes(plan.jobs)
    with where as (jobs, map_tasks):
        plan = replace(plan, jobs=jobs)
        tasks = workers.tasks(plan, new_upstream, recorded, seed)
        names = [each.name for each in plan.implementations]
        yield workers.ask_each(tasks, map_tasks, names)


def together(runs: Iterator[Run], plan: Plan) -> Iterator[list[Run]]:
    """Yield the runs of each question as soon as all are there, in the order of the
    plan's implementations; at the end what had come of the others."""
    names = [each.name for each in plan.implementations]
    groups: dict[Asked, list[Run]] = {}

    def in_order(group: list[Run]) -> list[Run]:
        return sorted(group, key=lambda run: names.index(run.implementation))

    try:
        for run in runs:
            asked = replace(run.asked, implementation="")
            group = groups.setdefault(asked, [])
            group.append(run)
            if len(group) == len(names):
                yield in_order(groups.pop(asked))
    except EndpointFailed:
        yield from map(in_order, groups.values())
        raise
    yield from map(in_order, groups.values())
