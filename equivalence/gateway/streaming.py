"""Server-sent events of chat completions: many chunks to one reply, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def merge_stream(text: str) -> Any:
    """Return the chunks of an event stream as one chat completion.

    Pieces of a tool call belong together by index where there is one, else by id, else
    by order; a name that a server repeats in each piece counts once. An error object in
    the stream is returned as it is. ValueError where a chunk is not JSON.
    """
    whole: dict[str, Any] = {"object": "chat.completion"}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    finish: Any = None
    for line in re.split(r"\r\n|\n|\r", text):  # not splitlines: it splits at U+2028
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data in ("", "[DONE]"):
            continue
        chunk = json.loads(data)
        if not isinstance(chunk, dict) or "error" in chunk:
            return chunk
        for key in ("id", "created", "model", "usage"):
            if chunk.get(key) is not None:
                whole[key] = chunk[key]
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if isinstance(choice, dict):
            finish = choice.get("finish_reason") or finish
            if isinstance(choice.get("delta"), dict):
                _add(message, choice["delta"])
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    for call in message.get("tool_calls", ()):
        call.pop("index")
    return whole


def to_stream(whole: Mapping[str, Any], request: Mapping[str, Any]) -> bytes:
    """Return a chat completion as an event stream, each part in one chunk."""
    choice = whole["choices"][0]
    message = dict(choice["message"])
    calls = message.pop("tool_calls", None)
    deltas = [{**message, "content": message.get("content") or ""}]
    for index, call in enumerate(calls or ()):
        deltas.append({"tool_calls": [{"index": index, **call}]})
    head = {
        "id": whole.get("id"),
        "object": "chat.completion.chunk",
        "created": whole.get("created"),
        "model": whole.get("model"),
    }
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    end = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
    chunks.append({**head, "choices": [end]})
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        chunks.append({**head, "choices": [], "usage": whole.get("usage")})
    lines = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode("utf-8", "replace")


def _add(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key in ("content", "refusal", "reasoning_content", "reasoning"):
        piece = delta.get(key)
        if isinstance(piece, str):
            message[key] = (message.get(key) or "") + piece
    pieces = delta.get("tool_calls")
    for piece in pieces if isinstance(pieces, list) else ():
        if isinstance(piece, dict):
            _add_call(message.setdefault("tool_calls", []), piece)


def _add_call(calls: list[dict[str, Any]], piece: Mapping[str, Any]) -> None:
    function = piece.get("function")
    function = function if isinstance(function, dict) else {}
    call = _belongs_to(calls, piece)
    if call is None:
        call = {
            "index": piece.get("index"),
            "id": piece.get("id"),
            "type": "function",
            "function": {"name": function.get("name"), "arguments": ""},
        }
        calls.append(call)
    elif (name := function.get("name")) and name != call["function"]["name"]:
        call["function"]["name"] = (call["function"]["name"] or "") + name
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        call["function"]["arguments"] += arguments
    elif arguments is not None:  # an object in one piece
        call["function"]["arguments"] = json.dumps(arguments, ensure_ascii=False)


def _belongs_to(calls: list[dict[str, Any]], piece: Mapping[str, Any]) -> Any:
    """The call that the piece continues, or None when it begins a new one."""
    index, identifier = piece.get("index"), piece.get("id")
    function = piece.get("function")
    named = isinstance(function, dict) and function.get("name")
    for call in reversed(calls):
        if index is not None and call["index"] != index:
            continue
        if identifier and call["id"] and call["id"] != identifier:
            continue  # some servers number all parallel calls 0
        if index is None and not identifier and named and call["function"]["arguments"]:
            return None  # neither index nor id: a name after arguments begins a call
        return call
    return None
