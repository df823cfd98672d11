"""Server-sent events of chat completions: many chunks to one reply, and back."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from equivalence.gateway.limits import parse
from equivalence.gateway.shapes import (
    KNOWN,
    REASONING,
    first_candidate,
    read_calls,
    read_content,
)

_LINE_END = re.compile(r"\r\n|\n|\r")

INCOMPLETE = "incomplete_stream"
"""The finish_reason of a stream that ended without one, and without [DONE]: half a
reply. No server says it."""


class Events:
    """Takes the bytes of an event stream as they come and gives back the data of its
    events. A line ends at CR, LF or both, and nowhere else: not at U+2028."""

    def __init__(self) -> None:
        # utf-8-sig passes over a mark at the beginning; a character may come in halves
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._line: list[str] = []

    def feed(self, data: bytes, *, end: bool = False) -> Iterator[str]:
        """Yield the data of each line that is complete now; `end`: nothing follows."""
        text = self._decoder.decode(data, end)
        first, *more = _LINE_END.split(text)
        self._line.append(first)
        for line in more:
            yield from self._data()
            self._line = [line]
        if end:
            yield from self._data()
            self._line = []

    def _data(self) -> Iterator[str]:
        line = "".join(self._line)
        if line.startswith("data:") and (data := line[len("data:") :].strip()):
            yield data


class Piece(NamedTuple):
    """What one chunk adds for the reader of the reply."""

    text: str = ""
    thoughts: str = ""


class Merger:
    """Puts the chunks of a stream together to one chat completion.

    Of several candidates only the one with index 0 counts. Pieces of a tool call belong
    together by index where there is one, else by id, else by order; a new id begins a
    call only together with a name; a name that a server repeats in each piece counts
    once. What is not read by name is kept, for a server that wants it back.
    """

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        """The error that the stream ended in, as it came."""
        self.head: dict[str, Any] = {}
        """id, created, model: as the first chunk that has them says."""
        self._usage: Any = None
        self.done = False
        """Whether the stream has said that it is complete."""
        self._candidates: dict[int, _Candidate] = {}

    def add(self, data: str) -> Piece:
        """Take the data of one event. Raises ValueError if it is no JSON object."""
        if data == "[DONE]":
            self.done = True
        if self.done or self.error is not None:
            return Piece()
        chunk = parse(data)
        if not isinstance(chunk, dict):
            raise ValueError("a chunk is not a JSON object")
        if chunk.get("error") is not None:
            self.error = chunk
            return Piece()
        for key in ("id", "created", "model"):
            if chunk.get(key) is not None:
                self.head.setdefault(key, chunk[key])
        self._usage = chunk.get("usage") or self._usage
        choices, piece = chunk.get("choices"), Piece()
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                continue
            index = choice.get("index")
            index = index if isinstance(index, int) else 0
            added = self._candidates.setdefault(index, _Candidate()).add(choice)
            piece = added if index == 0 else piece
        return piece

    def whole(self) -> Any:
        """Return the chat completion; an error as it came."""
        if self.error is not None:
            return self.error
        choices = [
            candidate.choice(index, self.done)
            for index, candidate in sorted(self._candidates.items())
        ]
        first = first_candidate(choices) or _Candidate().choice(0, self.done)
        whole = {"object": "chat.completion", **self.head}
        if self._usage is not None:
            whole["usage"] = self._usage
        return {**whole, "choices": [{**first, "index": 0}]}


class _Candidate:
    """One candidate of a stream: its message as far as it has come."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._calls: list[_Call] = []
        self._rest: dict[str, Any] = {}
        self._finish: Any = None

    def add(self, choice: Mapping[str, Any]) -> Piece:
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")  # a whole message in one event
        if not isinstance(delta, dict):
            return Piece()
        content = read_content(delta.get("content"))
        thoughts = content.thoughts
        refusal = delta.get("refusal")
        texts = {
            "content": content.text,
            "refusal": content.refusal or (refusal if isinstance(refusal, str) else ""),
        }
        for name in REASONING:
            if isinstance(value := delta.get(name), str):
                texts[name] = value
                thoughts = thoughts or value
        if content.thoughts:
            texts[REASONING[0]] = texts.get(REASONING[0], "") + content.thoughts
        for name, text in texts.items():
            if text:
                self._texts.setdefault(name, []).append(text)
        for name, value in delta.items():
            if name not in KNOWN and name not in texts and value is not None:
                self._rest[name] = _added(self._rest.get(name), value)
        sent = delta.get("tool_calls")
        sent = sent if isinstance(sent, list) else [sent]
        for position, (piece, _) in enumerate(read_calls(delta)):
            if piece:
                extra = sent[position] if position < len(sent) else None
                self._add_call(piece, extra if isinstance(extra, dict) else {})
        return Piece(content.text, thoughts)

    def _add_call(self, piece: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
        call = self._continued(piece)
        if call is None:
            call = _Call(piece.get("index"), piece.get("id"))
            self._calls.append(call)
        call.add(piece["function"], sent)

    def _continued(self, piece: Mapping[str, Any]) -> _Call | None:
        """The call that the piece continues, or None when it begins a new one."""
        index, identifier = piece.get("index"), piece.get("id")
        name = piece["function"].get("name")
        for call in reversed(self._calls):
            if index is not None and call.index != index:
                continue
            if identifier and call.id and call.id != identifier and name:
                continue  # some servers number all parallel calls 0
            if index is None and not identifier and name and call.has_arguments:
                return None  # neither index nor id: a name after arguments begins one
            return call
        return None

    def choice(self, index: int, done: bool) -> dict[str, Any]:
        """The candidate as a whole reply has it."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {name: "".join(parts) for name, parts in self._texts.items()}
        message |= _whole(self._rest)
        if self._calls:
            message["tool_calls"] = [call.whole() for call in self._calls]
        finish = self._finish if self._finish or done else INCOMPLETE
        return {"index": index, "message": message, "finish_reason": finish}


class _Call:
    """One tool call of a stream, as far as it has come."""

    def __init__(self, index: Any, identifier: Any) -> None:
        self.index = index
        self.id = identifier
        self._name = ""
        self._texts: list[str] = []
        self._object: dict[str, Any] = {}
        self._extra: dict[str, Any] = {}
        self._other: Any = None

    @property
    def has_arguments(self) -> bool:
        return bool(self._texts or self._object)

    def add(self, function: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(name, str) and name != self._name:
            self._name += name
        if isinstance(arguments, str):
            self._texts += [arguments] if arguments else []
        elif isinstance(arguments, dict):  # in one piece, or {} before the text
            self._object |= arguments
        elif arguments is not None:
            self._other = arguments
        for key, value in sent.items():
            if key not in ("id", "index", "type", "function", "name", "arguments"):
                self._extra[key] = _added(self._extra.get(key), value)

    def whole(self) -> dict[str, Any]:
        text = "".join(self._texts)
        arguments: Any = text
        if self._object and text.strip() in ("", "{}"):
            arguments = json.dumps(self._object, ensure_ascii=False)
        elif self._other is not None and not text:
            arguments = self._other
        function = {"name": self._name or None, "arguments": arguments}
        return {
            "id": self.id,
            "type": "function",
            "function": function,
            **_whole(self._extra),
        }


class _Pieces(list[str]):
    """A text that is still growing."""


def _added(known: Any, piece: Any) -> Any:
    """A field that nobody here reads, with one more piece: lists grow, entries of one
    index are joined, and so are their texts, as OpenRouter sends its reasoning_details.
    """
    if isinstance(known, list) and isinstance(piece, list):
        for entry in piece:
            last = known[-1] if known else None
            index = entry.get("index") if isinstance(entry, dict) else None
            if (
                index is None
                or not isinstance(last, dict)
                or last.get("index") != index
            ):
                known.append(entry)
                continue
            for key, value in entry.items():
                before = last.get(key)
                if key in ("text", "summary", "data") and isinstance(value, str):
                    if not isinstance(before, _Pieces):
                        before = last[key] = _Pieces([before] if before else [])
                    before.append(value)
                elif value is not None:
                    last[key] = value
        return known
    if isinstance(known, dict) and isinstance(piece, dict):
        return {**known, **piece}
    return piece


def _whole(value: Any) -> Any:
    """The field with its growing texts put together."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    return value


def merge_stream(stream: bytes) -> Any:
    """Return the chunks of an event stream as one chat completion, an error object in
    the stream as it is. Raises ValueError if a chunk is not a JSON object."""
    merger = Merger()
    for data in Events().feed(stream, end=True):
        merger.add(data)
    return merger.whole()


def delta_event(
    head: Mapping[str, Any], delta: Mapping[str, Any], finish: Any = None
) -> bytes:
    """Return one event with one delta."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({**_head(head), "choices": [choice]})


def event(value: Any) -> bytes:
    """Return one event with a JSON value."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode(
        "utf-8", "replace"
    )


def _head(whole: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": whole.get("id"),
        "object": "chat.completion.chunk",
        "created": whole.get("created"),
        "model": whole.get("model"),
    }


DONE = b"data: [DONE]\n\n"


def to_stream(
    whole: Mapping[str, Any],
    request: Mapping[str, Any],
    *,
    text_sent: int = 0,
    thoughts_sent: int = 0,
) -> bytes:
    """Return a chat completion as an event stream, each part in one chunk; less the
    characters of its text and of its thoughts that were sent already."""
    choice = whole["choices"][0]
    message = dict(choice["message"])
    calls = message.pop("tool_calls", None)
    message["content"] = (message.get("content") or "")[text_sent:]
    thoughts = message.pop(REASONING[0], None)
    if isinstance(thoughts, str) and thoughts[thoughts_sent:]:
        message[REASONING[0]] = thoughts[thoughts_sent:]
    deltas = [message]
    for index, call in enumerate(calls or ()):
        deltas.append({"tool_calls": [{"index": index, **call}]})
    events = [delta_event(whole, delta) for delta in deltas]
    events.append(delta_event(whole, {}, choice.get("finish_reason")))
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        usage = {**_head(whole), "choices": [], "usage": whole.get("usage")}
        events.append(event(usage))
    return b"".join([*events, DONE])
