"""Writes cassettes: a line at a time, so that whatever was recorded stays recorded."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from equivalence.cassette_file import (
    Line,
    empty_recording,
    read_cassette,
    with_defaults,
)
from equivalence.record import Run, Step, end_last_line
from equivalence.run import Asked
from gateway import Exchange, RecordedExchange
from gateway.canonical import canonical_request, differences
from usage import UsageError

KEPT_OF_A_REPLY = ("model", "choices", "usage")


class Recorder:
    """Writes a cassette line by line, each on the disk before the next. An existing one
    is continued; ValueError where it was recorded under other conditions."""

    def __init__(self, path: Path, header: Line) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        end_last_line(path)
        fresh = not path.stat().st_size
        self.recording = empty_recording(header) if fresh else read_cassette(path)
        if not fresh:
            _check_same(path, self.recording.header, header)
        self.file = path.open("a", encoding="utf-8", errors="replace", newline="\n")
        self._names = {_text(v): name for name, v in self.recording.defined.items()}
        self._number = self.recording.last_number
        self._call = 0
        self._previous: dict[str, Any] | None = None
        if fresh:
            self._write(header)
        elif self.recording.header["versions"] != header["versions"]:
            self._write({key: header[key] for key in ("recorded", "versions")})

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.file.close()

    def begin(self, asked: Asked) -> list[RecordedExchange]:
        """Begin a run; return what an earlier try of it had got already."""
        self._number += 1
        self._call = 0
        self._previous = None
        self._write({"run": self._number, **asdict(asked)})
        got = self.recording.unfinished.get(asked, [])
        if asked in self.recording.runs:  # the endpoint failed it
            got = self.recording.runs[asked].exchanges
        good = [exchange.status == 200 for exchange in got]
        return got[: good.index(False)] if False in good else got

    def exchange(self, exchange: Exchange) -> None:
        """Write an exchange of the run that was begun last."""
        request = canonical_request(exchange.request)
        self._call += 0 if exchange.attempt else 1
        line: Line = {"run": self._number, "call": self._call}
        if exchange.attempt:
            line["attempt"] = exchange.attempt
        line["request"] = _added(self._previous, request) or self._with_names(request)
        line["reply"] = _kept(exchange.raw_reply)
        line["status"] = exchange.raw_status
        line["ms"] = exchange.ms
        self._write(line)
        self._previous = request

    def end(self, run: Run) -> None:
        """Write the end of the run: from now on it counts."""
        line: Line = {"run": self._number, "end": run.status, "answer": run.answer}
        line["steps"] = [_plain(step) for step in run.steps]
        if run.error:
            line["error"] = run.error
        self._write(line)

    def _with_names(self, request: dict[str, Any]) -> dict[str, Any]:
        """The request with its tools and system messages replaced by their names."""
        short = dict(request)
        if "tools" in short:
            short["tools"] = self._define("tools", short["tools"])
        messages = short.get("messages")
        if isinstance(messages, list):
            short["messages"] = [
                {**message, "content": self._define("system", message.get("content"))}
                if isinstance(message, dict) and message.get("role") == "system"
                else message
                for message in messages
            ]
        return short

    def _define(self, kind: str, value: Any) -> dict[str, str]:
        text = _text(value)
        if text not in self._names:
            name = f"{kind} {sum(n.startswith(kind) for n in self._names.values()) + 1}"
            self._names[text] = name
            self._write({"define": name, "value": value})
        return {"defined": self._names[text]}

    def _write(self, line: Line) -> None:
        self.file.write(_text(line) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def _plain(step: Step) -> Line:
    """The step less what is found again when it is read."""
    plain = asdict(step)
    del plain["ungrounded"]
    return plain


def _added(
    previous: dict[str, Any] | None, request: dict[str, Any]
) -> dict[str, Any] | None:
    """The request as what it adds to the previous one; None where that is not all."""
    if previous is None:
        return None
    before, now = previous.get("messages"), request.get("messages")
    if not isinstance(before, list) or not isinstance(now, list):
        return None
    rest = {**previous, "messages": now}
    if _text(rest) != _text(request) or _text(now[: len(before)]) != _text(before):
        return None
    return {"added": now[len(before) :]}


def _kept(reply: Any) -> Any:
    """The reply less what tells of the server and not of the model."""
    if not isinstance(reply, dict) or "choices" not in reply:
        return reply
    kept = {key: reply[key] for key in KEPT_OF_A_REPLY if key in reply}
    if isinstance(model := kept.get("model"), str):
        kept["model"] = _without_folder(model)
    return kept


def _without_folder(model: str) -> str:
    """The name of a model without the folder of its file; Qwen/Qwen3 stays whole."""
    if re.match(r"[/\\~]|[A-Za-z]:", model) or model.endswith(".gguf"):
        return re.split(r"[/\\]", model)[-1]
    return model


def _check_same(path: Path, old: Line, new: Line) -> None:
    before, after = (
        {
            **{key: header[key] for key in ("model", "server", "tools")},
            "settings": with_defaults(header["settings"]),
        }
        for header in (old, new)
    )
    for place, was, now in differences(before, after):
        name = place.removeprefix("$.").removeprefix("settings.")
        raise UsageError(
            f"{path} was recorded with {name} {_text(was)}, not {_text(now)}:"
            " choose another file, or the same settings"
        )


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
