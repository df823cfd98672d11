"""Score: the benchmark put to implementations, and the figures that come of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from rich.progress import track

from equivalence.runs import record
from equivalence.runs.hints import hint
from equivalence.runs.record import Run
from equivalence.runs.session import CLOCK, Subject, run_each
from equivalence.runs.steps import first_choice, text_of
from equivalence.runs.trial import subjects
from equivalence.score.cases import FILE, KINDS, Case, Outcome, check, read_cases
from equivalence.settings import Settings, load_settings
from equivalence.show import score as show_score
from equivalence.show import terminal as show
from toolkit.tokens import message_tokens, tokens
from tools import TOOLS

FAILURES = 3
"""So many runs in a row that the endpoint failed end the benchmark."""


@dataclass(frozen=True)
class Answered:
    """A case as one implementation has answered it."""

    implementation: str
    case: Case
    runs: Sequence[Run]
    """One for each question."""
    seconds: Sequence[float]
    """How long each took, on this machine."""

    @property
    def outcome(self) -> Outcome:
        return check(self.case, self.runs)

    def to_json(self) -> dict[str, Any]:
        return {
            "implementation": self.implementation,
            "case": self.case.id,
            "kind": self.case.kind,
            "completed": self.outcome.completed,
            "reasons": self.outcome.reasons,
            "extra_calls": self.outcome.extra_calls,
            "seconds": [round(seconds, 3) for seconds in self.seconds],
        }


@dataclass(frozen=True)
class Score:
    """The figures of one implementation. Shares are in per cent; None where there is
    nothing to take a share or an average of."""

    implementation: str
    by_kind: dict[str, tuple[int, int]]
    """Cases completed, and cases answered, for each kind."""
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
    """Seconds from the question to its answer / questions: the model, the tools and the
    implementation itself, on this machine, the gateway included."""
    peak_context: int | None
    """Tokens of the largest request: messages and tools."""
    peak_estimated: bool
    """Whether that is the estimate of tokens.py, because the reply did not tell its
    prompt_tokens."""
    unread: float | None
    """Replies that could not be read as the model wrote them / replies. With tool calls
    that is a call written as text, or broken: the gateway repairs it or has the model
    told. In text it is neither an action nor an answer, or arguments that are no JSON
    object: the implementation reminds the model of the format."""


PUBLISHED = {
    "completed": 88.0,
    "calls_worked": 94.7,
    "model_calls": 2.3,
    "peak_context": 1850,
    "unread": 4.2,
}
PUBLISHED_NOTE = (
    "Published for a text-ReAct agent with gpt-4o-mini at temperature 0, on 50 cases of"
    " its author's; its peak is that of 20 turns. Other cases and another model: it"
    " stands beside the figures, nothing can be concluded from the difference."
)


def score(implementation: str, answered: Sequence[Answered]) -> Score:
    """Return the figures of the cases that the implementation has answered."""
    own = [each for each in answered if each.implementation == implementation]
    runs = [run for each in own for run in each.runs]
    outcomes = [each.outcome for each in own]
    by_kind = {}
    for kind in KINDS:
        done = [
            outcome.completed
            for each, outcome in zip(own, outcomes, strict=True)
            if each.case.kind == kind
        ]
        by_kind[kind] = (sum(done), len(done))
    exchanges = [exchange for run in runs for exchange in run.model_calls]
    replies = [each for each in exchanges if first_choice(each.reply)]
    peak, estimated = max(map(context, replies), default=(None, False))
    seconds = [seconds for each in own for seconds in each.seconds]
    watched = [step.ok for run in runs for step in run.steps if step.ok is not None]
    return Score(
        implementation=implementation,
        by_kind=by_kind,
        completed=_share(sum(o.completed for o in outcomes), len(outcomes)),
        calls_worked=_share(sum(watched), len(watched)),
        extra_calls=sum(len(outcome.extra_calls) for outcome in outcomes),
        model_calls=fmean(len(run.model_calls) for run in runs) if runs else None,
        seconds=fmean(seconds) if seconds else None,
        peak_context=peak,
        peak_estimated=estimated,
        unread=_share(sum(len(run.unread) for run in runs), len(replies)),
    )


def context(exchange: dict[str, Any]) -> tuple[int, bool]:
    """Return the tokens of the request, and whether they are estimated: the server's
    own count where the reply has it."""
    usage = exchange.reply.get("usage")
    told = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if isinstance(told, int):
        return told, False
    request = exchange.request
    messages = [
        {**message, "content": text_of(message.get("content"))}
        for message in request.get("messages") or ()
        if isinstance(message, dict)
    ]
    tools = request.get("tools")
    listed = tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0
    return message_tokens(messages) + listed, True


def _share(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


# ---------------------------------------------------------------------------- asking


def ask(
    asked: Sequence[Subject], cases: Sequence[Case], settings: Settings
) -> Iterator[tuple[Run, float]]:
    """Yield each run and its seconds, the implementations taking turns at each
    question, under the clock that the cases are written for."""
    conversations = [[each.ask for each in case.questions] for case in cases]
    settings = settings.model_copy(update={"clock": CLOCK})
    runs = run_each(asked, conversations, settings, TOOLS)
    while True:
        began = perf_counter()
        run = next(runs, None)
        if run is None:
            return
        yield run, perf_counter() - began


class Benchmark:
    """Puts the runs together to cases."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        self.answered: list[Answered] = []
        self._by_question = {case.questions[0].ask: case for case in cases}
        self._begun: dict[tuple[str, str], list[tuple[Run, float]]] = {}

    def add(self, run: Run, seconds: float) -> None:
        """Take in the next run; a case counts when all of its questions are asked."""
        case = self._by_question[(*run.history, run.question)[0]]
        begun = self._begun.setdefault((run.implementation, case.id), [])
        begun.append((run, seconds))
        if len(begun) == len(case.questions):
            runs, times = zip(*begun, strict=True)
            self.answered.append(Answered(run.implementation, case, runs, times))


# ----------------------------------------------------------------------- the command


def score_command(arguments: argparse.Namespace) -> int:
    """Put the benchmark to the implementations, show the table; return the exit code:
    0 where every case is completed."""
    cases = read_cases(arguments.cases or FILE)
    settings = load_settings(
        base_url=arguments.base_url,
        model=arguments.model,
        temperature=arguments.temperature,
        max_steps=arguments.max_steps,
    )
    names = arguments.implementation
    asked = subjects(names and list(dict.fromkeys(names)))
    benchmark = Benchmark(cases)
    interrupted, failure = False, None
    try:
        failure = _gather(benchmark, asked, settings, arguments.out)
    except KeyboardInterrupt:
        interrupted = True
        if not benchmark.answered:
            raise
    answered = benchmark.answered
    scores = [score(subject.name, answered) for subject in asked]
    out = show.console(sys.stderr if arguments.json else sys.stdout)
    show_score.table(out, scores, PUBLISHED)
    model = settings.model if settings.base_url else "the offline model"
    show_score.notes(out, scores, model, PUBLISHED_NOTE)
    failed = [each for each in answered if not each.outcome.completed]
    show_score.failures(out, failed, listed=arguments.failed)
    if arguments.json:
        document = {
            "scores": [asdict(each) for each in scores],
            "published": {"figures": PUBLISHED, "note": PUBLISHED_NOTE},
            "outcomes": [each.to_json() for each in answered],
        }
        print(json.dumps(document, ensure_ascii=False))
    if interrupted or failure:
        why = failure or "interrupted"
        rest = f"{len(answered)} of {len(cases) * len(asked)} answered cases"
        print(f"{why}; the figures rest on {rest}", file=sys.stderr)
    if advice := hint(failure):
        print(advice, file=sys.stderr)
    return 130 if interrupted else 1 if failed or failure else 0


def _gather(
    benchmark: Benchmark, asked: Sequence[Subject], settings: Settings, out: Path | None
) -> str | None:
    """Fill the benchmark; return the endpoint's error where going on makes no sense."""
    in_a_row = 0
    total = len(asked) * sum(len(case.questions) for case in benchmark.cases)
    for run, seconds in track(
        ask(asked, benchmark.cases, settings),
        "asking",
        total=total,
        console=show.console(sys.stderr),
        transient=True,
    ):
        benchmark.add(run, seconds)
        if out:
            record.append(out, run)
        in_a_row = in_a_row + 1 if run.status == "model_error" else 0
        if in_a_row == FAILURES:
            return run.error
    return None
