"""The figures of a benchmark: runs put together to cases, and what they come to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from equivalence.gateway.exchange import Exchange
from equivalence.gateway.shapes import first_choice
from equivalence.runs.record import Run
from equivalence.runs.redaction import NOTHING, Redaction
from equivalence.score.cases import KINDS, Case, Outcome, check

BYTES_PER_TOKEN = 3.5
"""For the estimate of a request's tokens, from the JSON of its messages and tools in
UTF-8. Of nine in ten recorded requests (cassettes/) it is 92 to 111 % of what Qwen2.5
counted, in English and Chinese."""


@dataclass(frozen=True)
class Answered:
    """A case as one implementation has answered it."""

    implementation: str
    case: Case
    runs: Sequence[Run]
    """One for each question."""

    @cached_property
    def outcome(self) -> Outcome:
        """Whether it was completed, and why not."""
        return check(self.case, self.runs)

    @property
    def left_out(self) -> bool:
        """Whether the endpoint failed, so that nothing can be said of the answers."""
        return any(run.status == "model_error" for run in self.runs)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as it stands in JSON; seconds as in Score, one a run."""
        return {
            "implementation": self.implementation,
            "case": self.case.id,
            "kind": self.case.kind,
            "completed": self.outcome.completed,
            "left_out": self.left_out,
            "reasons": self.outcome.reasons,
            "extra_calls": self.outcome.extra_calls,
            "seconds": [seconds(run) for run in self.runs],
        }


@dataclass(frozen=True)
class Score:
    """The figures of one implementation. Shares are in per cent; None where there is
    nothing to take a share or an average of. Cases that the endpoint failed are left
    out of all."""

    implementation: str
    by_kind: dict[str, tuple[int, int]]
    """Cases completed, and cases answered, for each kind."""
    left_out: int
    """Cases in which the endpoint failed."""
    completed: float | None
    """Cases completed / cases answered: the expected calls were made, the answer holds
    what it must, and nothing was called where nothing is to be called."""
    calls_worked: float | None
    """Tool calls whose tool did its work / tool calls asked for. A tool that does not
    know a city has not done its work. Calls that could not be watched do not count."""
    extra_calls: int
    """Tool calls beyond those expected; in a case of another kind than none they do not
    count against it."""
    model_calls: float | None
    """Model calls / questions. A request that the client repeated counts once."""
    seconds: float | None
    """Seconds from the first request to the end of the last reply / questions: the
    model, the tools and what the implementation does between."""
    peak_context: int | None
    """Tokens of the largest request: messages and tools."""
    peak_estimated: bool
    """Whether that is an estimate, because the reply did not tell its prompt_tokens."""
    unread: float | None
    """Replies that could not be read as the model wrote them / replies. With tool calls
    that is a call written as text, or broken: the gateway repairs it or has the model
    told. In text it is neither an action nor an answer, or arguments that are no JSON
    object: the implementation reminds the model of the format."""


def score(implementation: str, answered: Sequence[Answered]) -> Score:
    """Return the figures of the cases that the implementation has answered."""
    own = [each for each in answered if each.implementation == implementation]
    judged = [each for each in own if not each.left_out]
    runs = [run for each in judged for run in each.runs]
    completed = [each.outcome.completed for each in judged]
    by_kind = dict.fromkeys(KINDS, (0, 0))
    for each, done in zip(judged, completed, strict=True):
        before = by_kind[each.case.kind]
        by_kind[each.case.kind] = before[0] + done, before[1] + 1
    exchanges = [exchange for run in runs for exchange in run.model_calls]
    replies = [each for each in exchanges if first_choice(each.reply)]
    peak, estimated = max(map(context, replies), default=(None, False))
    times = [time for run in runs if (time := seconds(run)) is not None]
    watched = [step.ok for run in runs for step in run.steps if step.ok is not None]
    return Score(
        implementation=implementation,
        by_kind=by_kind,
        left_out=len(own) - len(judged),
        completed=_share(sum(completed), len(completed)),
        calls_worked=_share(sum(watched), len(watched)),
        extra_calls=sum(len(each.outcome.extra_calls) for each in judged),
        model_calls=fmean(len(run.model_calls) for run in runs) if runs else None,
        seconds=fmean(times) if times else None,
        peak_context=peak,
        peak_estimated=estimated,
        unread=_share(sum(len(run.unread) for run in runs), len(replies)),
    )


def context(exchange: Exchange) -> tuple[int, bool]:
    """Return the tokens of the request, and whether they are estimated: the server's
    own count where the reply has it."""
    usage = exchange.reply.get("usage") if isinstance(exchange.reply, dict) else None
    told = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if isinstance(told, int) and told > 0:
        return told, False
    read = [exchange.request.get(part) or [] for part in ("messages", "tools")]
    text = json.dumps(read, ensure_ascii=False, default=str)
    return int(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN), True


def seconds(run: Run) -> float | None:
    """Return the seconds from its first request to the end of its last reply; None
    where no reply came."""
    ended = [each.ended for each in run.exchanges if each.ms is not None]
    if not ended:
        return None
    return round((max(ended) - min(each.began for each in run.exchanges)) / 1000, 4)


def _share(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


class Benchmark:
    """Puts runs together to cases."""

    def __init__(self, cases: Sequence[Case], redaction: Redaction = NOTHING) -> None:
        self.cases = cases
        self.models: dict[str, None] = {}
        """The models that the runs were made with."""
        self._places = {
            redaction.texts([q.ask for q in case.questions[: turn + 1]]): (case, turn)
            for case in cases
            for turn in range(len(case.questions))
        }
        self._runs: dict[tuple[str, str, int], dict[int, Run]] = {}

    def add(self, run: Run) -> None:
        """Take in the run if it is of a case; of one asked twice the later counts."""
        place = self._places.get((*run.history, run.question))
        if place:
            case, turn = place
            key = run.implementation, case.id, run.repeat
            self._runs.setdefault(key, {})[turn] = run
            self.models.setdefault(str(run.settings.get("model")))

    @property
    def implementations(self) -> list[str]:
        """Who has answered a question, in order of appearance."""
        return list(dict.fromkeys(name for name, _, _ in self._runs))

    @property
    def answered(self) -> list[Answered]:
        """The cases of which all questions are answered."""
        cases = {case.id: case for case in self.cases}
        return [
            Answered(name, cases[id], [runs[turn] for turn in sorted(runs)])
            for (name, id, _), runs in self._runs.items()
            if len(runs) == len(cases[id].questions)
        ]
