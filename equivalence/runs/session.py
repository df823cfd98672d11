"""Ask what a plan says, one run at a time, and keep what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway import Gateway, Playback, Upstream
from equivalence.language import _
from equivalence.runs.files import RunFile, check_conditions
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import Observed, new_run, observe
from equivalence.runs.plan import Plan
from equivalence.runs.record import Asked, Run
from equivalence.runs.upstreams import NewUpstream, new_gateway

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
        self._keep(asked, observed)
        return observed.run

    def take(self, implementation: Implementation, asked: Asked, run: Run) -> None:
        """Take a recorded run for asked. Only if a question follows is it played again,
        on its own replies, for the conversation that it leads to."""
        self._keep(asked, _Taken(implementation, asked, run))

    def now(self, implementation: Implementation, asked: Asked) -> Run:
        """Return the record of a run that would begin now, to compare conditions."""
        run = new_run(implementation, asked.question, self.plan.settings)
        run.tools = self.plan.tools_name
        return run

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
        if (*asked.history, asked.question) in self._followed:
            self._ended[self._key(asked)] = ended

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
    """Yield the runs of the plan, one request under way at a time, because a server may
    answer differently under load.

    With `out`, a run that it holds already is taken from there, unless `again`, and
    each other one is written before the next begins. A run that the endpoint failed is
    asked anew, and so is what followed it. Raises UsageError if `out` was made under
    other conditions, EndpointFailed after FAILURES in a row.
    """
    failed = 0
    renewed: set[tuple[str, int, tuple[str, ...]]] = set()
    with new_gateway(plan.settings, new_upstream(0)) as gateway:
        session = Session(plan, gateway)
        for number, implementation, asked in plan.runs():
            conversation = asked.implementation, asked.repeat, asked.history
            recorded = None
            if out is not None and not again and conversation not in renewed:
                recorded = out.get(plan.redaction.asked(asked))
            if recorded and recorded.status != "model_error":
                now = session.now(implementation, asked)
                check_conditions(recorded, now, out.path)  # type: ignore[union-attr]
                session.take(implementation, asked, recorded)
                yield recorded
                continue
            renewed.add((*conversation[:2], (*asked.history, asked.question)))
            upstream = new_upstream(seed * 1_000_000 + number)
            run = session.ask(implementation, asked, upstream)
            if out is not None:
                out.append(run)
            yield run
            failed = failed + 1 if run.status == "model_error" else 0
            if failed == FAILURES:
                raise EndpointFailed(
                    f"the endpoint failed {failed} runs in a row, the last one with:"
                    f" {run.error}"
                )


def together(runs: Iterator[Run], plan: Plan) -> Iterator[list[Run]]:
    """Yield the runs of each question, in the order of the plan's implementations; what
    had come of one when the endpoint failed too often, too."""
    names = [each.name for each in plan.implementations]
    group: list[Run] = []
    try:
        for run in runs:
            group.append(run)
            if len(group) == len(names):
                yield sorted(group, key=lambda run: names.index(run.implementation))
                group = []
    except EndpointFailed:
        if group:
            yield sorted(group, key=lambda run: names.index(run.implementation))
        raise
