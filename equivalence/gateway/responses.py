"""/v1/responses: each request becomes the chat completions request that means the same.

It goes through the gateway as any chat request does, so it is recorded, repaired and
compared as one; what comes back becomes a Response, or the events of one. What has no
counterpart in chat completions is refused by name.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from equivalence.gateway.limits import parse
from equivalence.gateway.remembered import Remembered
from equivalence.gateway.repairs import error_words
from equivalence.gateway.shapes import first_candidate, read_content, read_reasoning
from equivalence.gateway.streaming import Events, Merger
from equivalence.gateway.upstreams import dump


class Refused(ValueError):
    """A request cannot be translated; the message names what of it."""

    def __init__(self, message: str, param: str, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


def _untranslated(what: str, param: str) -> Refused:
    return Refused(
        f"the gateway asks for chat completions, which have no {what}", param
    )


# --------------------------------------------------------------- request to request

_AS_THEY_ARE = ("model", "temperature", "top_p", "parallel_tool_calls", "stream")
_NOT_FOR_THE_MODEL = frozenset(
    ("background", "include", "metadata", "previous_response_id", "store", "truncation")
)
_READ = frozenset(
    (
        *("input", "instructions", "max_output_tokens", "reasoning", "stream_options"),
        *("text", "tool_choice", "tools", *_AS_THEY_ARE, *_NOT_FOR_THE_MODEL),
    )
)
_REFUSED = (
    *("access_programs", "background_options", "context_management", "conversation"),
    *("image", "max_tool_calls", "moderation", "prompt", "prompt_cache_options"),
    "top_logprobs",
)


def to_chat(
    asked: Mapping[str, Any],
    before: Sequence[Any] = (),
    limit_field: str = "max_tokens",
) -> dict[str, Any]:
    """Return the chat completions request that means the same as a request for a
    response, with the messages that stand `before` its input. A field that neither API
    knows stays: it is the server's own. Raises Refused if a part has no counterpart."""
    for name in _REFUSED:
        if asked.get(name) is not None:
            raise _untranslated(f"counterpart of {name!r}", name)
    if asked.get("background"):
        raise _untranslated("responses in the background", "background")
    if asked.get("truncation") not in (None, "disabled"):
        raise _untranslated("truncation of the input", "truncation")
    include = asked.get("include")
    if isinstance(include, list) and "message.output_text.logprobs" in include:
        raise _untranslated("counterpart of message.output_text.logprobs", "include")
    chat: dict[str, Any] = {"model": asked.get("model")}
    instructions = asked.get("instructions")
    system = [{"role": "system", "content": instructions}] if instructions else []
    chat["messages"] = [*system, *before, *_messages(asked.get("input"))]
    chat |= {name: asked[name] for name in _AS_THEY_ARE if name in asked}
    if asked.get("stream") is True:  # a response says its usage, streamed too
        chat["stream_options"] = {"include_usage": True}
    if asked.get("max_output_tokens") is not None:
        chat[limit_field] = asked["max_output_tokens"]
    if effort := _part(asked, "reasoning").get("effort"):
        chat["reasoning_effort"] = effort
    text = _part(asked, "text")
    if response_format := _response_format(text.get("format")):
        chat["response_format"] = response_format
    if verbosity := text.get("verbosity"):
        chat["verbosity"] = verbosity
    if tools := asked.get("tools"):
        if not isinstance(tools, list):
            raise Refused("tools is not a list", "tools")
        chat["tools"] = [_tool(tool, f"tools[{n}]") for n, tool in enumerate(tools)]
    if (choice := asked.get("tool_choice")) is not None:
        chat["tool_choice"] = _tool_choice(choice)
    rest = {name: value for name, value in asked.items() if name not in _READ}
    return {**chat, **{k: v for k, v in rest.items() if v is not None}}


def _part(asked: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = asked.get(name)
    if value is not None and not isinstance(value, dict):
        raise Refused(f"{name} is not an object", name)
    return value or {}


def _response_format(wanted: Any) -> dict[str, Any] | None:
    kind = _kind(wanted) if wanted else "text"
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": kind}
    if kind != "json_schema":
        raise _untranslated(f"text format of type {kind!r}", "text.format")
    schema = {name: value for name, value in wanted.items() if name != "type"}
    return {
        "type": kind,
        kind: {name: value for name, value in schema.items() if value is not None},
    }


def _tool(tool: Any, where: str) -> dict[str, Any]:
    if (kind := _kind(tool)) != "function":
        raise _untranslated(f"tool of type {kind!r}", where)
    function = {
        name: tool[name]
        for name in ("name", "description", "parameters", "strict")
        if tool.get(name) is not None
    }
    if not function.get("strict"):  # false is what chat completions take for granted
        function.pop("strict", None)
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    if (kind := _kind(choice)) != "function":
        raise _untranslated(f"tool_choice of type {kind!r}", "tool_choice")
    return {"type": "function", "function": {"name": choice.get("name")}}


def _messages(asked: Any) -> list[dict[str, Any]]:
    """The input as chat messages. What the model said in one turn, items between two
    of the client's, is one message. Reasoning items are no part of it: what goes back
    of thoughts is put back by the gateway, for servers that want it."""
    if isinstance(asked, str):
        return [{"role": "user", "content": asked}]
    if not isinstance(asked, list):
        raise Refused("input is neither a text nor a list of items", "input")
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(asked):
        where = f"input[{number}]"
        kind = _kind(item, "message" if isinstance(item, dict) else "")
        said = messages[-1] if messages and _of_model(messages[-1]) else None
        if kind == "message":
            message = _message(item, where)
            if not _of_model(message) or said is None:
                messages.append(message)
            elif said["content"] is None or "tool_calls" in said:
                said["content"] = (said["content"] or "") + (message["content"] or "")
            else:
                messages.append(message)
        elif kind == "function_call":
            if said is None:
                said = {"role": "assistant", "content": None}
                messages.append(said)
            said.setdefault("tool_calls", []).append(_call(item))
        elif kind == "function_call_output":
            content = _content(item.get("output"), f"{where}.output")
            text = read_content(content).text
            tool = {"tool_call_id": item.get("call_id"), "content": text}
            messages.append({"role": "tool", **tool})
        elif kind != "reasoning":
            raise _untranslated(f"input item of type {kind!r}", where)
    return messages


def _of_model(message: Mapping[str, Any]) -> bool:
    return bool(message["role"] == "assistant")


def _message(item: Mapping[str, Any], where: str) -> dict[str, Any]:
    role = item.get("role")
    content = _content(item.get("content"), f"{where}.content")
    if role == "assistant":
        read = read_content(content)
        message = {"role": role, "content": read.text or None}
        return {**message, "refusal": read.refusal} if read.refusal else message
    if role == "developer":  # the newer name, which few servers take
        role = "system"
    if role not in ("user", "system"):
        raise _untranslated(f"message of role {role!r}", f"{where}.role")
    return {"role": role, "content": content}


def _content(content: Any, where: str) -> Any:
    """Text parts as chat completions have them; one alone is a text."""
    if not isinstance(content, list):
        return content
    parts = []
    for number, part in enumerate(content):
        kind = _kind(part)
        if kind in ("input_text", "output_text", "text"):
            parts.append({"type": "text", "text": part.get("text")})
        elif kind == "refusal":
            parts.append({"type": kind, kind: part.get(kind)})
        else:
            raise _untranslated(f"counterpart of {kind!r} here", f"{where}[{number}]")
    alone = len(parts) == 1 and parts[0]["type"] == "text"
    return parts[0]["text"] if alone else parts


def _call(item: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": item.get("name"), "arguments": item.get("arguments")}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _kind(value: Any, default: str = "") -> str:
    kind = value.get("type", default) if isinstance(value, dict) else default
    return str(kind)


# --------------------------------------------------------------- reply to response


class Writing:
    """A Response while it is being written: takes what comes of a chat completion and
    gives the events back. `response` is what they have made of it so far."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._number = 0
        self._open: dict[str, Any] | None = None
        identifier = secrets.token_hex(12)
        self.response: dict[str, Any] = {
            "id": f"resp_{identifier}",
            "object": "response",
            "created_at": 0,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": asked.get("instructions"),
            "max_output_tokens": asked.get("max_output_tokens"),
            "metadata": asked.get("metadata") or {},
            "model": asked.get("model") or "",
            "output": [],
            "parallel_tool_calls": asked.get("parallel_tool_calls") is not False,
            "previous_response_id": asked.get("previous_response_id"),
            "reasoning": asked.get("reasoning"),
            "store": asked.get("store") is not False,
            "temperature": asked.get("temperature"),
            "text": asked.get("text") or {"format": {"type": "text"}},
            "tool_choice": asked.get("tool_choice") or "auto",
            "tools": asked.get("tools") or [],
            "top_p": asked.get("top_p"),
            "truncation": "disabled",
            "usage": None,
        }

    def begin(self) -> Iterator[dict[str, Any]]:
        yield self._state("created")
        yield self._state("in_progress")

    def add(self, thoughts: str, text: str) -> Iterator[dict[str, Any]]:
        """Take a piece of the thoughts and one of the text."""
        if thoughts:
            yield from self._part("reasoning", "reasoning_text", thoughts)
        if text:
            yield from self._part("message", "output_text", text)

    def end(self, whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Take the whole completion, of whose texts all has been added."""
        choice = first_candidate(whole.get("choices")) or {}
        message = choice.get("message") or {}
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            yield from self._part("message", "refusal", refusal)
        calls = message.get("tool_calls") or ()
        if not calls and not any(i["type"] == "message" for i in self._output):
            yield from self._part("message", "output_text", "")
        yield from self._close()
        for call in calls:
            yield from self._call(call)
        self.response["model"] = whole.get("model") or self.response["model"]
        self.response["created_at"] = whole.get("created") or 0
        self.response["usage"] = _usage(whole.get("usage"))
        finish = choice.get("finish_reason")
        reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
        if finish == "error":
            yield from self.fail("the server broke the reply off before its end")
        elif finish in reasons:
            self.response["incomplete_details"] = {"reason": reasons[finish]}
            yield self._state("incomplete", "incomplete")
        else:
            yield self._state("completed", "completed")

    def fail(self, words: str) -> Iterator[dict[str, Any]]:
        """Take the error in which the reply ended."""
        yield from self._close()
        self.response["error"] = {"code": "server_error", "message": words}
        yield self._state("failed", "failed")

    @property
    def _output(self) -> list[dict[str, Any]]:
        output: list[dict[str, Any]] = self.response["output"]
        return output

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        return {"type": kind, "sequence_number": self._number - 1, **fields}

    def _state(self, kind: str, status: str = "in_progress") -> dict[str, Any]:
        self.response["status"] = status
        # a copy: later pieces must not appear in what was said earlier
        response = {**self.response, "output": list(self._output)}
        return self._event(f"response.{kind}", response=response)

    def _begin(self, item: dict[str, Any]) -> dict[str, Any]:
        self._output.append(item)
        self._open = item
        shown = {**item, "status": "in_progress"}
        return self._event(
            "response.output_item.added",
            output_index=self._at["output_index"],
            item=shown,
        )

    @property
    def _at(self) -> dict[str, Any]:
        return {
            "output_index": len(self._output) - 1,
            "item_id": self._output[-1]["id"],
        }

    def _identifier(self, kind: str) -> str:
        return f"{kind}_{len(self._output)}{self.response['id'].removeprefix('resp')}"

    def _part(self, item: str, kind: str, piece: str) -> Iterator[dict[str, Any]]:
        """Add a piece to the part of this kind, which may have to be begun."""
        if self._open is None or self._open["type"] != item:
            yield from self._close()
            short = {"reasoning": "rs", "message": "msg"}[item]
            begun: dict[str, Any] = {"id": self._identifier(short), "type": item}
            begun |= _BESIDE[item]
            yield self._begin({**begun, "content": [], "status": "completed"})
        assert self._open is not None
        content = self._open["content"]
        if not content or content[-1]["type"] != kind:
            yield from self._close_part()
            content.append({**_PARTS[kind], "type": kind, _FIELD[kind]: ""})
            yield self._in_part("response.content_part.added", part=dict(content[-1]))
        content[-1][_FIELD[kind]] += piece
        if piece:
            yield self._in_part(f"response.{kind}.delta", delta=piece, **_MORE[kind])

    def _in_part(self, kind: str, **fields: Any) -> dict[str, Any]:
        assert self._open is not None
        index = len(self._open["content"]) - 1
        return self._event(kind, **self._at, content_index=index, **fields)

    def _close_part(self) -> Iterator[dict[str, Any]]:
        if self._open is None or not self._open["content"]:
            return
        part = self._open["content"][-1]
        kind = part["type"]
        text = {_FIELD[kind]: part[_FIELD[kind]]}
        yield self._in_part(f"response.{kind}.done", **text, **_MORE[kind])
        yield self._in_part("response.content_part.done", part=part)

    def _close(self) -> Iterator[dict[str, Any]]:
        if self._open is None:
            return
        yield from self._close_part()
        yield self._event(
            "response.output_item.done",
            output_index=self._at["output_index"],
            item=self._open,
        )
        self._open = None

    def _call(self, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        function = call.get("function") or {}
        arguments = function.get("arguments")
        item = {
            "id": self._identifier("fc"),
            "type": "function_call",
            "call_id": call.get("id"),
            "name": function.get("name"),
            "arguments": "",
            "status": "completed",
        }
        yield self._begin(item)
        kind = "response.function_call_arguments"
        yield self._event(f"{kind}.delta", **self._at, delta=arguments)
        item["arguments"] = arguments
        yield self._event(
            f"{kind}.done", **self._at, name=item["name"], arguments=arguments
        )
        yield self._event(
            "response.output_item.done",
            output_index=self._at["output_index"],
            item=item,
        )
        self._open = None


_BESIDE: dict[str, dict[str, Any]] = {
    "reasoning": {"summary": []},
    "message": {"role": "assistant"},
}
_FIELD = {"output_text": "text", "reasoning_text": "text", "refusal": "refusal"}
_PARTS: dict[str, dict[str, Any]] = {
    "output_text": {"annotations": []},
    "reasoning_text": {},
    "refusal": {},
}
_MORE: dict[str, dict[str, Any]] = {
    "output_text": {"logprobs": []},
    "reasoning_text": {},
    "refusal": {},
}


def _usage(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, dict):
        return None
    return {
        "input_tokens": usage.get("prompt_tokens") or 0,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage.get("completion_tokens") or 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.get("total_tokens") or 0,
    }


def _event(event: Mapping[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event["type"].encode(), dump(event))


# ----------------------------------------------------------------------- on the wire

Chat = Callable[[Request], Awaitable[Response]]
"""The gateway's own answer to POST /v1/chat/completions."""


async def answer_as_chat(
    http: Request, chat: Chat, remembered: Remembered, limit_field: str
) -> Response:
    """Answer POST /v1/responses by way of chat completions. `limit_field`: the name by
    which the server knows the output limit."""
    try:
        asked = parse(await http.body())
    except ClientDisconnect:
        return Response(status_code=499)
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        return await chat(http)  # which says what is wrong with it
    try:
        before = _before(asked.get("previous_response_id"), remembered)
        request = to_chat(asked, before, limit_field)
    except Refused as refused:
        return _refusal(refused)

    async def receive() -> Message:
        return {"type": "http.request", "body": dump(request), "more_body": False}

    reply = await chat(Request(http.scope, receive))

    def remember(response: Mapping[str, Any], message: Any) -> None:
        if asked.get("store") is not False:
            own = request["messages"][1:] if asked.get("instructions") else None
            messages = request["messages"] if own is None else own
            remembered.add(response, [*messages, message])

    return _Translated(reply, asked, remember)


def answer_about(http: Request, remembered: Remembered) -> Response:
    """Answer GET and DELETE of a response that was given here."""
    identifier = http.path_params["identifier"]
    if http.query_params.get("stream") == "true":
        return _refusal(_untranslated("stream of an earlier response", "stream"))
    response = remembered.response(identifier)
    if response is None:
        words = f"Response with id {identifier!r} not found."
        return _refusal(Refused(words, "response_id", "not_found"), status=404)
    if http.method == "DELETE":
        remembered.forget(identifier)
        response = {"id": identifier, "object": "response", "deleted": True}
    return Response(dump(response), media_type="application/json")


def _before(identifier: Any, remembered: Remembered) -> list[Any]:
    """The conversation that a request continues. Raises Refused if its previous
    response is not known."""
    if identifier is None:
        return []
    messages = remembered.messages(identifier)
    if messages is None:
        message = f"Previous response with id {identifier!r} not found."
        code = "previous_response_not_found"
        raise Refused(message, "previous_response_id", code)
    return messages


def _refusal(refused: Refused, status: int = 400) -> Response:
    words = f"{refused} ({refused.param})" if refused.code is None else str(refused)
    error = {
        "message": words,
        "type": "invalid_request_error",
        "param": refused.param,
        "code": refused.code,
    }
    return Response(dump({"error": error}), status, media_type="application/json")


class _Translated(Response):
    """The reply to a chat request, on its way to a client that asked for a response."""

    def __init__(
        self,
        reply: Response,
        asked: Mapping[str, Any],
        remember: Callable[[Mapping[str, Any], Any], None],
    ) -> None:
        super().__init__()
        self._reply = reply
        self._asked = asked
        self._remember = remember

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way = _Way(self._asked, self._remember, send)
        try:
            await self._reply(scope, receive, way.send)
        except Exception:  # the line breaks: what has come of the reply goes first
            await way.as_it_came()
            raise


class _Way:
    """Takes the messages of a chat reply and sends on those of a response."""

    def __init__(
        self,
        asked: Mapping[str, Any],
        remember: Callable[[Mapping[str, Any], Any], None],
        send: Send,
    ) -> None:
        self._writing = Writing(asked)
        self._streams = asked.get("stream") is True
        self._remember = remember
        self._send = send
        self._events, self._merger = Events(), Merger()
        self._start: Message | None = None
        """How the chat reply begins, while nothing of it has been sent."""
        self._body: list[bytes] = []
        self._unchanged = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            kind = dict(message["headers"]).get(b"content-type", b"")
            self._chunks = kind.startswith(b"text/event-stream")
            self._unchanged = message["status"] != 200
            return
        last = not message.get("more_body")
        self._body.append(message.get("body", b""))
        if self._unchanged:
            if last:
                await self.as_it_came(last=True)
        elif self._chunks:
            await self._chunk(self._body.pop(), last)
        elif last:
            await self._whole(b"".join(self._body))

    async def as_it_came(self, *, last: bool = False) -> None:
        """Send what waits without a change."""
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)
            body = b"".join(self._body)
            await self._send(
                {"type": "http.response.body", "body": body, "more_body": not last}
            )

    async def _chunk(self, data: bytes, last: bool) -> None:
        out: list[dict[str, Any]] = []
        if self._streams and self._start is not None:
            await self._begin(b"text/event-stream; charset=utf-8")
            out += self._writing.begin()
        broken = None
        for one in self._events.feed(data, end=last):
            try:
                piece = self._merger.add(one)
            except ValueError:
                broken = f"a chunk is not a JSON object: {one[:200]!r}"
                continue
            out += self._writing.add(piece.thoughts, piece.text)
        if last:
            whole = self._merger.whole()
            if broken is None and "choices" in whole:
                out += self._end(whole)
            else:
                out += self._writing.fail(broken or error_words(whole)[0])
        if self._streams:
            await self._go(b"".join(map(_event, out)), last)
        elif last:
            await self._begin(b"application/json")
            await self._go(dump(self._writing.response), last)

    async def _whole(self, body: bytes) -> None:
        try:
            whole = parse(body)
            message = (first_candidate(whole["choices"]) or {})["message"]
            text = read_content(message.get("content")).text
            out = [
                *self._writing.begin(),
                *self._writing.add(read_reasoning(message), text),
                *self._end(whole),
            ]
        except (ValueError, LookupError, TypeError, AttributeError):
            await self.as_it_came(last=True)  # no repair, and no completion
            return
        if self._streams:
            await self._begin(b"text/event-stream; charset=utf-8")
            await self._go(b"".join(map(_event, out)), True)
        else:
            await self._begin(b"application/json")
            await self._go(dump(self._writing.response), True)

    def _end(self, whole: Mapping[str, Any]) -> list[dict[str, Any]]:
        out = list(self._writing.end(whole))
        message = (first_candidate(whole["choices"]) or {})["message"]
        said = {"role": "assistant", "content": message.get("content") or None}
        if calls := message.get("tool_calls"):
            said["tool_calls"] = calls
        self._remember(self._writing.response, said)
        return out

    async def _begin(self, content_type: bytes) -> None:
        assert self._start is not None
        headers = [(b"content-type", content_type)]
        headers += [
            (name, value)
            for name, value in self._start["headers"]
            if name not in (b"content-type", b"content-length")
        ]
        start, self._start = {**self._start, "headers": headers}, None
        await self._send(start)

    async def _go(self, body: bytes, last: bool) -> None:
        await self._send(
            {"type": "http.response.body", "body": body, "more_body": not last}
        )
