"""Run records written as OTLP GenAI spans, or as chat messages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from equivalence.gateway.exchange import Exchange
from equivalence.gateway.shapes import first_choice
from equivalence.runs.record import STATUSES, Run, Step
from equivalence.traces.calls import said
from equivalence.traces.messages import to_parts

Attributes = dict[str, Any]
ERROR = 2
APART = 0.001
"""Milliseconds between the spans of tools that ran one after another: the record knows
their order, not their times."""


def messages(run: Run) -> dict[str, Any]:
    """Return the run as an object with its messages, as the last request and its reply
    have them; none where no model was called. Where calls stand in text, they are
    written as tool calls."""
    found: list[Any] = []
    if run.protocol == "text":
        found = list(_from_steps(run))
    elif run.model_calls:
        last = run.model_calls[-1]
        found = said(last)
        if choice := first_choice(last.reply):
            found.append(choice["message"])
        for step in run.steps:
            if step.turn == len(run.model_calls) and step.result is not None:
                found.append(_tool_message(step, last, run))
    return {"implementation": run.implementation, "messages": found}


def _from_steps(run: Run) -> Iterator[Any]:
    """The conversation that the steps tell, a reply for each model call with steps."""
    for question in [*run.history, run.question]:
        yield {"role": "user", "content": question}
    number = 0
    for turn in sorted({step.turn for step in run.steps}):
        calls, results = [], []
        for step in run.steps:
            if step.turn == turn:
                number += 1
                identifier = f"call_{number}"
                function = {"name": step.tool, "arguments": step.arguments_text}
                calls.append(
                    {"id": identifier, "type": "function", "function": function}
                )
                if step.result is not None:
                    result = {"role": "tool", "tool_call_id": identifier}
                    results.append({**result, "content": step.result})
        yield {"role": "assistant", "content": None, "tool_calls": calls}
        yield from results
    if run.answer:
        yield {"role": "assistant", "content": run.answer}


def _tool_message(step: Step, last: Exchange, run: Run) -> dict[str, Any]:
    """The result of a call of the last reply, which no request carried any more."""
    identifier = _call_id(step, run)
    return {"role": "tool", "tool_call_id": identifier, "content": step.result}


def _call_id(step: Step, run: Run) -> Any:
    """The id of the step's call in its reply."""
    choice = first_choice(run.model_calls[step.turn - 1].reply) or {"message": {}}
    same_turn = [each for each in run.steps if each.turn == step.turn]
    place = next(at for at, each in enumerate(same_turn) if each is step)
    calls = choice["message"].get("tool_calls") or []
    return calls[place].get("id") if place < len(calls) else None


def otlp(run: Run) -> dict[str, Any]:
    """Return the run as one OTLP export of spans: the agent, its model calls, and those
    of its tools that were seen at work."""
    identity = json.dumps(
        [run.implementation, run.question, run.history, run.repeat, run.recorded]
    )
    trace = hashlib.sha256(identity.encode()).hexdigest()[:32]
    zero = datetime.fromisoformat(run.recorded).timestamp() if run.recorded else 0.0
    writer = _Writer(trace, int(zero * 1_000_000_000))
    calls, tools = list(_calls(run)), list(_tools(run))
    end = max((ended for *_, ended, _ in [*calls, *tools]), default=0.0)
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run.implementation,
    }
    asked = [*run.history, run.question]
    users = [to_parts({"role": "user", "content": each}) for each in asked]
    agent["gen_ai.input.messages"] = _text(users)
    if run.answer:
        reply = to_parts({"role": "assistant", "content": run.answer})
        agent["gen_ai.output.messages"] = _text([reply])
    error = None
    if run.status != "completed":
        agent["error.type"] = run.status
        error = run.error or STATUSES[run.status]
    writer.add(f"invoke_agent {run.implementation}", agent, 0.0, end, error)
    for name, attributes, began, ended, failure in [*calls, *tools]:
        writer.add(name, attributes, began, ended, failure)
    resource = {"service.name": run.implementation}
    scope = {"scope": {"name": "equivalence"}, "spans": writer.spans}
    spans = {"resource": {"attributes": _pairs(resource)}, "scopeSpans": [scope]}
    return {"resourceSpans": [spans]}


_Span = tuple[str, Attributes, float, float, str | None]
"""Its name, its attributes, when it began and ended, what failed."""


def _calls(run: Run) -> Iterator[_Span]:
    for exchange in run.exchanges:
        request = exchange.request
        model = request.get("model", "")
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
        }
        for key in ("temperature", "top_p", "max_tokens", "seed"):
            if request.get(key) is not None:
                attributes[f"gen_ai.request.{key}"] = request[key]
        attributes["gen_ai.input.messages"] = _text(
            [to_parts(message) for message in said(exchange)]
        )
        if tools := request.get("tools"):
            attributes["gen_ai.tool.definitions"] = _text(tools)
        choice = first_choice(exchange.reply)
        failure = None
        if choice and exchange.status == 200:
            finish = choice.get("finish_reason")
            reply = {**to_parts(choice["message"]), "finish_reason": finish}
            attributes["gen_ai.output.messages"] = _text([reply])
            attributes["gen_ai.response.finish_reasons"] = [finish or ""]
            if isinstance(answered := exchange.reply.get("model"), str):
                attributes["gen_ai.response.model"] = answered
        else:
            attributes["error.type"] = str(exchange.status or "no reply")
            failure = _told(exchange.reply)
        ended = exchange.began + (exchange.ms or 0.0)
        yield f"chat {model}", attributes, exchange.began, ended, failure


def _tools(run: Run) -> Iterator[_Span]:
    executed = [step for step in run.steps if step.order is not None]
    clock = 0.0
    for step in sorted(executed, key=lambda step: step.order or 0):
        exchange = run.model_calls[min(step.turn, len(run.model_calls)) - 1]
        after = exchange.began + (exchange.ms or 0.0) + APART
        began = after if step.concurrent else max(clock + APART, after)
        ended = began + APART * (len(executed) + 1 if step.concurrent else 1)
        clock = max(clock, ended)
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step.tool,
            "gen_ai.tool.call.arguments": _text(step.arguments),
        }
        identifier = _call_id(step, run)
        if isinstance(identifier, str):
            attributes["gen_ai.tool.call.id"] = identifier
        given = step.result if step.returned is None else step.returned
        if given is not None:
            attributes["gen_ai.tool.call.result"] = given
        failure = (given or "it failed") if step.ok is False else None
        yield f"execute_tool {step.tool}", attributes, began, ended, failure


class _Writer:
    """The spans of one trace; the first is the parent of the others."""

    def __init__(self, trace: str, zero: int) -> None:
        self.trace = trace
        self.zero = zero
        self.spans: list[dict[str, Any]] = []

    def add(
        self,
        name: str,
        attributes: Attributes,
        began: float,
        ended: float,
        failure: str | None,
    ) -> None:
        span: dict[str, Any] = {
            "traceId": self.trace,
            "spanId": f"{int(self.trace[:8], 16) + len(self.spans) + 1:016x}",
            "name": name,
            "kind": 3 if attributes["gen_ai.operation.name"] == "chat" else 1,
            "startTimeUnixNano": str(self.zero + round(began * 1_000_000)),
            "endTimeUnixNano": str(self.zero + round(ended * 1_000_000)),
            "attributes": _pairs(attributes),
            "status": {},
        }
        if self.spans:
            span["parentSpanId"] = self.spans[0]["spanId"]
        if failure is not None:
            span["status"] = {"code": ERROR, "message": failure}
        self.spans.append(span)


def _pairs(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any(value)} for key, value in attributes.items()]


def _any(value: Any) -> dict[str, Any]:
    """The value as an AnyValue of OTLP."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(each) for each in value]}}
    return {"stringValue": value if isinstance(value, str) else _text(value)}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _told(reply: Any) -> str:
    error = reply.get("error") if isinstance(reply, dict) else reply
    told = error.get("message") if isinstance(error, dict) else error
    return told if isinstance(told, str) and told else "no reply"
