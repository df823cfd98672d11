"""Compare two runs: the first divergence, its place, and who made it.

Both runs are walked call by call: first the request, then the reply, then the tools.
Whoever differs first, while all before was equal, is the cause.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from equivalence.record import Run
from equivalence.trace import first_choice

RULES = {
    "ids": "Tool call ids are matched, not compared: servers make them up.",
    "arguments": "Arguments are compared as parsed JSON: key order, spacing and escapes"
    " do not count, and empty arguments are {}.",
    "numbers": "100 equals 100.0: JSON has one kind of number. true does not equal 1,"
    ' and "100" does not equal 100.',
    "envelope": "A reply's id, created, model and usage are the server's bookkeeping.",
    "reasoning": "Reasoning beside a reply is not compared: no implementation reads it.",
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

ABSENT = "(absent)"


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
        for key in ("cause", "model_call", "path"):
            data[key] = place.get(key)
        data["left_value"], data["right_value"] = place.get("left"), place.get("right")
        return data


def judge(left: Run, right: Run) -> Verdict:
    """Return the verdict on two runs of one question."""
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


def request(exchange: dict[str, Any]) -> Any:
    """Return the request in the form in which requests are compared."""
    plain = dict(exchange["request"])
    messages = plain.get("messages")
    if isinstance(messages, list):
        ids: dict[Any, str] = {}
        plain["messages"] = [_message(message, ids) for message in messages]
    return plain


def reply(exchange: dict[str, Any]) -> Any:
    """Return the reply in the form in which replies are compared."""
    choice = first_choice(exchange["reply"])
    if exchange["status"] != 200 or choice is None:
        return {"status": exchange["status"], "body": exchange["reply"]}
    message = _message(choice["message"], {})
    for name in ("reasoning_content", "reasoning"):
        message.pop(name, None)
    return {"message": message, "finish_reason": choice.get("finish_reason")}


def differences(
    left: Any, right: Any, path: str = "$"
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (JSON path, left value, right value) of each difference, in order."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in dict.fromkeys([*left, *right]):
            yield from differences(
                left.get(key, ABSENT), right.get(key, ABSENT), f"{path}.{key}"
            )
    elif isinstance(left, list) and isinstance(right, list):
        for index in range(max(len(left), len(right))):
            a, b = (
                side[index] if index < len(side) else ABSENT for side in (left, right)
            )
            yield from differences(a, b, f"{path}[{index}]")
    elif left != right or isinstance(left, bool) != isinstance(right, bool):
        yield path, left, right


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
    return CAUSES[place.cause]


def _server_failed(left: Run, right: Run, place: Divergence) -> bool:
    """Whether the divergence is that the endpoint failed for one and not the other."""
    return place.cause == "reply" and "model_error" in (left.status, right.status)


def _tool_differences(
    left: Run, right: Run, turn: int
) -> Iterator[tuple[str, tuple[str, Any, Any]]]:
    """The steps of one turn side by side: whether a call was executed is control, what
    an executed call gave back is the tool."""
    lefts, rights = (
        [(index, step) for index, step in enumerate(run.steps) if step.turn == turn]
        for run in (left, right)
    )
    for (index, a), (_, b) in zip(lefts, rights, strict=False):
        if None in (a.ok, b.ok):  # one side's tools were not watched
            continue
        path = f"steps[{index}]"
        if (a.order is None) != (b.order is None):
            no, yes = "not executed", "executed"
            x, y = (no if step.order is None else yes for step in (a, b))
            yield "control", (path, x, y)
        elif a.order is not None and (a.result, a.ok) != (b.result, b.ok):
            yield "tool", (f"{path}.result", a.result, b.result)
        elif a.order != b.order and not _concurrent(left, right):
            yield "control", (f"{path}.order", a.order, b.order)


def _concurrent(*runs: Run) -> bool:
    return any(run.settings.get("tool_concurrency", 1) != 1 for run in runs)


def _message(message: Any, ids: dict[Any, str]) -> Any:
    """The message with ids numbered in order of appearance and arguments parsed."""
    if not isinstance(message, dict):
        return message
    plain = dict(message)
    if isinstance(calls := plain.get("tool_calls"), list):
        plain["tool_calls"] = [_call(call, ids) for call in calls]
    if "tool_call_id" in plain:
        plain["tool_call_id"] = _number(plain["tool_call_id"], ids)
    return plain


def _call(call: Any, ids: dict[Any, str]) -> Any:
    if not isinstance(call, dict):
        return call
    plain = {**call, "id": _number(call.get("id"), ids)}
    if isinstance(function := plain.get("function"), dict):
        arguments = _arguments(function.get("arguments"))
        plain["function"] = {**function, "arguments": arguments}
    return plain


def _number(identifier: Any, ids: dict[Any, str]) -> str:
    return ids.setdefault(json.dumps(identifier), f"call {len(ids) + 1}")


def _arguments(arguments: Any) -> Any:
    if arguments is None or arguments == "":
        return {}
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments
