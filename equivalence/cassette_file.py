"""The file format of cassettes: written exchange by exchange, and read back.

A cassette is JSON Lines, made to be read in a review. One header, then:

    {"define": "tools 1", "value": […]}              long parts, said once
    {"run": 7, "implementation": "stage1", "question": "…", "history": [], "repeat": 0}
    {"run": 7, "call": 1, "request": {…}, "reply": {…}, "status": 200, "ms": 812.3}
    {"run": 7, "call": 2, "request": {"added": […]}, …}  messages added to call 1's
    {"run": 7, "end": "completed", "answer": "…", "steps": […], …}

Requests are canonical, replies are the upstream's own, unrepaired, less what names the
server's files and timings. Keys and headers never get here. A run counts when its end
is there; what a killed recording leaves behind is used when it is continued.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from config import Settings
from equivalence.grounding import mark
from equivalence.implementations import protocol
from equivalence.observe import exchange_json, installed_versions
from equivalence.record import Run, Step, whole_lines
from equivalence.run import Asked
from equivalence.trace import warnings
from gateway import Exchange, RecordedExchange
from gateway.canonical import wire_request
from gateway.cassette import as_recorded
from gateway.server import take_in
from usage import UsageError

SCHEMA = "agent-cassette/1"

OFFLINE = "the offline model"

Line = dict[str, Any]


@dataclass
class RecordedRun:
    """A run as it was recorded, and the exchanges to answer it from."""

    run: Run
    exchanges: list[RecordedExchange]


@dataclass
class Recording:
    """A cassette, read."""

    header: Line
    settings: Settings
    """Under which it was recorded, and under which it is replayed."""
    runs: dict[Asked, RecordedRun] = field(default_factory=dict)
    """The finished runs, in order; of two recordings of one the later one counts."""
    unfinished: dict[Asked, list[RecordedExchange]] = field(default_factory=dict)
    """What runs without an end had got so far."""
    defined: dict[str, Any] = field(default_factory=dict)
    last_number: int = 0

    @property
    def implementations(self) -> list[str]:
        return list(dict.fromkeys(asked.implementation for asked in self.runs))

    def of(self, implementation: str) -> Iterator[tuple[Asked, RecordedRun]]:
        """Yield the finished runs of one implementation."""
        for asked, recorded in self.runs.items():
            if asked.implementation == implementation:
                yield asked, recorded


def cassette_path(path: Path) -> Path:
    """Return the path with the suffix that cassettes have."""
    return path if path.suffix == ".jsonl" else path.with_name(f"{path.name}.jsonl")


def make_header(settings: Settings, tools: str, note: str) -> Line:
    """Return the first line of a cassette: where its replies come from."""
    kept = settings.recorded()
    server = kept.pop("base_url")
    return {
        "schema": SCHEMA,
        "recorded": datetime.now().astimezone().isoformat(timespec="seconds"),
        "model": kept.pop("model"),
        "server": _address(server) if server else OFFLINE,
        "note": note,
        "tools": tools,
        "settings": kept,
        "versions": installed_versions(),
    }


def _address(url: str) -> str:
    """The URL without the user, the password and the query that may hold a key."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def read_cassette(path: Path) -> Recording:
    """Return the recording. A last line cut off by a crash is passed over; ValueError
    names any other that cannot be read."""
    recording: Recording | None = None
    open_runs: dict[int, tuple[Asked, list[RecordedExchange], list[Any]]] = {}
    versions: dict[str, str] = {}
    for number, text in enumerate(whole_lines(path), 1):
        try:
            line = json.loads(text)
            if recording is None:
                recording = empty_recording(line)
                versions = line["versions"]
            elif "define" in line:
                recording.defined[line["define"]] = line["value"]
            elif "versions" in line:
                versions = line["versions"]
            else:
                recording.last_number = max(recording.last_number, line["run"])
                _read_line(recording, line, open_runs, versions)
        except (ValueError, LookupError, TypeError) as error:
            known = isinstance(error, ValueError)
            words = error if known else f"{type(error).__name__} {error}"
            raise UsageError(f"{path}, line {number}: {words}") from None
    if recording is None:
        raise UsageError(f"{path} is empty")
    for asked, exchanges, _ in open_runs.values():
        if len(exchanges) >= len(recording.unfinished.get(asked, ())):
            recording.unfinished[asked] = exchanges
    return recording


def empty_recording(header: Line) -> Recording:
    """Return a recording with this header and no runs yet; ValueError where the header
    is none of a cassette."""
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise UsageError(f'no cassette: "schema" is not "{SCHEMA}"')
    server = header["server"]
    settings = Settings(
        **{
            **with_defaults(header["settings"]),
            "model": header["model"],
            "base_url": None if server == OFFLINE else server,
        }
    )
    return Recording(header, settings)


def with_defaults(settings: Mapping[str, Any]) -> Line:
    """Return all settings of a header: those that it does not know yet have their
    defaults, whatever the environment says."""
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in Settings.model_fields.items()
        if name not in ("model", "base_url")
    }
    return {**defaults, **settings}


def _read_line(
    recording: Recording,
    line: Line,
    open_runs: dict[int, tuple[Asked, list[RecordedExchange], list[Any]]],
    versions: dict[str, str],
) -> None:
    number = line["run"]
    if "implementation" in line:
        name, question = line["implementation"], line["question"]
        asked = Asked(name, question, tuple(line["history"]), line["repeat"])
        open_runs[number] = (asked, [], [])
    elif "call" in line:
        _, exchanges, times = open_runs[number]
        previous = exchanges[-1].request if exchanges else {}
        exchanges.append(
            RecordedExchange(
                _whole(line["request"], previous, recording.defined),
                line["reply"],
                line["status"],
                line.get("attempt", 0),
            )
        )
        times.append(line["ms"])
    else:
        asked, exchanges, times = open_runs.pop(number)
        run = _run(recording.settings, asked, exchanges, times, line, versions)
        recording.runs[asked] = RecordedRun(run, exchanges)


def _whole(request: Line, previous: Line, defined: Mapping[str, Any]) -> Line:
    """The canonical request, names and additions put back."""
    if request.keys() == {"added"}:
        return {**previous, "messages": [*previous["messages"], *request["added"]]}
    whole = dict(request)
    if "tools" in whole:
        whole["tools"] = defined[whole["tools"]["defined"]]
    if isinstance(messages := whole.get("messages"), list):
        whole["messages"] = [
            {**message, "content": defined[message["content"]["defined"]]}
            if isinstance(message, dict) and message.get("role") == "system"
            else message
            for message in messages
        ]
    return whole


def _run(
    settings: Settings,
    asked: Asked,
    exchanges: Iterable[RecordedExchange],
    times: Iterable[Any],
    end: Line,
    versions: dict[str, str],
) -> Run:
    """The run record, with the replies as the gateway repairs them today."""
    seen = []
    for recorded, ms in zip(exchanges, times, strict=True):
        request = wire_request(recorded.request)
        exchange = Exchange(request, b"", recorded.attempt, ms=ms)
        take_in(as_recorded(recorded, request), exchange, repaired=settings.repair)
        seen.append(exchange_json(exchange))
    run = Run(
        implementation=asked.implementation,
        question=asked.question,
        repeat=asked.repeat,
        protocol=protocol(asked.implementation),
        history=list(asked.history),
        settings=settings.recorded(),
        versions=versions,
        status=end["end"],
        answer=end["answer"],
        steps=[Step(**step) for step in end["steps"]],
        exchanges=seen,
        error=end.get("error"),
    )
    run.warnings = warnings(run)
    mark(run)
    return run
