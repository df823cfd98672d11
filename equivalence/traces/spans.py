"""OTLP JSON: spans by OpenTelemetry's GenAI conventions, or by OpenInference.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
https://arize-ai.github.io/openinference/spec/semantic_conventions.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway.exchange import Exchange
from equivalence.language import _
from equivalence.runs.record import STATUSES, Run
from equivalence.runs.steps import Execution
from equivalence.traces.calls import Seen, runs, together
from equivalence.traces.messages import (
    Message,
    as_openai,
    completion,
    from_parts,
    without_nulls,
)

GENAI, OPENINFERENCE = "OTLP with GenAI spans", "OTLP with OpenInference spans"
FAILED = (2, "STATUS_CODE_ERROR")


@dataclass
class Span:
    """One span, its attributes as plain values, its times in ms since 1970."""

    trace: str
    identifier: str
    parent: str
    name: str
    service: str
    began: float
    ended: float
    attributes: dict[str, Any]
    error: str | None
    """What its status says, where that is an error."""
    place: int
    """In the file, from 0."""

    @property
    def kind(self) -> str:
        """What it stands for: model, tool, agent, or "" for anything else."""
        inference = self.attributes.get("openinference.span.kind")
        operation = self.attributes.get("gen_ai.operation.name")
        operation = operation or self.attributes.get("llm.request.type")
        kinds = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
        kinds |= {"chat": "model", "execute_tool": "tool", "invoke_agent": "agent"}
        return kinds.get(inference or operation or "", "")


@dataclass
class _Trace:
    """The spans of a trace, or of one agent in it, that tell of a run."""

    agent: Span | None
    calls: list[Span] = field(default_factory=list)
    tools: list[Span] = field(default_factory=list)


def read(documents: Sequence[dict[str, Any]], path: Path) -> list[Run]:
    """Return the runs, one for each agent's span, else one for each question. Raises
    UsageError if no span is of a model call, or their messages were not recorded."""
    whole = (_span(*each, place) for place, each in enumerate(_spans(documents)))
    spans = sorted(whole, key=lambda span: (span.began, span.ended))
    calls = [span for span in spans if span.kind == "model"]
    if not calls:
        raise UsageError(
            _(
                "{path}: of its {count} spans none is a model call by"
                " OpenTelemetry's GenAI conventions or by OpenInference"
            ).format(path=path, count=len(spans))
        )
    found: list[Seen] = []
    for one in _traces(spans):
        found += _seen(one, path)
    if not any(seen.exchanges for seen in found):
        raise UsageError(
            _(
                "{path}: its spans hold no messages: record with"
                " OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only"
                " and"
                " OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
            ).format(path=path)
        )
    return runs(found)


def _traces(spans: Sequence[Span]) -> list[_Trace]:
    """The spans by the outermost agent above them; those without one by their trace,
    and single model calls, each a trace of its own, together."""
    by_id = {(span.trace, span.identifier): span for span in spans}
    found: dict[Any, _Trace] = {}
    for span in spans:
        if span.kind not in ("model", "tool"):
            continue
        agent, above, seen = None, span, {id(span)}
        while (parent := by_id.get((above.trace, above.parent))) is not None:
            if id(parent) in seen:
                break
            seen.add(id(parent))
            above = parent
            agent = above if above.kind == "agent" else agent
        alone = agent is None and above is span
        key = id(agent) if agent else (span.service if alone else span.trace)
        one = found.setdefault(key, _Trace(agent))
        (one.calls if span.kind == "model" else one.tools).append(span)
    with_calls = [one for one in found.values() if one.calls]
    return sorted(with_calls, key=lambda one: one.calls[0].place)


def _seen(one: _Trace, path: Path) -> list[Seen]:
    exchanges, rebuilt = [], ""
    for span in one.calls:
        exchange, by = _exchange(span)
        if exchange.request.get("messages"):
            exchanges.append(exchange)
            rebuilt = rebuilt or by
    executions = [_execution(span) for span in one.tools]
    first = one.agent or one.calls[0]
    name = first.attributes.get("gen_ai.agent.name") or first.service or path.stem
    if not one.agent:
        return together(name, exchanges, executions, rebuilt, dated=True)
    if not exchanges:
        return []
    seen = Seen(name, exchanges, executions, rebuilt, dated=True)
    seen.began = one.agent.began
    seen.opening = _agents(one.agent, "input")
    seen.conversation = _agents(one.agent, "output")
    told = one.agent.attributes.get("error.type")
    if told in STATUSES:  # written by us
        seen.status = told
    elif exchanges[-1].status == 200:
        seen.error = one.agent.error
    return [seen]


def _agents(agent: Span, side: str) -> list[Message]:
    said = _json(agent.attributes.get(f"gen_ai.{side}.messages"))
    return [message for each in said or () for message in from_parts(each)]


def _exchange(span: Span) -> tuple[Exchange, str]:
    """The model call, and the format where it does not keep the request as it was."""
    attributes = span.attributes
    rebuilt = ""
    if "openinference.span.kind" in attributes:
        request, reply = _json(attributes.get("input.value")), None
        whole = isinstance(request, dict) and isinstance(request.get("messages"), list)
        if whole and "model" in request:
            reply = without_nulls(_json(attributes.get("output.value")))
        if reply is None or not isinstance(reply, dict) or "choices" not in reply:
            if not whole or "model" not in request:
                rebuilt, request = OPENINFERENCE, _inference_request(attributes)
            answered = _inference_messages(attributes, "llm.output_messages")
            finish = attributes.get("llm.finish_reason")
            reply = completion(answered[0], finish) if answered else None
    else:
        rebuilt, request, reply = GENAI, *_genai(attributes)
    status = _status(span, reply)
    if reply is None and span.error is not None:
        reply = {"error": {"message": span.error}}
    exchange = Exchange(request, reply, status, reply, status)
    exchange.began, exchange.ms = span.began, span.ended - span.began
    return exchange, rebuilt


def _status(span: Span, reply: Any) -> int | None:
    """The HTTP status; where the span does not say, what comes nearest."""
    if span.error is None and reply is not None:
        return 200
    told = span.attributes.get("http.response.status_code")
    told = str(told or span.attributes.get("error.type"))
    return int(told) if re.fullmatch(r"[45]\d\d", told) else 502


def _genai(attributes: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    request = {
        key: attributes[f"gen_ai.request.{key}"]
        for key in ("model", "temperature", "top_p", "max_tokens", "seed")
        if f"gen_ai.request.{key}" in attributes
    }
    messages: list[Message] = []
    if system := _json(attributes.get("gen_ai.system_instructions")):
        messages += from_parts({"role": "system", "parts": system})
    for each in _json(attributes.get("gen_ai.input.messages")) or ():
        messages += from_parts(each)
    answers = _json(attributes.get("gen_ai.output.messages")) or []
    reasons = attributes.get("gen_ai.response.finish_reasons") or [None]
    if not messages:  # as Traceloop wrote them before there was a convention
        messages = [as_openai(each) for each in _flat(attributes, "gen_ai.prompt")]
        old = _flat(attributes, "gen_ai.completion")
        reply = as_openai(old[0]) if old else None
        reasons = [old[0].get("finish_reason")] if old else reasons
        if reply:
            reply.pop("finish_reason", None)
    else:
        reply = next(iter([m for a in answers[:1] for m in from_parts(a)]), None)
        reasons = (
            [answers[0].get("finish_reason") or reasons[0]] if answers else reasons
        )
    request["messages"] = messages
    if tools := _json(attributes.get("gen_ai.tool.definitions")):
        request["tools"] = [_tool(tool) for tool in tools]
    model = attributes.get("gen_ai.response.model")
    return request, completion(reply, reasons[0], model) if reply else None


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    if "function" in tool:
        return tool
    function = {key: value for key, value in tool.items() if key != "type"}
    return {"type": "function", "function": function}


def _inference_request(attributes: dict[str, Any]) -> dict[str, Any]:
    parameters = _json(attributes.get("llm.invocation_parameters"))
    request = dict(parameters) if isinstance(parameters, dict) else {}
    if "llm.model_name" in attributes:
        request.setdefault("model", attributes["llm.model_name"])
    request["messages"] = _inference_messages(attributes, "llm.input_messages")
    tools = [each.get("tool", {}) for each in _flat(attributes, "llm.tools")]
    if schemas := [_json(tool.get("json_schema")) for tool in tools]:
        request["tools"] = [_tool(schema) for schema in schemas if schema]
    return request


def _inference_messages(attributes: dict[str, Any], prefix: str) -> list[Message]:
    found = []
    for each in _flat(attributes, prefix):
        plain = dict(each.get("message", {}))
        blocks = [
            block.get("message_content", {}) for block in plain.pop("contents", ())
        ]
        if blocks:
            plain["content"] = [dict(block) for block in blocks]
        plain.setdefault("content", None)
        if calls := plain.pop("tool_calls", None):
            plain["tool_calls"] = [
                {"type": "function", **call.get("tool_call", {})} for call in calls
            ]
        found.append(as_openai(plain))
    return found


def _execution(span: Span) -> Execution:
    attributes = span.attributes
    arguments = _json(
        attributes.get("gen_ai.tool.call.arguments", attributes.get("input.value"))
    )
    result = attributes.get("gen_ai.tool.call.result", attributes.get("output.value"))
    if result is not None and not isinstance(result, str):
        result = json.dumps(result, ensure_ascii=False)
    return Execution(
        tool=str(
            attributes.get("gen_ai.tool.name")
            or attributes.get("tool.name")
            or span.name
        ),
        arguments=arguments if isinstance(arguments, dict) else {},
        turn=0,
        began=span.began,
        ended=span.ended,
        call_id=attributes.get("gen_ai.tool.call.id") or attributes.get("tool_call.id"),
        returned=result,
        raised=(span.error or "error") if result is None and span.error else None,
        ok=span.error is None,
    )


# --------------------------------------------------------------------------- OTLP JSON


def _spans(
    documents: Sequence[dict[str, Any]],
) -> Iterator[tuple[dict[str, Any], str]]:
    """The spans, each with the name of its service."""
    for document in documents:
        for resource in document.get("resourceSpans", ()):
            about = _attributes(resource.get("resource", {}))
            service = str(about.get("service.name", ""))
            for scope in resource.get("scopeSpans", ()):
                for span in scope.get("spans", ()):
                    yield span, service


def _span(span: dict[str, Any], service: str, place: int) -> Span:
    status = span.get("status") or {}
    attributes = _attributes(span)
    error = None
    if status.get("code") in FAILED:
        told = status.get("message") or attributes.get("error.type")
        error = str(told or "it says nothing more")
    return Span(
        trace=span["traceId"],
        identifier=span["spanId"],
        parent=span.get("parentSpanId", ""),
        name=span.get("name", ""),
        service="" if service.startswith("unknown_service") else service,
        began=int(span["startTimeUnixNano"]) / 1e6,
        ended=int(span["endTimeUnixNano"]) / 1e6,
        attributes=attributes,
        error=error,
        place=place,
    )


def _attributes(holder: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: _value(each["value"]) for each in holder.get("attributes", ())}


def _value(value: dict[str, Any]) -> Any:
    """An AnyValue of OTLP as a plain one; 64-bit integers are texts there."""
    for kind, inner in value.items():
        if kind == "intValue":
            return int(inner)
        if kind == "arrayValue":
            return [_value(each) for each in inner.get("values", ())]
        if kind == "kvlistValue":
            return {
                each["key"]: _value(each["value"]) for each in inner.get("values", ())
            }
        return inner
    return None


def _json(value: Any) -> Any:
    """What the text says, where it is JSON; attributes may hold structures as well."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _flat(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The list that was flattened into attributes: PREFIX.0.role, PREFIX.0.content."""
    whole: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(f"{prefix}."):
            continue
        here = whole
        *parts, last = key[len(prefix) + 1 :].split(".")
        for part in parts:
            here = here.setdefault(part, {})
        here[last] = value
    return _listed(whole) if isinstance(_listed(whole), list) else []


def _listed(value: Any) -> Any:
    """Objects whose keys are numbers as lists."""
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() for key in value):
        return [_listed(value[key]) for key in sorted(value, key=int)]
    return {key: _listed(inner) for key, inner in value.items()}
