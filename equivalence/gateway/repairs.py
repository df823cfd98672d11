"""Repairs: from whatever a server sent to a reply that every client can read.

The reply is rebuilt from the fields that matter, so nothing odd passes through
unnoticed; each repair that was needed is recorded by its name in REPAIRS.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

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
    "content_blocks": "content came as typed blocks, or as something else than text",
    "lone_surrogates": "half characters, which no request can carry, were replaced",
    "error_shape": "an error in a form of the server's own was put into OpenAI's",
}

INVALID_ARGUMENTS = "invalid_arguments"
"""Key of arguments that must not be executed; the tool policy answers them."""

DEEPEST_ARGUMENTS = 50
LONGEST_WORDS = 300

FINISH_REASONS = {
    **dict.fromkeys(("max_tokens", "model_length"), "length"),
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


def repair(raw: Any, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the well-formed completion and the names of the repairs it took.
    Unusable when there is no message to repair, with the server's own words."""
    repairs: list[str] = []
    raw = _without_lone_surrogates(raw, repairs)
    choice = _first_choice(raw)
    finish = _finish_reason(choice.get("finish_reason"), repairs)
    source = choice["message"]
    text, thinking = _split_thinking(_text(source.get("content"), repairs), repairs)
    calls = list(_structured_calls(source, repairs))
    offered = _offered_names(request)
    if not calls and (found := calls_in_text(text, offered)):
        text, calls = found
        repairs.append("text_tool_call")
    if calls and not offered:
        calls = []
        repairs.append("unoffered_tool_call")
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["content"] = text or None
        message["tool_calls"] = _well_formed(calls, finish, request, repairs)
    if isinstance(refusal := source.get("refusal"), str):
        message["refusal"] = refusal
    reasoning = source.get("reasoning_content") or source.get("reasoning")
    thoughts = [t for t in (reasoning, thinking) if isinstance(t, str) and t]
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
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
    choice = choices[0]
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise Unusable("the reply's first choice has no message")
    return choice


def _finish_reason(reason: Any, repairs: list[str]) -> str | None:
    if not isinstance(reason, str):
        return None
    usual = FINISH_REASONS.get(reason.lower(), reason)
    if usual != reason:
        repairs.append("finish_reason")
    return usual


def _text(content: Any, repairs: list[str]) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    repairs.append("content_blocks")
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    parts = (
        block.get("text") if isinstance(block, dict) else block for block in content
    )
    return "".join(part for part in parts if isinstance(part, str))


def _split_thinking(text: str, repairs: list[str]) -> tuple[str, str]:
    """Part the text from its think blocks. A block that never ends hides all that
    follows; one that never began (the template began it) hides all before its end."""
    thoughts: list[str] = []

    def take(match: re.Match[str]) -> str:
        thoughts.append(match[1])
        return ""

    rest = text
    head, end, tail = rest.partition("</think>")
    if end and "<think>" not in head:
        thoughts.append(head)
        rest = tail
    rest = re.sub(r"<think>(.*?)(?:</think>|\Z)", take, rest, flags=re.DOTALL)
    if rest == text:
        return text, ""
    repairs.append("think_block")
    return rest.strip(), "\n".join(t.strip() for t in thoughts if t.strip())


def _structured_calls(
    source: Mapping[str, Any], repairs: list[str]
) -> Iterator[dict[str, Any]]:
    """The calls as {"id", "function": {"name", "arguments"}}, both of any type yet."""
    calls = source.get("tool_calls")
    legacy = source.get("function_call")
    if not calls and isinstance(legacy, dict):
        repairs.append("legacy_function_call")
        calls = [{"function": legacy}]
    if calls is not None and not isinstance(calls, list):
        repairs.append("tool_call_shape")
        calls = [calls]
    for call in calls or ():
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            repairs.append("tool_call_shape")
            continue
        yield {"id": call.get("id"), "function": function}


def _offered_names(request: Mapping[str, Any]) -> list[str]:
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
    except RecursionError:
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
    """The value, and text for it that a strict parser takes; ValueError where it is not
    JSON, RecursionError where it is too deep for the parsers to come."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError:
        value = json.loads(
            text, parse_constant=_refuse, parse_float=_finite, strict=False
        )
        repairs.append("control_characters")
        text = json.dumps(value, ensure_ascii=False)
    if _depth(value) > DEEPEST_ARGUMENTS:
        raise RecursionError
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


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max((_depth(item) for item in inner), default=0)


def _used_ids(request: Mapping[str, Any]) -> set[str]:
    messages = [m for m in request.get("messages") or () if isinstance(m, dict)]
    calls = [call for m in messages for call in m.get("tool_calls") or ()]
    return {str(call.get("id")) for call in calls if isinstance(call, dict)}


def _identifier(identifier: Any, used: set[str], repairs: list[str]) -> str:
    if isinstance(identifier, str) and identifier and identifier not in used:
        fresh = identifier
    else:
        repairs.append("tool_call_id")
        number = len(used) + 1
        while (fresh := f"call_{number}") in used:
            number += 1
    used.add(fresh)
    return fresh


def _without_lone_surrogates(value: Any, repairs: list[str]) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    clean = text.encode("utf-8", "replace").decode("utf-8")
    if clean == text:
        return value
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
