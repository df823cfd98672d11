"""Files of run records: JSON Lines, one run a line, in UTF-8.

Each line can be read alone, so files are joined by `cat`. Within a line the tools and
the prompt stand once: a request that continues the one before is written as the
messages it adds. One writer holds the system's own lock on the file, which goes when
the process dies; a line is on the disk before the next run begins. What a killed writer
left of a last line is passed over by readers, and removed by the next writer.
"""

from __future__ import annotations

import json
import marshal
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, overload

from equivalence.errors import UsageError
from equivalence.gateway.canonical import differences
from equivalence.gateway.exchange import Exchange
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs.record import SCHEMA, STATUSES, Asked, Run

START = f'{{"schema": "{SCHEMA}"'.encode()
"""How every line begins."""
BOM = b"\xef\xbb\xbf"


# ---------------------------------------------------------------------------- a line


def to_line(run: Run) -> bytes:
    """Return the run as one line of a file, its newline included."""
    try:
        text = json.dumps(to_json(run), ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_strict(to_json(run)), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"


def to_json(run: Run) -> dict[str, Any]:
    """Return the run as the JSON object of its line."""
    plain = {each.name: getattr(run, each.name) for each in fields(run)}
    plain["steps"] = [dict(vars(step)) for step in run.steps]
    plain["exchanges"] = []
    before: dict[str, Any] | None = None
    for exchange in run.exchanges:
        plain["exchanges"].append(_exchange_to_json(exchange, before))
        before = exchange.request
    return {"schema": SCHEMA, **plain}


def _exchange_to_json(
    exchange: Exchange, before: dict[str, Any] | None
) -> dict[str, Any]:
    """The exchange less what need not be said: its bytes, and a raw reply that is what
    the implementation got."""
    plain: dict[str, Any] = {
        each.name: getattr(exchange, each.name)
        for each in fields(exchange)
        if each.name != "body"
    }
    added = _added(before, exchange.request)
    plain["request"] = exchange.request if added is None else {"added": added}
    plain["reply"], plain["raw_reply"] = map(
        _kept, (exchange.reply, exchange.raw_reply)
    )
    as_it_came = exchange.raw_status == exchange.status
    if as_it_came and _bytes(plain["raw_reply"]) == _bytes(plain["reply"]):
        del plain["raw_reply"], plain["raw_status"]
    return plain


KEPT_OF_A_REPLY = ("model", "choices", "usage")


def _kept(reply: Any) -> Any:
    """The reply less what tells of the server's machine and not of the model."""
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


def _added(before: dict[str, Any] | None, request: dict[str, Any]) -> list[Any] | None:
    """The messages that the request adds to the one before; None where that is not all
    that differs, to the letter."""
    if before is None or [*before] != [*request]:
        return None
    earlier, now = before.get("messages"), request.get("messages")
    if not isinstance(earlier, list) or not isinstance(now, list):
        return None
    head = now[: len(earlier)]
    if any(before[key] != request[key] for key in before if key != "messages"):
        return None
    if head != earlier or _bytes({**before, "messages": head}) != _bytes(before):
        return None  # equal for Python, as 1 and True are, is not to the letter
    return now[len(earlier) :]


def from_line(line: bytes | str) -> Run:
    """Return the run of one line. Raises ValueError if it is not one, naming the field
    that is wrong."""
    import msgspec

    text = line if isinstance(line, bytes) else line.encode()
    if not text.startswith(START):
        _check_schema(text)
    try:
        run: Run = _decoder().decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    before: dict[str, Any] = {}
    for number, exchange in enumerate(run.exchanges):
        if exchange.request.keys() == {"added"}:
            _continue(exchange, before, f"$.exchanges[{number}].request")
        before = exchange.request
        if exchange.raw_status is None:
            exchange.raw_reply, exchange.raw_status = exchange.reply, exchange.status
    if run.status not in STATUSES:
        raise ValueError(
            _("{status!r} is no status - at `$.status`").format(status=run.status)
        )
    return run


@cache
def _decoder() -> Any:
    import msgspec

    return msgspec.json.Decoder(Run)


def _check_schema(line: bytes) -> None:
    """Raise ValueError if the line is not a record of this schema."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(_("this is not JSON")) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        told = (
            _("there is none")
            if schema is None
            else _("this is {schema!r}").format(schema=schema)
        )
        raise ValueError(
            _('no run record: its "schema" must be "{schema}", {told}').format(
                schema=SCHEMA, told=told
            )
        )


def _continue(exchange: Exchange, before: dict[str, Any], place: str) -> None:
    """Put the messages of the request before in front of those it adds."""
    messages, added = before.get("messages"), exchange.request["added"]
    if not isinstance(messages, list) or not isinstance(added, list):
        raise ValueError(_("it adds to no messages - at `{place}`").format(place=place))
    exchange.request = {**before, "messages": [*messages, *added]}


def _bytes(value: Any) -> bytes:
    """JSON to the letter, at the speed of C: 1, 1.0 and true differ, as do orders."""
    return marshal.dumps(value, 2)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _strict(value: Any) -> Any:
    """The value as JSON has it: NaN and infinities, which servers send, as texts."""
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(inner) for inner in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return repr(value)
    return value


# ----------------------------------------------------------------------------- reading


def read_runs(*paths: Path) -> Iterator[Run]:
    """Yield the runs of the files, one at a time. Raises UsageError if a file is not
    there or not UTF-8, or a line is not a run record; it names line and field."""
    for path in paths:
        for _offset, line in _lines(path):
            yield _parsed(path, *line)


def _parsed(path: Path, number: int, line: bytes) -> Run:
    try:
        return from_line(line)
    except ValueError as error:
        raise UsageError(
            _("{path}, line {number}: {error}").format(
                path=path, number=number, error=translated(str(error))
            )
        ) from None


def _lines(path: Path) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Each line that is not blank, with its offset and number. A last one that a crash
    cut off is passed over, and said on standard error."""
    offset = 0
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(
            f"{path}: {translated(error.strerror or str(error))}"
        ) from None
    with file:
        for number, line in enumerate(file, 1):
            begins = offset
            offset += len(line)
            if number == 1:
                line = line.removeprefix(BOM)
            _check_encoding(path, number, line)
            if unfinished(line):
                print(
                    _("{path}, line {number}: unfinished, passed over").format(
                        path=path, number=number
                    ),
                    file=sys.stderr,
                )
            elif line.strip():
                yield begins, (number, line)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands."""

    path: Path
    number: int
    """Of its line, from 1; of the run where the format is a foreign one."""
    offset: int | None
    """Of its line, in bytes; None where the format is a foreign one."""


Foreign = Callable[[Path], list[Run] | None]
"""Reads the runs of a file of another format; None where it holds run records."""


class RunIndex:
    """Where the runs of files are: read once to know, and each again when it is wanted,
    so that memory does not grow with what the runs hold. Of runs recorded twice the
    later one counts.

    Raises UsageError if a line is no run record.
    """

    def __init__(
        self, paths: Sequence[Path], foreign: Foreign = lambda path: None
    ) -> None:
        self.places: dict[Asked, Place] = {}
        self._files: dict[Path, BinaryIO] = {}
        self._foreign: dict[Asked, Run] = {}
        """Runs of other formats stay in memory: no line holds one."""
        for path in dict.fromkeys(paths):
            if (runs := foreign(path)) is not None:
                for number, run in enumerate(runs, 1):
                    self.places[run.asked] = Place(path, number, None)
                    self._foreign[run.asked] = run
                continue
            for offset, (number, line) in _lines(path):
                asked = _parsed(path, number, line).asked
                self.places[asked] = Place(path, number, offset)

    def __len__(self) -> int:
        return len(self.places)

    def read(self, asked: Asked) -> Run:
        """Return the run."""
        place = self.places[asked]
        if place.offset is None:
            return self._foreign[asked]
        if place.path not in self._files:
            self._files[place.path] = place.path.open("rb")
        file = self._files[place.path]
        file.seek(place.offset)
        return _parsed(place.path, place.number, file.readline().removeprefix(BOM))

    def runs(self, asked: Sequence[Asked]) -> IndexedRuns:
        """Return these runs, each read when it is wanted."""
        return IndexedRuns(self, asked)

    def close(self) -> None:
        """Let the files go."""
        for file in self._files.values():
            file.close()
        self._files.clear()


class IndexedRuns(Sequence[Run]):
    """Runs of an index: none of them is kept."""

    def __init__(self, index: RunIndex, asked: Sequence[Asked]) -> None:
        self._index = index
        self.asked = asked

    def __len__(self) -> int:
        return len(self.asked)

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> IndexedRuns: ...
    def __getitem__(self, place: int | slice) -> Run | IndexedRuns:
        if isinstance(place, slice):
            return IndexedRuns(self._index, self.asked[place])
        return self._index.read(self.asked[place])


def _check_encoding(path: Path, number: int, line: bytes) -> None:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        if not unfinished(line):
            raise UsageError(
                _("{path}, line {number}: not UTF-8").format(path=path, number=number)
            ) from None


def unfinished(line: bytes) -> bool:
    """Whether it is the beginning of a line of ours, cut off when its writer died."""
    if line.endswith(b"\n") or not line:
        return False
    if not (line.startswith(START) or START.startswith(line)):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


# ----------------------------------------------------------------------------- writing


class RunFile:
    """A file of runs that is written: locked, continued where it ended. A context
    manager.

    Raises UsageError if it is no regular file, holds anything else than run records, or
    another process writes it; then its bytes are as they were.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise UsageError(_("{path} is not a regular file").format(path=path))
        self._file = _locked(path)
        try:
            self._offsets = self._read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RunFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go; the lock goes with it."""
        self._file.close()

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, asked: Asked) -> bool:
        return asked in self._offsets

    def get(self, asked: Asked) -> Run | None:
        """Return the run of that which was recorded last; None if none was."""
        if asked not in self._offsets:
            return None
        self._file.seek(self._offsets[asked])
        return from_line(self._file.readline().removeprefix(BOM))

    def append(self, run: Run) -> None:
        """Add the run; it is on the disk when this returns."""
        offset = self._file.seek(0, os.SEEK_END)
        self._file.write(to_line(run))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._offsets[run.asked] = offset

    def _read(self) -> dict[Asked, int]:
        """Where the last run of each is, every line validated; the file is made to end
        with a line."""
        offsets = {
            _parsed(self.path, *line).asked: begins
            for begins, line in _lines(self.path)
        }
        size = self._file.seek(0, os.SEEK_END)
        if size:
            self._end_last_line()
        return offsets

    def _end_last_line(self) -> None:
        self._file.seek(-1, os.SEEK_END)
        if self._file.read() == b"\n":
            return
        self._file.seek(0)
        begins = 0
        for line in self._file:
            if unfinished(line):
                self._file.truncate(begins)
                return
            begins += len(line)
        self._file.write(b"\n")
        self._file.flush()


def _locked(path: Path) -> BinaryIO:
    import portalocker

    try:
        file = path.open("r+b" if path.exists() else "x+b")
    except FileExistsError:  # made by another one just now
        file = path.open("r+b")
    except OSError as error:
        raise UsageError(
            f"{path}: {translated(error.strerror or str(error))}"
        ) from None
    try:
        portalocker.lock(file, portalocker.LOCK_EX | portalocker.LOCK_NB)
    except portalocker.LockException:
        file.close()
        raise UsageError(
            _(
                "{path} is being written by another process: wait for it,"
                " or choose another file"
            ).format(path=path)
        ) from None
    return file


def check_conditions(run: Run, now: Run, path: Path) -> None:
    """Raise UsageError if the recorded run was made under other conditions than a run
    made now would be: then it cannot stand for it."""
    left, right = (
        {
            "protocol": each.protocol,
            "tools": each.tools,
            "settings": {
                name: value
                for name, value in each.settings.items()
                if name not in ("timeout", "retries")
            },
            "versions": each.versions,
        }
        for each in (run, now)
    )
    for place, was, is_now in differences(left, right):
        name = place.removeprefix("$.").removeprefix("settings.")
        raise UsageError(
            _(
                "{path} holds runs with {name} {was}, now it is {is_now}:"
                " choose another file, or ask anew with --again"
            ).format(path=path, name=name, was=_text(was), is_now=_text(is_now))
        )
