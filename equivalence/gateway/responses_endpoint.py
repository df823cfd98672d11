"""An endpoint that is asked over /v1/responses: the other direction of the translation.

Its requests come as chat completions, and its replies go back as such, so nothing else
knows of it. The server keeps nothing: each request has the whole conversation, with the
reasoning items that came before a call, which models of OpenAI want back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import aiohttp

from equivalence.gateway.endpoint import HttpUpstream
from equivalence.gateway.limits import parse
from equivalence.gateway.shapes import REASONING
from equivalence.gateway.streaming import Events, delta_event, event, to_stream
from equivalence.gateway.upstreams import Reply, Streamed, dump

ITEMS = "response_items"
"""The field of a message in which its reasoning items stand. The gateway keeps it and
puts it back, as all that a server attaches."""


class ResponsesEndpoint(HttpUpstream):
    """A real endpoint that is asked over /v1/responses."""

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        asked = to_responses(request)
        came = await self._whole("POST", "/responses", asked, authorization)
        return _as_completion(came)

    async def stream(
        self, request: dict[str, Any], authorization: str | None
    ) -> Reply | Streamed:
        asked = to_responses(request)
        response = await self._send("POST", "/responses", asked, authorization)
        if isinstance(response, Reply):
            return response
        if response.status == 200 and response.content_type == "text/event-stream":
            return Streamed(self._chunks(response, request), response.close)
        return _as_completion(await self._read(response))

    async def _chunks(
        self, response: aiohttp.ClientResponse, request: Mapping[str, Any]
    ) -> AsyncIterator[bytes]:
        events, reading = Events(), _Reading(request)
        async for data in self._pieces(response):
            for one in events.feed(data):
                if chunk := reading.add(one):
                    yield chunk


def _as_completion(came: Reply) -> Reply:
    """The completion that a Response means; what is none stays as it came."""
    if came.status != 200 or came.cut:
        return came
    try:
        response = parse(came.body)
    except ValueError:
        return came
    if not isinstance(response, dict) or not isinstance(response.get("output"), list):
        return came
    return replace(came, body=dump(to_completion(response)))


class _Reading:
    """Takes the events of a Response and gives back the chunks of a completion."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self._head: dict[str, Any] = {}
        self._text = self._thoughts = 0

    def add(self, data: str) -> bytes:
        try:
            came = parse(data)
        except ValueError:
            return f"data: {data}\n\n".encode()  # the gateway says what is wrong
        if not isinstance(came, dict):
            return b""
        kind, delta = came.get("type"), came.get("delta")
        response = came.get("response")
        if kind == "error" or "error" in came:
            return event({"error": came.get("error") or came})
        if isinstance(response, dict):
            self._head = _head(response)
            if kind in _ENDS:
                whole = to_completion(response)
                return event(whole) if "error" in whole else b"".join(self._rest(whole))
        elif kind == "response.output_text.delta" and isinstance(delta, str):
            self._text += len(delta)
            return delta_event(self._head, {"content": delta})
        elif kind == "response.reasoning_text.delta" and isinstance(delta, str):
            self._thoughts += len(delta)
            return delta_event(self._head, {REASONING[0]: delta})
        return b""

    def _rest(self, whole: Mapping[str, Any]) -> Iterator[bytes]:
        yield to_stream(
            whole, self._request, text_sent=self._text, thoughts_sent=self._thoughts
        )


_ENDS = ("response.completed", "response.incomplete", "response.failed")


# --------------------------------------------------------------- request to request

_RENAMED = {"max_tokens": "max_output_tokens"}
_RENAMED["max_completion_tokens"] = _RENAMED["max_tokens"]
_READ = frozenset(
    (
        *("messages", "tools", "tool_choice", "stream_options", "response_format"),
        *("verbosity", "reasoning_effort", *_RENAMED),
    )
)


def to_responses(chat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request for a response that means the same as a chat completions
    request. A field that /v1/responses does not know stays: the server refuses it in
    its own words, or takes it."""
    asked = {name: value for name, value in chat.items() if name not in _READ}
    asked |= {"store": False, "include": ["reasoning.encrypted_content"]}
    messages = chat.get("messages")
    asked["input"] = [
        item
        for message in (messages if isinstance(messages, list) else ())
        for item in _items(message)
    ]
    for name, new in _RENAMED.items():
        if name in chat:
            asked[new] = chat[name]
    if "reasoning_effort" in chat:
        asked["reasoning"] = {"effort": chat["reasoning_effort"]}
    text: dict[str, Any] = {}
    if isinstance(wanted := chat.get("response_format"), dict):
        schema = wanted.get("json_schema")
        schema = schema if isinstance(schema, dict) else {}
        text["format"] = {"type": wanted.get("type"), **schema}
    if "verbosity" in chat:
        text["verbosity"] = chat["verbosity"]
    if text:
        asked["text"] = text
    if isinstance(tools := chat.get("tools"), list):
        # what is not said is false there and true here
        asked["tools"] = [{"strict": False, **_flat(tool)} for tool in tools]
    if "tool_choice" in chat:
        asked["tool_choice"] = _flat(chat["tool_choice"])
    return asked


def _flat(nested: Any) -> Any:
    """A tool, or a choice of one, with the fields of its function beside its type."""
    function = nested.get("function") if isinstance(nested, dict) else None
    return {"type": "function", **function} if isinstance(function, dict) else nested


def _items(message: Any) -> Iterator[Any]:
    if not isinstance(message, dict):
        yield message
        return
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        yield {
            "type": "function_call_output",
            "call_id": message.get("tool_call_id"),
            "output": _parts(content, "input_text"),
        }
        return
    if role != "assistant":
        yield {"role": role, "content": _parts(content, "input_text")}
        return
    yield from message.get(ITEMS) or ()
    if content:
        yield {"role": role, "content": _parts(content, "output_text")}
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        yield {
            "type": "function_call",
            "call_id": call.get("id"),
            "name": function.get("name"),
            "arguments": function.get("arguments"),
        }


def _parts(content: Any, kind: str) -> Any:
    if not isinstance(content, list):
        return content
    return [
        {**part, "type": kind}
        if isinstance(part, dict) and part.get("type") == "text"
        else part
        for part in content
    ]


# -------------------------------------------------------------- response to completion


def to_completion(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chat completion that a Response means; its error, if it failed."""
    if response.get("status") == "failed":
        return {"error": response.get("error") or {"message": "the response failed"}}
    output = response.get("output")
    output = output if isinstance(output, list) else []
    items = [item for item in output if isinstance(item, dict)]
    parts = [part for item in _of(items, "message") for part in _inner(item, "content")]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": _joined(_of(parts, "output_text"), "text") or None,
    }
    if refusal := _joined(_of(parts, "refusal"), "refusal"):
        message["refusal"] = refusal
    if reasoning := _of(items, "reasoning"):
        thoughts = [
            _inner(item, "content") or _inner(item, "summary") for item in reasoning
        ]
        message[ITEMS] = reasoning
        if text := "".join(_joined(each, "text") for each in thoughts):
            message[REASONING[0]] = text
    if calls := _of(items, "function_call"):
        message["tool_calls"] = [
            {
                "id": call.get("call_id"),
                "type": "function",
                "function": {
                    "name": call.get("name"),
                    "arguments": call.get("arguments"),
                },
            }
            for call in calls
        ]
    finish = "tool_calls" if calls else "stop"
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        finish = "content_filter" if reason == "content_filter" else "length"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {"object": "chat.completion", **_head(response), "choices": [choice]}
    if isinstance(usage := response.get("usage"), dict):
        whole["usage"] = {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
            "total_tokens": usage.get("total_tokens"),
        }
    return whole


def _head(response: Mapping[str, Any]) -> dict[str, Any]:
    created = response.get("created_at")
    created = int(created) if isinstance(created, (int, float)) else None
    return {
        "id": response.get("id"),
        "created": created,
        "model": response.get("model"),
    }


def _of(items: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [item for item in items if item.get("type") == kind]


def _inner(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    inner = item.get(name)
    inner = inner if isinstance(inner, list) else []
    return [part for part in inner if isinstance(part, dict)]


def _joined(parts: list[dict[str, Any]], name: str) -> str:
    return "".join(str(part.get(name) or "") for part in parts)
