"""LangSmith's runs as its client exports them: a list of them, or one a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway.exchange import Exchange
from equivalence.language import _
from equivalence.runs.record import Run
from equivalence.runs.steps import Execution, text_of
from equivalence.traces.calls import Seen, runs, together
from equivalence.traces.messages import (
    all_openai,
    as_openai,
    completion,
    finish_reason,
    without_nulls,
)

NAME = "LangSmith runs"
PARAMETERS = ("model", "temperature", "top_p", "max_tokens", "seed", "tools")


def spans(documents: Sequence[Any]) -> list[dict[str, Any]] | None:
    """Return LangSmith's runs, which may lie in each other; None where others are
    among them."""
    found: list[dict[str, Any]] = []
    waiting = list(reversed(documents))
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, dict) and isinstance(each.get("runs"), list):
            waiting += reversed(each["runs"])
        elif isinstance(each, dict) and {"run_type", "inputs"} <= each.keys():
            found.append(each)
            waiting += reversed(each.get("child_runs") or [])
        else:
            return None
    return found or None


def read(found: Sequence[dict[str, Any]], path: Path) -> list[Run]:
    """Return the runs, one for each trace; of traces that are a model call alone, one
    for each question. Raises UsageError if no model call is among them."""
    traces: dict[str, list[dict[str, Any]]] = {}
    for each in sorted(found, key=lambda span: _time(span["start_time"])):
        alone = each["run_type"] == "llm" and not each.get("parent_run_id")
        key = "" if alone else str(each.get("trace_id") or "?")
        traces.setdefault(key, []).append(each)
    seen: list[Seen] = []
    for key, trace in traces.items():
        calls = [each for each in trace if each["run_type"] == "llm"]
        tools = [each for each in trace if each["run_type"] == "tool"]
        pairs = [_exchange(each) for each in calls]
        exchanges = [exchange for exchange, _ in pairs]
        if not exchanges:
            continue
        rebuilt = next((by for _, by in pairs if by), "")
        executions = [_execution(each) for each in tools]
        if not key:
            seen += together(path.stem, exchanges, executions, rebuilt, dated=True)
            continue
        root = next((each for each in trace if not each.get("parent_run_id")), {})
        error = root.get("error") if exchanges[-1].status == 200 else None
        seen.append(
            Seen(
                root.get("name") or path.stem,
                exchanges,
                executions,
                rebuilt,
                error=" ".join(error.split()) if error else None,
                began=_time(root["start_time"]) if root else None,
                dated=True,
            )
        )
    if not seen:
        raise UsageError(
            _("{path}: of its {count} LangSmith runs none is an llm").format(
                path=path, count=len(found)
            )
        )
    return runs(sorted(seen, key=lambda each: each.exchanges[0].began))


def _exchange(span: dict[str, Any]) -> tuple[Exchange, str]:
    """The model call, and the format where it does not keep the request as it was."""
    inputs, outputs = span["inputs"], span.get("outputs") or {}
    rebuilt = ""
    request, reply = inputs, without_nulls(outputs)
    if "choices" not in outputs or "model" not in inputs:
        rebuilt = NAME
        given = inputs["messages"]
        nested = bool(given) and isinstance(given[0], list)
        parameters = (span.get("extra") or {}).get("invocation_params") or {}
        request = {
            name: parameters[name]
            for name in PARAMETERS
            if parameters.get(name) is not None
        }
        request["messages"] = all_openai(given[0] if nested else given)
        reply = _generated(outputs) if outputs else None
    status = 200
    if span.get("error"):
        reply, status = {"error": {"message": span["error"].splitlines()[0]}}, 502
    exchange = Exchange(request, reply, status, reply, status)
    exchange.began = _time(span["start_time"])
    end = span.get("end_time")
    exchange.ms = _time(end) - exchange.began if end else None
    return exchange, rebuilt


def _generated(outputs: dict[str, Any]) -> Any:
    generations = outputs.get("generations") or [[]]
    first = generations[0]
    generation = first[0] if isinstance(first, list) and first else first
    if not isinstance(generation, dict) or not generation:
        return outputs
    message = generation["message"]
    told = (generation.get("generation_info") or {}).get("finish_reason")
    return completion(as_openai(message), told or finish_reason(message))


def _execution(span: dict[str, Any]) -> Execution:
    output = (span.get("outputs") or {}).get("output")
    message = output if isinstance(output, dict) else {}
    message = message.get("kwargs", message)
    told = text_of(message["content"]) if "content" in message else output
    if told is not None and not isinstance(told, str):
        told = json.dumps(told, ensure_ascii=False)
    error = span.get("error")
    end = span.get("end_time")
    return Execution(
        tool=span["name"],
        arguments=_arguments(span["inputs"]),
        turn=0,
        began=_time(span["start_time"]),
        ended=_time(end) if end else float("inf"),
        call_id=(span.get("extra") or {}).get("tool_call_id")
        or message.get("tool_call_id"),
        returned=told,
        raised=error.splitlines()[0] if error else None,
        ok=not error and message.get("status") != "error",
    )


def _arguments(inputs: dict[str, Any]) -> dict[str, Any]:
    """The arguments; LangChain's older versions wrote them as one text."""
    if inputs.keys() != {"input"} or not isinstance(inputs["input"], str):
        return inputs
    try:
        found = json.loads(inputs["input"])
    except (ValueError, RecursionError):
        return inputs
    return found if isinstance(found, dict) else inputs


def _time(text: str) -> float:
    """Milliseconds since 1970; LangSmith's times are UTC where they do not say."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() * 1000
