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
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from config import Settings
from equivalence.grounding import mark
from equivalence.implementations import protocol
from equivalence.observe import exchange_json, installed_versions
from equivalence.record import Run, Step
from equivalence.run import Asked
from equivalence.trace import warnings
from gateway import Exchange, RecordedExchange
from gateway.canonical import canonical_request, differences, wire_request
from gateway.cassette import as_recorded
from gateway.server import take_in

SCHEMA = "agent-cassette/1"

OFFLINE = "the offline model"

KEPT_OF_A_REPLY = ("model", "choices", "usage")

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
    """The finished runs in the order of the file; of two the later one counts."""
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


# ------------------------------------------------------------------------- writing


class Recorder:
    """Writes a cassette line by line, each on the disk before the next. An existing one
    is continued; ValueError where it was recorded under other conditions."""

    def __init__(self, path: Path, header: Line) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _mend_end(path)
        fresh = not path.exists() or not path.stat().st_size
        self.recording = _begin(header) if fresh else read_cassette(path)
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


def _address(url: str) -> str:
    """The URL without the user, the password and the query that may hold a key."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _mend_end(path: Path) -> None:
    """Make the file end with a whole line: one that a crash cut off is taken away."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole, _, rest = data.rpartition(b"\n")
    if not rest:
        return
    try:
        json.loads(rest)
    except ValueError:
        os.truncate(path, len(whole) + 1 if whole else 0)
    else:
        with path.open("ab") as file:
            file.write(b"\n")


def _check_same(path: Path, old: Line, new: Line) -> None:
    before, after = (
        {
            **{key: header[key] for key in ("model", "server", "tools")},
            "settings": _with_defaults(header["settings"]),
        }
        for header in (old, new)
    )
    for place, was, now in differences(before, after):
        name = place.removeprefix("$.").removeprefix("settings.")
        raise ValueError(
            f"{path} was recorded with {name} {_text(was)}, not {_text(now)}:"
            " choose another file, or the same settings"
        )


# --------------------------------------------------------------------------- reading


def read_cassette(path: Path) -> Recording:
    """Return the recording. A last line cut off by a crash is passed over; ValueError
    names any other that cannot be read."""
    lines = path.read_text(encoding="utf-8").splitlines()
    recording: Recording | None = None
    open_runs: dict[int, tuple[Asked, list[RecordedExchange], list[Any]]] = {}
    versions: dict[str, str] = {}
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
            if recording is None:
                recording = _begin(line)
                versions = line["versions"]
            elif "define" in line:
                recording.defined[line["define"]] = line["value"]
            elif "versions" in line:
                versions = line["versions"]
            else:
                recording.last_number = max(recording.last_number, line["run"])
                _read_line(recording, line, open_runs, versions)
        except (ValueError, LookupError, TypeError) as error:
            if number == len(lines) and recording and not text.endswith("}"):
                break
            raise ValueError(f"{path}, line {number}: {error!r}") from None
    if recording is None:
        raise ValueError(f"{path} is empty")
    for asked, exchanges, _ in open_runs.values():
        if len(exchanges) >= len(recording.unfinished.get(asked, ())):
            recording.unfinished[asked] = exchanges
    return recording


def _begin(header: Line) -> Recording:
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise ValueError(f'no cassette: "schema" is not "{SCHEMA}"')
    server = header["server"]
    settings = Settings(
        **{
            **_with_defaults(header["settings"]),
            "model": header["model"],
            "base_url": None if server == OFFLINE else server,
        }
    )
    return Recording(header, settings)


def _with_defaults(settings: Mapping[str, Any]) -> Line:
    """All settings: those that the header does not know yet have their defaults,
    whatever the environment says."""
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
        recording.runs.pop(asked, None)
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


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
