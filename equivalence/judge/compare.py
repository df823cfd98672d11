"""Compare two runs: the first divergence, its place, and who made it.

Both runs are walked call by call: first the request, then the reply, then the tools.
Whoever differs first, while all before was equal, is the cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from operator import is_
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway.canonical import (
    ABSENT,
    canonical_message,
    canonical_request,
    differences,
    path_pattern,
    same_letters,
    text_offset,
)
from equivalence.gateway.exchange import Exchange
from equivalence.gateway.shapes import first_choice
from equivalence.language import N_, _, counted
from equivalence.phrases import translated
from equivalence.runs.record import Asked, Run, Step

RULES = {
    "ids": N_("Tool call ids are matched, not compared: servers make them up."),
    "arguments": N_(
        "Arguments are compared as parsed JSON: key order, spacing and escapes"
        " do not count, and empty arguments are {}."
    ),
    "numbers": N_(
        "100 equals 100.0: JSON has one kind of number. true does not equal 1,"
        ' and "100" does not equal 100.'
    ),
    "envelope": N_(
        "A reply's id, created, model and usage are the server's bookkeeping."
    ),
    "reasoning": N_("Reasoning beside a reply is not compared: no stage reads it."),
    "protocol": N_(
        "Where one of the two has its tool calls in text, their requests cannot"
        " be the same: steps (tool, arguments, result), status and answer are compared."
    ),
    "steps": N_(
        "Runs are compared by their steps: tool, arguments, result, status and"
        " answer. Their requests are not compared."
    ),
    "trace": N_(
        "One of the two was read from a trace that does not keep requests as they"
        " were sent: they are compared by their steps: tool, arguments, result,"
        " status and answer."
    ),
    "attempts": N_(
        "An attempt that failed and was repeated by the client is not compared:"
        " the server failed, not the code."
    ),
    "redacted": N_(
        "What was redacted looks the same on both sides: it is not compared."
    ),
}
"""What is ignored when two runs are compared, each with its reason."""

REASONING = ("reasoning_content", "reasoning", "reasoning_details")

CAUSES = {
    "request": N_(
        "The two implementations sent different requests: the difference is in"
        " the code."
    ),
    "reply": N_(
        "The same request got different replies: the difference is in the model or"
        " its server, not in the code."
    ),
    "tool": N_("The same call got different results: the difference is in the tool."),
    "control": N_(
        "All was the same so far, but one went on where the other stopped, or"
        " ended differently: the difference is in the control flow."
    ),
    "unknown": N_(
        "The two did different things, and their requests were not compared: it"
        " may be the form in which they ask, or the model."
    ),
}

VERDICTS = (
    N_("equivalent"),
    N_("accepted"),
    N_("indistinguishable"),
    N_("different"),
    N_("inconclusive"),
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
    """The left value; ABSENT where there is none."""
    right: Any
    call_side: int | None = None
    """Number of the right run's model call, where model calls that were under way
    together came in another order there; None: the same."""
    requests: str | None = None
    """Where runs are compared by steps: where their requests first differ."""
    began: str | None = None
    """The earlier question of the conversation at which the two parted, by this cause;
    the requests differ since, because each holds its own conversation. None: here."""

    @property
    def part(self) -> str:
        """Which part of the model call the path leads into: request, reply or run."""
        if not self.path.startswith("$"):
            return "run"
        return "reply" if self.cause == "reply" and not self.began else "request"

    @property
    def offset(self) -> int | None:
        """The character, from 0, at which two texts of the agents begin to differ; None
        where not both are texts, or they are the judge's words: executed, step_limit.
        """
        judges = self.cause == "control" and self.path != "answer"
        if judges or self.path == "status":
            return None
        return text_offset(self.left, self.right)


@dataclass(frozen=True)
class Verdict:
    """What the comparison of two runs came to."""

    left: str
    right: str
    question: str
    verdict: str
    """equivalent, accepted, different, inconclusive or indistinguishable."""
    divergence: Divergence | None = None
    history: tuple[str, ...] = ()
    """The earlier questions of the conversation."""
    repeat: int = 0
    reason: str = ""
    """Why it is accepted."""

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as it stands in JSON; a value that is absent on one side
        has no key there."""
        data: dict[str, Any] = {
            "left": self.left,
            "right": self.right,
            "question": self.question,
            "history": list(self.history),
            "repeat": self.repeat,
            "verdict": self.verdict,
        }
        place = self.divergence
        for key in ("cause", "model_call", "path", "began"):
            data[key] = getattr(place, key, None)
        if self.reason:
            data["reason"] = self.reason
        if place and place.requests:
            data["requests"] = place.requests
        if place:
            if place.offset is not None:
                data["offset"] = place.offset
            for name in ("left", "right"):
                if (value := getattr(place, name)) is not ABSENT:
                    data[f"{name}_value"] = value
        return data


@dataclass(frozen=True)
class Rules:
    """How runs are compared."""

    by: str = "requests"
    """"requests": every byte that the code wrote, and all that came of it. "steps":
    tool, arguments, result, status and answer alone, for implementations whose requests
    can never be equal."""
    ignore: tuple[str, ...] = ()
    """JSON paths that are passed over, with all that stands below them; [*] is any
    place of a list: $.temperature, $.messages[*].name."""

    def __post_init__(self) -> None:
        """Raise UsageError if something cannot be a rule."""
        if self.by not in ("requests", "steps"):
            raise UsageError(
                _("runs are compared by requests or steps, not {by!r}").format(
                    by=self.by
                )
            )
        for path in self.ignore:
            if not re.match(r"\$\.|steps\[", path):
                raise UsageError(
                    _(
                        "{path!r} is no path: write what a verdict prints,"
                        " $.temperature or steps[0].result; [*] is any place"
                    ).format(path=path)
                )

    def differences(
        self, left: Any, right: Any, path: str = "$"
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield the differences of two values that count."""
        for found in differences(left, right, path):
            if not self.ignores(found[0]):
                yield found

    def ignores_in_request(self, path: str) -> bool:
        """Tell whether what stands there in a request is passed over."""
        return self.by == "steps" or self.ignores(path)

    def ignores(self, path: str) -> bool:
        """Tell whether what stands there is passed over."""
        return any(path_pattern(each).match(path) for each in self.ignore)


STRICT = Rules()


class Judge:
    """Judges the runs of conversations, question after question. Once two have parted,
    their conversations differ: what follows from that has the cause it began with, so
    that a model that answered otherwise is not blamed on the code one question later.
    """

    def __init__(
        self, rules: Rules = STRICT, accept: Accept = lambda verdict, *_: verdict
    ) -> None:
        self.rules = rules
        self.accept = accept
        self._found: dict[tuple[Any, ...], Verdict] = {}

    def __call__(self, left: Run, right: Run) -> Verdict:
        """Return the verdict on two runs of one question. The questions before it are
        known if their runs were judged here."""
        pair = left.implementation, right.implementation, left.repeat
        verdict = judge(left, right, self.rules)
        earlier = self._found.get((*pair, *left.history))
        first = earlier.divergence if earlier else None
        place = verdict.divergence
        if earlier and first and place and _from_history(place):
            began = first.began or earlier.question
            place = replace(place, cause=first.cause, began=began)
            verdict = replace(verdict, verdict=earlier.verdict, divergence=place)
        if verdict.divergence:
            self._found[(*pair, *left.history, left.question)] = verdict
        return self.accept(verdict, left, right)


def _from_history(place: Divergence) -> bool:
    """Whether the divergence is one of the messages with which the run began."""
    written = place.cause in ("request", "tool") and place.model_call == 1
    return written and place.path.startswith("$.messages")


Accept = Callable[[Verdict, Run, Run], Verdict]
"""Makes of a verdict an accepted one, where somebody knows the difference."""


def judge(left: Run, right: Run, rules: Rules = STRICT) -> Verdict:
    """Return the verdict on two runs of one question, by themselves."""
    divergence = compare(left, right, rules)
    if divergence and not _server_failed(left, right, divergence):
        verdict = "different"
    elif divergence or {left.status, right.status} & {"model_error", "failed"}:
        verdict = "inconclusive"
    else:
        verdict = "equivalent"
    return Verdict(
        left.implementation,
        right.implementation,
        left.question,
        verdict,
        divergence,
        tuple(left.history),
        left.repeat,
    )


def among_each_other(
    asked: Iterable[Asked], read: Callable[[Asked], Run]
) -> Iterator[Verdict]:
    """Yield the verdicts on runs of several implementations: at each question, the
    one that appears first of all is compared with each other. `read` gives a run; those
    of one question are read together, and none is kept."""
    groups: dict[Asked, dict[str, Asked]] = {}
    names: dict[str, None] = {}
    for each in asked:
        names.setdefault(each.implementation)
        group = groups.setdefault(replace(each, implementation=""), {})
        group[each.implementation] = each
    judge = Judge()
    for by in groups.values():
        first, *others = (by[name] for name in names if name in by)
        if others:
            baseline = read(first)
            yield from (judge(baseline, read(other)) for other in others)


def by_steps(left: Run, right: Run, rules: Rules = STRICT) -> str:
    """Return the name of the rule by which the two are compared by their steps alone;
    "" where their requests are compared."""
    if rules.by == "steps":
        return "steps"
    if left.rebuilt or right.rebuilt:
        return "trace"
    return "protocol" if left.protocol != right.protocol else ""


def compare(left: Run, right: Run, rules: Rules = STRICT) -> Divergence | None:
    """Return the first divergence of two runs; None where there is none."""
    if by := by_steps(left, right, rules):
        found = next(_step_divergences(left, right, rules), None)
        if found is None or by == "trace":
            return found
        return replace(found, requests=_where_requests_differ(left, right))
    lefts, rights = left.model_calls, right.model_calls
    steps = _by_turn(left), _by_turn(right)
    requests = _Requests()
    for index, other in _paired(lefts, rights):
        if index is None or other is None:
            number = max(index or 0, other or 0) + 1
            went_on = f"model call {number}"
            x = left.status if index is None else went_on
            y = right.status if other is None else went_on
            return Divergence("control", number, "status", x, y)
        number = index + 1
        a, b = lefts[index], rights[other]
        side = None if index == other else other + 1
        if not requests.same(a.request, b.request):
            for place in rules.differences(request(a), request(b)):
                cause = _who_wrote(place[0], a, left, right)
                return Divergence(cause, number, *place, call_side=side)
        if a.status != b.status or not same_letters(a.reply, b.reply):
            for place in rules.differences(reply(a), reply(b)):
                return Divergence("reply", number, *place, call_side=side)
        lefts_here, rights_here = steps[0].get(number, ()), steps[1].get(other + 1, ())
        if lefts_here == rights_here:
            continue
        for cause, place in _tool_differences(lefts_here, rights_here):
            if rules.ignores(place[0]):
                continue
            return Divergence(cause, number, *place, call_side=side)
    number = max(len(lefts), 1)
    for name in ("status", "answer"):
        values = getattr(left, name), getattr(right, name)
        if values[0] != values[1]:
            return Divergence("control", number, name, *values)
    return None


class _Requests:
    """The requests of two runs, pair after pair. Where both only add to the pair before
    them, which had no difference, what they add is compared."""

    def __init__(self) -> None:
        self._before: Requests = {}, {}
        self._to_the_letter = True
        """Whether the pair before was the same to the letter. If it was not, an id may
        be another call's on the other side: then ids are numbered, from the first."""
        self._ids: tuple[dict[Any, str], ...] = {}, {}
        self._numbered = 0
        """In so many messages of each side the ids have their numbers."""

    def same(self, left: dict[str, Any], right: dict[str, Any]) -> bool:
        """Tell whether the next two are the same; False where only a walk can tell."""
        before = self._before
        self._before = left, right
        head = _continued_by(before[0], left)
        if head is None or head != _continued_by(before[1], right):
            self._ids, self._numbered = ({}, {}), 0
            self._to_the_letter = same_letters(left, right)
            return self._to_the_letter
        said = left["messages"], right["messages"]
        if self._to_the_letter and same_letters(said[0][head:], said[1][head:]):
            return True
        self._to_the_letter = False
        plain = [
            [canonical_message(message, ids) for message in messages[self._numbered :]]
            for messages, ids in zip(said, self._ids, strict=True)
        ]
        self._numbered = len(said[0])
        return same_letters(*plain)


Requests = tuple[dict[str, Any], dict[str, Any]]


def _continued_by(before: dict[str, Any], request: dict[str, Any]) -> int | None:
    """How many messages the request before has, if this one only adds to them; None
    where it does not, or where that would take longer to tell than to compare."""
    earlier, now = before.get("messages"), request.get("messages")
    if not isinstance(earlier, list) or not isinstance(now, list):
        return None
    if before.keys() != request.keys() or len(now) < len(earlier):
        return None
    for key, value in before.items():
        now_it_is = request[key]
        if (
            key != "messages"
            and value is not now_it_is
            and not same_letters(value, now_it_is)
        ):
            return None
    if not all(map(is_, earlier, now)):  # records share what they do not change
        return None
    return len(earlier)


def _paired(
    lefts: Sequence[Exchange], rights: Sequence[Exchange]
) -> Iterator[tuple[int | None, int | None]]:
    """The model calls of two runs side by side, by their places; None where one has
    none.

    They are paired by their order, unless some were under way together in either run:
    then order means nothing, and each is paired by the conversation it continues, the
    first calls of two conversations by their requests.
    """
    if not (_under_way_together(lefts) or _under_way_together(rights)):
        yield from zip_longest(range(len(lefts)), range(len(rights)))
        return
    continued = [_continued(calls) for calls in (lefts, rights)]
    requests = [[request(call) for call in calls] for calls in (lefts, rights)]
    partner: dict[int, int] = {}
    left_over = list(range(len(rights)))
    for index, wanted in enumerate(requests[0]):
        parent = continued[0][index]
        siblings = [
            other
            for other in left_over
            if continued[1][other] == (None if parent is None else partner.get(parent))
        ]
        same = [other for other in siblings if requests[1][other] == wanted]
        if chosen := (same or siblings)[:1]:
            partner[index] = chosen[0]
            left_over.remove(chosen[0])
    for index in range(len(lefts)):
        yield index, partner.get(index)
    for other in left_over:
        yield None, other


def ignored(left: Run, right: Run, rules: Rules = STRICT) -> set[str]:
    """Return the names of the RULES by which the two runs were equal where they are not
    the same to the letter."""
    found = {"redacted"} if left.redacted or right.redacted else set()
    if by := by_steps(left, right, rules):
        return {by, *found}
    for run in (left, right):
        if len(run.exchanges) != len(run.model_calls):
            found.add("attempts")
    for a, b in zip(left.model_calls, right.model_calls, strict=False):
        found |= _ignored_in_messages(
            a.request.get("messages"), b.request.get("messages")
        )
        if isinstance(a.reply, dict) and isinstance(b.reply, dict):
            if any(a.reply.get(key) != b.reply.get(key) for key in ENVELOPE):
                found.add("envelope")
            choices = first_choice(a.reply), first_choice(b.reply)
            messages = [[each["message"]] if each else [] for each in choices]
            found |= _ignored_in_messages(*messages)
    return found


ENVELOPE = ("id", "created", "model", "usage")


def _ignored_in_messages(lefts: Any, rights: Any) -> set[str]:
    if lefts == rights or not isinstance(lefts, list) or not isinstance(rights, list):
        return set()
    found = set()
    for a, b in zip(lefts, rights, strict=False):
        if not isinstance(a, dict) or not isinstance(b, dict) or a == b:
            continue
        if a.get("tool_call_id") != b.get("tool_call_id"):
            found.add("ids")
        if any(a.get(name) != b.get(name) for name in REASONING):
            found.add("reasoning")
        calls = [each.get("tool_calls") for each in (a, b)]
        for x, y in zip(*(each or () for each in calls), strict=False):
            found |= _ignored_in_calls(x, y)
    return found


def _ignored_in_calls(left: Any, right: Any) -> set[str]:
    if not isinstance(left, dict) or not isinstance(right, dict):
        return set()
    found = {"ids"} if left.get("id") != right.get("id") else set()
    written = [(each.get("function") or {}).get("arguments") for each in (left, right)]
    if written[0] != written[1]:
        plain = [canonical_message({"tool_calls": [c]}, {}) for c in (left, right)]
        same = repr(plain[0]) == repr(plain[1])
        found.add("arguments" if same else "numbers")
    return found


def _under_way_together(calls: Sequence[Exchange]) -> bool:
    """Whether a model call began before an earlier one had ended, or a conversation
    before an earlier one had: two sub-agents that take turns run side by side, also
    where no two of their calls overlap."""
    ended, length, in_line = 0.0, -1, True
    for call in calls:
        if call.began < ended:
            return True
        messages = call.request.get("messages")
        now = len(messages) if isinstance(messages, list) else 0
        in_line &= now > length
        ended, length = max(ended, call.began + (call.ms or 0.0)), now
    return not in_line and _taking_turns(calls)


def _taking_turns(calls: Sequence[Exchange]) -> bool:
    """Whether a conversation goes on after another one has begun, apart from the run's
    first, which waits for all that its sub-agents do."""
    of: list[int] = []
    for index, parent in enumerate(_continued(calls)):
        of.append(index if parent is None else of[parent])
    others = [conversation for conversation in of if conversation != 0]
    changes = [b for a, b in pairwise(others) if a != b]
    return bool(others) and len(changes) >= len(set(others))


def _continued(calls: Sequence[Exchange]) -> list[int | None]:
    """For each model call, the one whose conversation it continues: the latest whose
    messages it begins with; None where it begins a conversation."""
    said = [call.request.get("messages") or [] for call in calls]
    found: list[int | None] = []
    for index, messages in enumerate(said):
        earlier = (
            before
            for before in range(index - 1, -1, -1)
            if len(said[before]) < len(messages)
            and messages[: len(said[before])] == said[before]
        )
        found.append(next(earlier, None))
    return found


_TOOL_CONTENT = re.compile(r"\$\.messages\[(\d+)\]\.content\b")


def _who_wrote(path: str, exchange: Exchange, left: Run, right: Run) -> str:
    """The cause of a difference in two requests: the code, unless it is what a tool
    answered to an equal call and the tools of one run were not watched."""
    match = _TOOL_CONTENT.match(path)
    messages = exchange.request.get("messages")
    if match and isinstance(messages, list) and int(match[1]) < len(messages):
        message = messages[int(match[1])]
        unwatched = any(step.ok is None for run in (left, right) for step in run.steps)
        if isinstance(message, dict) and message.get("role") == "tool" and unwatched:
            return "tool"
    return "request"


def _step_divergences(left: Run, right: Run, rules: Rules) -> Iterator[Divergence]:
    """The divergences of two runs whose requests are not compared. Where one of them
    ended because its endpoint failed, it is the reply that differs."""
    failed = "model_error" in (left.status, right.status)
    for index, (a, b) in enumerate(zip_longest(left.steps, right.steps)):
        path, number = f"steps[{index}]", (a or b).turn
        if a is None or b is None:
            x = f"{path}: {a.tool}" if a else left.status
            y = f"{path}: {b.tool}" if b else right.status
            shorter = left if a is None else right
            cause = "reply" if shorter.status == "model_error" else "control"
            yield Divergence(cause, number, "status", x, y)
            return
        asked = {"tool": a.tool, "arguments": a.arguments}
        too = {"tool": b.tool, "arguments": b.arguments}
        for place in rules.differences(asked, too, path):
            yield Divergence("unknown", number, *place)
        for cause, place in _step_differences(a, b, path):
            if not rules.ignores(place[0]):
                yield Divergence(cause, number, *place)
    number = max(len(left.model_calls), 1)
    for name in ("status", "answer"):
        values = getattr(left, name), getattr(right, name)
        if values[0] != values[1]:
            ended = {left.status, right.status} & {"step_limit", "failed"}
            cause = "reply" if failed else "control" if ended else "unknown"
            yield Divergence(cause, number, name, *values)


def _where_requests_differ(left: Run, right: Run) -> str | None:
    """Where the requests of two runs, which were not compared, first differ; None where
    one has none."""
    for number, (a, b) in enumerate(
        zip(left.model_calls, right.model_calls, strict=False), 1
    ):
        for path, *_values in differences(request(a), request(b)):
            return f"model call {number}, {path}"
    return None


def request(exchange: Exchange) -> Any:
    """Return the request in the form in which requests are compared."""
    return canonical_request(exchange.request)


def reply(exchange: Exchange) -> Any:
    """Return the reply in the form in which replies are compared."""
    choice = first_choice(exchange.reply)
    if exchange.status != 200 or choice is None:
        return {"status": exchange.status, "body": exchange.reply}
    message = canonical_message(choice["message"], {})
    for name in REASONING:
        message.pop(name, None)
    return {"message": message, "finish_reason": choice.get("finish_reason")}


def explain(verdict: Verdict) -> str:
    """Return one sentence on what the verdict means and what to do next."""
    place = verdict.divergence
    if verdict.verdict == "accepted":
        return _("Accepted: {reason}").format(reason=verdict.reason)
    if place is None:
        return {
            "equivalent": _("Same requests, same replies, same tools, same end."),
            "inconclusive": _("A run failed before it could be judged: see its error."),
        }[verdict.verdict]
    if verdict.verdict == "inconclusive":
        return _("The endpoint failed for one of the two: run it again, or replay.")
    if place.began:
        return _("At the earlier question {began!r}: {cause}").format(
            began=place.began, cause=_(CAUSES[place.cause])
        )
    if place.requests:
        where = _(" They first differ in {requests}.").format(
            requests=translated(place.requests)
        )
        return _(CAUSES[place.cause]) + where
    return _(CAUSES[place.cause])


def tally(counts: Mapping[str, int]) -> str:
    """Return how many comparisons came to which verdict."""
    words = (
        _("{count} {verdict}").format(count=count, verdict=_(name))
        for name, count in counts.items()
        if count
    )
    comparisons = counted(
        sum(counts.values()), "{count} comparison", "{count} comparisons"
    )
    return _("{comparisons}: {verdicts}").format(
        comparisons=comparisons, verdicts=_(", ").join(words)
    )


def _server_failed(left: Run, right: Run, place: Divergence) -> bool:
    """Whether the divergence is that the endpoint failed for one and not the other."""
    return place.cause == "reply" and "model_error" in (left.status, right.status)


Place = tuple[Any, ...]
"""The path of a difference and both values."""

Steps = Sequence[tuple[int, Step]]
"""Steps of one model call, each with its place in the run."""


def _by_turn(run: Run) -> dict[int, list[tuple[int, Step]]]:
    found: dict[int, list[tuple[int, Step]]] = {}
    for place, step in enumerate(run.steps):
        found.setdefault(step.turn, []).append((place, step))
    return found


def _tool_differences(lefts: Steps, rights: Steps) -> Iterator[tuple[str, Place]]:
    """The steps of one model call side by side."""
    executed = [
        sorted(step.order for _, step in steps if step.order is not None)
        for steps in (lefts, rights)
    ]
    nothing = None, None
    for (index, a), (at, b) in zip_longest(lefts, rights, fillvalue=nothing):
        path = f"steps[{at if index is None else index}]"
        if a is None or b is None:  # an execution more, which no reply had asked for
            did = [f"{one.tool} executed" if one else "nothing" for one in (a, b)]
            yield "control", (path, *did)
            return
        yield from _step_differences(a, b, path)
        if a.order is None or b.order is None or a.concurrent or b.concurrent:
            continue
        places = executed[0].index(a.order), executed[1].index(b.order)
        if places[0] != places[1]:
            yield "control", (f"{path}.order", *places)


def _step_differences(a: Step, b: Step, path: str) -> Iterator[tuple[str, Place]]:
    """The same call on both sides: whether it was executed is control, what an executed
    call gave back is the tool. What the model read of it is compared in the requests.
    """
    if None in (a.ok, b.ok):  # one side's tools were not watched
        if a.result is not None and b.result is not None and a.result != b.result:
            yield "tool", (f"{path}.result", a.result, b.result)
    elif (a.order is None) != (b.order is None):
        no, yes = "not executed", "executed"
        did = [no if step.order is None else yes for step in (a, b)]
        yield "control", (path, *did)
    elif a.order is not None:
        x = a.result if a.returned is None else a.returned
        y = b.result if b.returned is None else b.returned
        if (x, a.ok) != (y, b.ok):
            yield "tool", (f"{path}.result", x, y)
