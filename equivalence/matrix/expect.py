"""What a scenario expects, beside what an agent did with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from equivalence.gateway.shapes import first_choice
from equivalence.matrix.player import Played
from equivalence.matrix.scenarios import Scenario
from equivalence.runs.record import Run, Step
from equivalence.runs.steps import as_messages, text_of

NAMES = frozenset(
    (
        *("status", "answer", "error", "requests", "steps", "results", "told"),
        *("repairs", "warnings", "echoed", "sent", "not_sent", "not_said"),
    )
)
"""What a scenario can expect; scenarios.py says what each means."""


def unmet(
    scenario: Scenario, played: Played, *, own_words: bool = False
) -> Iterator[str]:
    """Yield, in words, each expectation of the scenario that was not met; nothing where
    all were.

    `own_words`: the agent is not built on our tool policy. Then it is free in how it
    tells the model of a call that it refused or that failed, in how it spells JSON, and
    in which exception it raises when the endpoint has failed; what the gateway and the
    observer write is not compared.
    """
    run = played.runs[-1]
    requests = [exchange.request for each in played.runs for exchange in each.exchanges]
    if not requests:
        yield f"it sent no request: {run.error}"
        return
    if own_words:
        yield from _anybodys(scenario, played)
    else:
        yield from _ours(scenario, played)
    for part in scenario.expect.get("sent", ()):
        if part not in as_json(requests[-1]):
            yield f"sent: {part!r} is not in {as_json(requests[-1]['messages'])}"
    for part in scenario.expect.get("not_sent", ()):
        if any(part in as_json(request) for request in requests):
            yield f"not_sent: {part!r} is sent"
    for refusal in played.script.refusals:
        if own_words and scenario.expect["status"] == "model_error":
            break
        if refusal not in (run.error or "") or own_words:
            yield f"the strict server refused: {refusal}"
            break
    if scenario.settings.get("tool_concurrency", 1) == 1:
        executed = [s.order for s in run.steps if s.order is not None]
        apart = own_words and any(step.concurrent for step in run.steps)
        if not apart and executed != sorted(executed):
            yield f"executed out of order: {executed}"


def _ours(scenario: Scenario, played: Played) -> Iterator[str]:
    """What the ladder's implementations must give to the letter."""
    run = played.runs[-1]
    exchanges = [exchange for each in played.runs for exchange in each.exchanges]
    messages = exchanges[-1].request["messages"]
    is_equal: dict[str, Any] = {
        "status": run.status,
        "answer": run.answer,
        "requests": len(exchanges),
        "steps": [_as_expected(step) for each in played.runs for step in each.steps],
        "told": _tool_messages(played, messages),
        "repairs": [name for exchange in exchanges for name in exchange.repairs],
        "echoed": _echoed(messages),
    }
    for name, got in is_equal.items():
        wanted = scenario.expect.get(name, [] if name in ("steps", "repairs") else got)
        if as_json(got) == as_json(wanted):
            continue
        if name == "steps":
            steps = [step for each in played.runs for step in each.steps]
            yield f"steps: {_calls(_as_they_came(steps, got))}, not {_calls(wanted)}"
        else:
            yield f"{name}: {as_json(got)}, not {as_json(wanted)}"
    if not scenario.raw:
        yield from _out_of_order(messages)
    yield from _parts(scenario.expect, run, is_equal["told"])


def _parts(expect: dict[str, Any], run: Run, told: Sequence[str]) -> Iterator[str]:
    """What must be a part of what they give."""
    if "results" in expect:
        if len(expect["results"]) != len(told):
            yield f"results: {len(told)} tool messages, not {len(expect['results'])}"
        for part, text in zip(expect["results"], told, strict=False):
            if part not in text:
                yield f"results: {part!r} is not in {text!r}"
    for part in expect.get("warnings", ()):
        if not any(part in warning for warning in run.warnings):
            yield f"warnings: {part!r} is not in {run.warnings}"
    if (expect.get("error") or "\0") not in (run.error or "\0"):
        yield f"error: {expect.get('error')!r} is not in {run.error!r}"
    yield from _said(expect, [*told, run.answer, run.error or ""])


def _anybodys(scenario: Scenario, played: Played) -> Iterator[str]:
    """What is right for any agent, whatever it is built on."""
    expect, run = scenario.expect, played.runs[-1]
    exchanges = [exchange for each in played.runs for exchange in each.exchanges]
    status, wanted = run.status, expect["status"]
    last = exchanges[-1]
    failed = last.status != 200 or first_choice(last.reply) is None
    if (status, wanted) == ("failed", "model_error") and failed:
        status = wanted  # it raised an exception of its own
    if status != wanted:
        because = f" ({run.error})" if run.error else ""
        yield f"status: {status}{because}, not {wanted}"
    if run.answer != expect.get("answer", run.answer):
        yield f"answer: {as_json(run.answer)}, not {as_json(expect['answer'])}"
    if len(exchanges) != expect["requests"]:
        yield f"requests: {len(exchanges)}, not {expect['requests']}"
    steps = [step for each in played.runs for step in each.steps]
    wanted_steps = expect.get("steps", [])
    if wanted == "step_limit":  # whether the tools of the last model call run is free
        spent = sum(step.turn == len(run.model_calls) for step in run.steps)
        steps = steps[: len(steps) - spent]
        wanted_steps = wanted_steps[: len(steps)]
    yield from _steps_of_anybody({**expect, "steps": wanted_steps}, steps)
    words = _words_of_the_server(expect.get("error", ""))
    if words and words not in (run.error or ""):
        yield f"error: {words!r} is not in {run.error!r}"
    if "echoed" in expect:
        echoed = _echoed(exchanges[-1].request["messages"])
        if [_parsed(text) for text in echoed] != [*map(_parsed, expect["echoed"])]:
            yield f"echoed: {as_json(echoed)}, not {as_json(expect['echoed'])}"
    told = [step.result or "" for step in steps]
    yield from _said(expect, [*told, run.answer, run.error or ""])


def _steps_of_anybody(expect: dict[str, Any], steps: Sequence[Step]) -> Iterator[str]:
    """The calls that ran, with what the model read of each; and that the others did
    not do their work."""
    got = [[step.tool, step.arguments, step.ok is True] for step in steps]
    wanted = [[*call[:2], call[2] is True] for call in expect.get("steps", ())]
    if as_json(got) != as_json(wanted):
        yield f"steps: {_calls(_as_they_came(steps, got))}, not {_calls(wanted)}"
        return
    whole, parts = expect.get("told"), expect.get("results")
    for step, text, part in zip_longest(steps, whole or (), parts or ()):
        if step is None or step.ok is not True:
            continue
        if text is not None and _parsed(step.result) != _parsed(text):
            yield f"told: the model reads {step.result!r}, not {text!r}"
        if part is not None and part not in (step.result or ""):
            yield f"results: {part!r} is not in {step.result!r}"


def _said(expect: dict[str, Any], said: Sequence[str]) -> Iterator[str]:
    for part in expect.get("not_said", ()):
        if any(part in text for text in said):
            yield f"not_said: {part!r} is in {said}"


def _words_of_the_server(error: str) -> str:
    """The error less the words that the observer and the client put around it."""
    if error.startswith("the endpoint answered "):
        return error.partition(": ")[2]
    return "" if error in ("the endpoint failed", "timed out") else error


def _as_expected(step: Step) -> list[Any]:
    """The step as a scenario writes it."""
    not_run = step.order is None and step.ok is False
    return [step.tool, step.arguments, "not run" if not_run else step.ok]


def _as_they_came(steps: Sequence[Step], read: Sequence[Any]) -> Iterator[list[Any]]:
    """What was read of the steps, with the arguments as the model wrote them: what is
    read of those may look like what is wanted."""
    for step, (tool, _, ended) in zip(steps, read, strict=True):
        yield [tool, step.arguments_text, ended]


def _calls(calls: Iterable[Any]) -> str:
    """Calls and how they ended, in one line. Arguments that are text stay as it is."""
    words = {True: "done", False: "failed"}
    told = [
        f"{tool}({a if isinstance(a, str) else as_json(a)}) {words.get(end, end)}"
        for tool, a, end in calls
    ]
    return ", ".join(told) or "none"


def _tool_messages(played: Played, sent: list[dict[str, Any]]) -> list[str]:
    """From the conversation; from the wire where none was returned."""
    last = played.turns[-1]
    messages = sent if last.run.error else as_messages(last.conversation)
    return [text_of(m["content"]) for m in messages if m["role"] == "tool"]


def _echoed(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The arguments of the calls in the history."""
    return [
        call["function"]["arguments"]
        for message in messages
        for call in message.get("tool_calls") or ()
    ]


def _out_of_order(messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each place where results do not stand in the order of their calls."""
    asked: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not asked or message["tool_call_id"] != asked.pop(0):
                yield f"out of order: the result of {message['tool_call_id']}"
        else:
            asked = [call["id"] for call in message.get("tool_calls") or ()]


def _parsed(text: Any) -> Any:
    """The JSON of a text, the text itself where it is none."""
    try:
        return json.dumps(json.loads(text))
    except (TypeError, ValueError):
        return text


def as_json(value: Any) -> str:
    """Return the value as readable JSON."""
    return json.dumps(value, ensure_ascii=False)
