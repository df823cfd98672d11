"""Compare two runs: the first divergence, its place, and who made it.

Both runs are walked call by call: first the request, then the reply, then the tools.
Whoever differs first, while all before was equal, is the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

from equivalence.record import Run, Step
from equivalence.trace import first_choice
from gateway.canonical import canonical_message, canonical_request, differences

RULES = {
    "ids": "Tool call ids are matched, not compared: servers make them up.",
    "arguments": "Arguments are compared as parsed JSON: key order, spacing and escapes"
    " do not count, and empty arguments are {}.",
    "numbers": "100 equals 100.0: JSON has one kind of number. true does not equal 1,"
    ' and "100" does not equal 100.',
    "envelope": "A reply's id, created, model and usage are the server's bookkeeping.",
    "reasoning": "Reasoning beside a reply is not compared: no stage reads it.",
    "protocol": "Where one of the two has its tool calls in text, their requests cannot"
    " be the same: steps (tool, arguments, result), status and answer are compared.",
    "attempts": "An attempt that failed and was repeated by the client is not compared:"
    " the server failed, not the code.",
}
"""What is looked past when two runs are compared, each with its reason."""

CAUSES = {
    "request": "The two implementations sent different requests: the difference is in"
    " the code.",
    "reply": "The same request got different replies: the difference is in the model or"
    " its server, not in the code.",
    "tool": "The same call got different results: the difference is in the tool.",
    "control": "All was the same so far, but one went on where the other stopped, or"
    " ended differently: the difference is in the control flow.",
}


OTHER_PROMPT = (
    "The model decided otherwise. The two ask it in different forms, with its tools in"
    " the request and in the prompt, so this may be the form or the model."
)


@dataclass(frozen=True)
class Divergence:
    """The first place where two runs differ."""

    cause: str
    """One of CAUSES."""
    model_call: int
    """Number of the model call at which it shows, from 1."""
    path: str
    """JSON path in the request or the reply; a field of the run record otherwise."""
    left: Any
    right: Any
    began: str | None = None
    """The earlier question of the conversation at which the two parted, by this cause;
    the requests differ since, because each holds its own conversation. None: here."""

    @property
    def part(self) -> str:
        """Which part of the model call the path leads into: request, reply or run."""
        if not self.path.startswith("$"):
            return "run"
        return "request" if self.began else self.cause


@dataclass(frozen=True)
class Verdict:
    """What the comparison of two runs came to."""

    left: str
    right: str
    question: str
    verdict: str
    """equivalent, different, inconclusive or indistinguishable."""
    divergence: Divergence | None = None

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        place = data.pop("divergence") or {}
        for key in ("cause", "model_call", "path", "began"):
            data[key] = place.get(key)
        data["left_value"], data["right_value"] = place.get("left"), place.get("right")
        return data


class Judge:
    """Judges the runs of conversations, question after question. Once two have parted,
    their conversations differ: what follows from that has the cause it began with, so
    that a model that answered otherwise is not blamed on the code one question later.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], Verdict] = {}

    def __call__(self, left: Run, right: Run) -> Verdict:
        """Return the verdict on two runs of one question. The questions before it are
        known if their runs were judged here."""
        pair = left.implementation, right.implementation, left.repeat
        verdict = judge(left, right)
        earlier = self._found.get((*pair, *left.history))
        first = earlier.divergence if earlier else None
        place = verdict.divergence
        if earlier and first and place and _from_history(place):
            began = first.began or earlier.question
            place = replace(place, cause=first.cause, began=began)
            verdict = replace(verdict, verdict=earlier.verdict, divergence=place)
        self._found[(*pair, *left.history, left.question)] = verdict
        return verdict


def _from_history(place: Divergence) -> bool:
    """Whether the divergence is one of the messages with which the run began."""
    first_request = (place.cause, place.model_call) == ("request", 1)
    return first_request and place.path.startswith("$.messages")


def judge(left: Run, right: Run) -> Verdict:
    """Return the verdict on two runs of one question, by themselves."""
    divergence = compare(left, right)
    if divergence and not _server_failed(left, right, divergence):
        verdict = "different"
    elif divergence or {left.status, right.status} & {"model_error", "failed"}:
        verdict = "inconclusive"
    else:
        verdict = "equivalent"
    return Verdict(
        left.implementation, right.implementation, left.question, verdict, divergence
    )


def among_each_other(runs: Iterable[Run]) -> list[Verdict]:
    """Return the verdicts on runs of several implementations: at each question, the
    one that appears first of all is compared with each other."""
    asked: dict[tuple[str, ...], dict[str, Run]] = {}
    names: dict[str, None] = {}
    for run in runs:
        names.setdefault(run.implementation)
        asked.setdefault(_asked(run), {})[run.implementation] = run
    judge = Judge()
    ordered = ([by[name] for name in names if name in by] for by in asked.values())
    return [judge(first, run) for first, *others in ordered for run in others]


def pair(
    lefts: Sequence[Run], rights: Sequence[Run]
) -> tuple[list[tuple[Run, Run]], list[Run]]:
    """Pair runs of the same question, history and repeat: those of the same
    implementation where both sides know it, else each with each. Return the pairs and
    the runs without a partner. Of runs recorded twice the later one counts."""
    named = [
        {(_asked(r), r.implementation): r for r in runs} for runs in (lefts, rights)
    ]
    shared = {name for _, name in named[0]} & {name for _, name in named[1]}
    pairs = [
        (left, right)
        for (asked, name), left in named[0].items()
        for (also_asked, other), right in named[1].items()
        if asked == also_asked and (name == other if shared else True)
    ]
    partnered = {id(run) for couple in pairs for run in couple}
    everyone = [*named[0].values(), *named[1].values()]
    return pairs, [run for run in everyone if id(run) not in partnered]


def _asked(run: Run) -> tuple[str, ...]:
    return (*run.history, run.question, str(run.repeat))


def compare(left: Run, right: Run) -> Divergence | None:
    """Return the first divergence of two runs; None where there is none."""
    if left.protocol != right.protocol:
        return next(_step_divergences(left, right), None)
    lefts, rights = left.model_calls, right.model_calls
    for index in range(max(len(lefts), len(rights))):
        number = index + 1
        if index >= len(lefts) or index >= len(rights):
            went_on = f"model call {number}"
            ends = [
                went_on if index < len(run.model_calls) else run.status
                for run in (left, right)
            ]
            return Divergence("control", number, "status", *ends)
        a, b = lefts[index], rights[index]
        for place in differences(request(a), request(b)):
            return Divergence("request", number, *place)
        for place in differences(reply(a), reply(b)):
            return Divergence("reply", number, *place)
        for cause, place in _tool_differences(left, right, number):
            return Divergence(cause, number, *place)
    number = max(len(lefts), 1)
    for name in ("status", "answer"):
        values = getattr(left, name), getattr(right, name)
        if values[0] != values[1]:
            return Divergence("control", number, name, *values)
    return None


def _step_divergences(left: Run, right: Run) -> Iterator[Divergence]:
    """The divergences of two runs of which one has its tool calls in text."""
    for index, (a, b) in enumerate(zip_longest(left.steps, right.steps)):
        path, number = f"steps[{index}]", (a or b).turn
        if a is None or b is None:
            ends = [
                f"{path}: {step.tool}" if step else run.status
                for step, run in ((a, left), (b, right))
            ]
            stopped = left if a is None else right
            yield Divergence(_ended_by(stopped), number, "status", *ends)
            return
        x, y = ({"tool": s.tool, "arguments": s.arguments} for s in (a, b))
        for place in differences(x, y, path):
            yield Divergence("reply", number, *place)
        for cause, place in _step_differences(a, b, path):
            yield Divergence(cause, number, *place)
    number = max(len(left.model_calls), 1)
    for name in ("status", "answer"):
        values = getattr(left, name), getattr(right, name)
        if values[0] != values[1]:
            causes = {_ended_by(left), _ended_by(right)}
            cause = "control" if "control" in causes else "reply"
            yield Divergence(cause, number, name, *values)


def _ended_by(run: Run) -> str:
    """Who ended the run: the model, by a reply without a call, or the control flow."""
    return "control" if run.status in ("step_limit", "failed") else "reply"


def request(exchange: dict[str, Any]) -> Any:
    """Return the request in the form in which requests are compared."""
    return canonical_request(exchange["request"])


def reply(exchange: dict[str, Any]) -> Any:
    """Return the reply in the form in which replies are compared."""
    choice = first_choice(exchange["reply"])
    if exchange["status"] != 200 or choice is None:
        return {"status": exchange["status"], "body": exchange["reply"]}
    message = canonical_message(choice["message"], {})
    for name in ("reasoning_content", "reasoning"):
        message.pop(name, None)
    return {"message": message, "finish_reason": choice.get("finish_reason")}


def explain(verdict: Verdict) -> str:
    """Return one sentence on what the verdict means and what to do next."""
    place = verdict.divergence
    if place is None:
        return {
            "equivalent": "Same requests, same replies, same tools, same end.",
            "inconclusive": "A run failed before it could be judged: see its error.",
        }[verdict.verdict]
    if verdict.verdict == "inconclusive":
        return "The endpoint failed for one of the two: run it again, or replay."
    if place.cause == "reply" and place.part == "run":
        return OTHER_PROMPT
    if place.began:
        return f"At the earlier question {place.began!r}: {CAUSES[place.cause]}"
    return CAUSES[place.cause]


def counted(count: int, noun: str) -> str:
    """Return so many of them: 1 question, 2 questions."""
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _server_failed(left: Run, right: Run, place: Divergence) -> bool:
    """Whether the divergence is that the endpoint failed for one and not the other."""
    return place.cause == "reply" and "model_error" in (left.status, right.status)


def _tool_differences(
    left: Run, right: Run, turn: int
) -> Iterator[tuple[str, tuple[str, Any, Any]]]:
    """The steps of one turn side by side."""
    lefts, rights = (
        [(index, step) for index, step in enumerate(run.steps) if step.turn == turn]
        for run in (left, right)
    )
    for (index, a), (_, b) in zip(lefts, rights, strict=False):
        yield from _step_differences(a, b, path := f"steps[{index}]")
        executed = None not in (a.order, b.order)
        if executed and a.order != b.order and not _concurrent(left, right):
            yield "control", (f"{path}.order", a.order, b.order)


def _step_differences(
    a: Step, b: Step, path: str
) -> Iterator[tuple[str, tuple[str, Any, Any]]]:
    """The same call on both sides: whether it was executed is control, what an executed
    call gave back is the tool."""
    if None in (a.ok, b.ok):  # one side's tools were not watched
        return
    if (a.order is None) != (b.order is None):
        no, yes = "not executed", "executed"
        x, y = (no if step.order is None else yes for step in (a, b))
        yield "control", (path, x, y)
    elif a.order is not None and (a.result, a.ok) != (b.result, b.ok):
        yield "tool", (f"{path}.result", a.result, b.result)


def _concurrent(*runs: Run) -> bool:
    return any(run.settings.get("tool_concurrency", 1) != 1 for run in runs)
