"""Repairs: from whatever a server sent to a reply that every client can read.

The reply is rebuilt from the fields that matter, so nothing odd passes through
unnoticed; each repair that was needed is recorded by its name in REPAIRS.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from equivalence.gateway.limits import TooDeep, parse
from equivalence.gateway.shapes import (
    REASONING,
    first_candidate,
    read_calls,
    read_content,
    read_reasoning,
    split_thinking,
    whole_characters,
)
from equivalence.gateway.streaming import INCOMPLETE
from equivalence.gateway.text_calls import calls_in_text

REPAIRS = {
    "text_tool_call": "a tool call written as text became a structured call",
    "legacy_function_call": "function_call, the old field, became a tool call",
    "tool_call_shape": "tool_calls was not a list of calls with a name",
    "unoffered_tool_call": "a tool call was dropped: the request offered no tools",
    "object_arguments": "arguments came as an object and became JSON text",
    "empty_arguments": "arguments were null, empty or missing and became {}",
    "double_encoded_arguments": "arguments were JSON text inside JSON text",
    "control_characters": "arguments held raw control characters",
    "invalid_arguments": "arguments that are not a JSON object are passed on as an"
    " error for the model, never executed",
    "cut_off_call": "the reply broke off inside the call: it is passed on as an error"
    " for the model, never executed",
    "finish_reason": "a vendor's own word for why the reply ended became the usual one",
    "tool_call_id": "a tool call id was missing, empty or used before",
    "think_block": "a think block was moved out of the text",
    "late_think_block": "a stream turned out to have begun inside a think block after"
    " its text had been passed on, so it stays there",
    "content_blocks": "content came as typed blocks, or as something else than text",
    "lone_surrogates": "half characters, which no request can carry, were replaced",
    "error_shape": "an error in a form of the server's own was put into OpenAI's",
}

INVALID_ARGUMENTS = "invalid_arguments"
"""Key of arguments that must not be executed; the tool policy answers them."""

LONGEST_WORDS = 300

FINISH_REASONS = {
    **dict.fromkeys(("max_tokens", "model_length", INCOMPLETE), "length"),
    **dict.fromkeys(
        ("safety", "recitation", "sensitive", "refusal", "blocked"), "content_filter"
    ),
    **dict.fromkeys(
        ("abort", "cancelled", "insufficient_system_resource", "network_error"), "error"
    ),
}
"""Vendors' own words, in small letters, for the ends that matter here."""

BROKEN_OFF = {
    "length": "the length limit cut the call off before its end",
    "content_filter": "a filter cut the call off before its end",
    "error": "the server broke the call off before its end",
}
"""The ends that leave half a reply, in words for the model."""


class Unusable(ValueError):
    """The server answered 200 but there is no reply in it; the message says why."""


def repair(
    raw: Any, request: Mapping[str, Any], *, passed_on: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """Return the well-formed completion and the names of the repairs it took; its text
    begins with what of it was `passed_on` while it was still being written. Raises
    Unusable if there is no message to repair, with the server's own words."""
    repairs: list[str] = []
    raw = _without_lone_surrogates(raw, repairs)
    choice = _first_choice(raw)
    finish = _finish_reason(choice.get("finish_reason"), repairs)
    source = choice["message"]
    content = read_content(source.get("content"))
    if content.odd:
        repairs.append("content_blocks")
    text, thinking = split_thinking(content.text)
    if not text.startswith(passed_on):  # only the end of a block without a beginning
        text, thinking = split_thinking(content.text, begun=False)
        repairs.append("late_think_block")
    if text != content.text:
        repairs.append("think_block")
    calls = _structured_calls(source, repairs)
    offered = offered_names(request)
    if not calls and (found := calls_in_text(text, offered)):
        text, calls = found
        repairs.append("text_tool_call")
    if calls and not offered:
        calls = []
        repairs.append("unoffered_tool_call")
        if finish in ("tool_calls", "function_call"):
            finish = "stop"  # it announces what has been dropped
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["content"] = text or None
        message["tool_calls"] = _well_formed(calls, finish, request, repairs)
    refusal = source.get("refusal")
    if isinstance(refusal, str) or content.refusal:
        message["refusal"] = refusal or content.refusal
    beside = read_reasoning(source) or content.thoughts
    if thoughts := [thought for thought in (beside, *thinking) if thought]:
        message[REASONING[0]] = "\n".join(thoughts)
    reply = {
        "id": _or(raw.get("id"), str, "chatcmpl-0"),
        "object": "chat.completion",
        "created": _or(raw.get("created"), int, 0),
        "model": _or(raw.get("model"), str, ""),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if usage := _usage(raw.get("usage")):
        reply["usage"] = usage
    return reply, list(dict.fromkeys(repairs))


def error_words(body: Any) -> tuple[str, bool]:
    """Return the server's own words in the body of an error, and whether they stand
    where OpenAI has them; Ollama, FastAPI and proxies put them elsewhere."""
    error = body.get("error") if isinstance(body, dict) else None
    for where in (error, body):
        words = where.get("message") if isinstance(where, dict) else None
        if isinstance(words, str) and words:
            return words, True
    for words in (error, body.get("detail") if isinstance(body, dict) else None, body):
        if words:
            text = (
                words
                if isinstance(words, str)
                else json.dumps(words, ensure_ascii=False)
            )
            return " ".join(text.split())[:LONGEST_WORDS], False
    return "", False


def _first_choice(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise Unusable("the reply is not a JSON object")
    if error := raw.get("error"):
        words = error.get("message") if isinstance(error, dict) else error
        raise Unusable(f"the server reported an error: {words}")
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Unusable("the reply has no choices")
    choice = first_candidate(choices)
    if not choice or not isinstance(choice.get("message"), dict):
        raise Unusable("the reply's first choice has no message")
    return choice


def _finish_reason(reason: Any, repairs: list[str]) -> str | None:
    if not isinstance(reason, str):
        return None
    usual = FINISH_REASONS.get(reason.lower(), reason)
    if usual != reason:
        repairs.append("finish_reason")
    return usual


def odd_history(request: Mapping[str, Any]) -> str | None:
    """Return in one line what is odd about the tool calls in a client's own history,
    None if nothing is: a server would answer with less than that."""
    messages = request.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        where = f"messages[{index}].tool_calls"
        if calls is None:
            continue
        if not isinstance(calls, list):
            return f"{where} is {_excerpt(calls)}, not a list of tool calls"
        for number, call in enumerate(calls):
            function = call.get("function", {}) if isinstance(call, dict) else None
            if not isinstance(function, dict):
                return f"{where}[{number}] is {_excerpt(call)}, which is no tool call"
    return None


def _excerpt(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:100]


def _structured_calls(
    source: Mapping[str, Any], repairs: list[str]
) -> list[dict[str, Any]]:
    """The calls as {"id", "function": {"name", "arguments"}}, both of any type yet."""
    calls = list(read_calls(source))
    repairs += [repaired for _, repaired in calls if repaired]
    return [call for call, _ in calls if call]


def offered_names(request: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that the model may call."""
    tools = request.get("tools")
    if request.get("tool_choice") == "none" or not isinstance(tools, list):
        return []
    functions = [t.get("function") for t in tools if isinstance(t, dict)]
    return [str(f.get("name")) for f in functions if isinstance(f, dict)]


def _well_formed(
    calls: list[dict[str, Any]],
    finish: str | None,
    request: Mapping[str, Any],
    repairs: list[str],
) -> list[dict[str, Any]]:
    used = _used_ids(request)
    result = []
    for position, call in enumerate(calls, 1):
        name = call["function"].get("name")
        if not isinstance(name, str) or not name:
            repairs.append("tool_call_shape")
            name = "unnamed"
        written = call["function"].get("arguments")
        if finish in BROKEN_OFF and position == len(calls):
            repairs.append("cut_off_call")
            arguments = _not_to_be_executed(written, BROKEN_OFF[finish])
        else:
            arguments = _arguments(written, repairs)
        result.append(
            {
                "id": _identifier(call.get("id"), used, repairs),
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
        )
    return result


def _arguments(written: Any, repairs: list[str]) -> str:
    """The arguments as the text of a JSON object; as it came, where it is one."""
    if written is None or (
        isinstance(written, str) and written.strip() in ("", "null")
    ):
        repairs.append("empty_arguments")
        return "{}"
    if isinstance(written, dict):
        repairs.append("object_arguments")
        written = json.dumps(written, ensure_ascii=False)
    if not isinstance(written, str):
        repairs.append("invalid_arguments")
        return _not_to_be_executed(written, "its arguments are not a JSON object")
    try:
        value, text = _parse(written, repairs)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value, text = _parse(value, repairs)
            repairs.append("double_encoded_arguments")
    except TooDeep:
        reason = "its arguments are nested too deeply"
    except ValueError:
        reason = "its arguments are not valid JSON"
    else:
        if isinstance(value, dict):
            return text
        reason = "its arguments are not a JSON object"
    repairs.append("invalid_arguments")
    return _not_to_be_executed(written, reason)


def _parse(text: str, repairs: list[str]) -> tuple[Any, str]:
    """The value, and text for it that a strict parser takes. Raises TooDeep, or
    ValueError if it is not JSON."""
    try:
        value = parse(text, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError:
        value = parse(text, parse_constant=_refuse, parse_float=_finite, strict=False)
        repairs.append("control_characters")
        text = json.dumps(value, ensure_ascii=False)
    clean = _without_lone_surrogates(value, repairs)
    return value, text if clean == value else json.dumps(clean, ensure_ascii=False)


def _not_to_be_executed(written: Any, reason: str) -> str:
    text = written if isinstance(written, str) else json.dumps(written)
    return json.dumps({INVALID_ARGUMENTS: text, "reason": reason}, ensure_ascii=False)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is too large")
    return number


def _used_ids(request: Mapping[str, Any]) -> set[str]:
    messages = [m for m in request.get("messages") or () if isinstance(m, dict)]
    calls = [call for m in messages for call in m.get("tool_calls") or ()]
    return {str(call.get("id")) for call in calls if isinstance(call, dict)}


def _identifier(identifier: Any, used: set[str], repairs: list[str]) -> str:
    """An id not used before; an invented one has nine letters and digits, the form on
    which Mistral insists and which every server takes."""
    if isinstance(identifier, str) and identifier and identifier not in used:
        fresh = identifier
    else:
        repairs.append("tool_call_id")
        number = len(used) + 1
        while (fresh := f"call{number:05}") in used:
            number += 1
    used.add(fresh)
    return fresh


def _without_lone_surrogates(value: Any, repairs: list[str]) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    clean = whole_characters(text)
    if clean == text:
        return value
    if clean.count("?") > text.count("?"):  # else halves were joined, and nothing lost
        repairs.append("lone_surrogates")
    return json.loads(clean)


def _or(value: Any, kind: type, default: Any) -> Any:
    fits = isinstance(value, kind) and not isinstance(value, bool)
    return value if fits and value != "" else default


def _usage(usage: Any) -> dict[str, int] | None:
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    counts = [usage.get(name) if isinstance(usage, dict) else None for name in names]
    known = [count for count in counts if type(count) is int and count >= 0]
    return dict(zip(names, known, strict=True)) if len(known) == len(names) else None
