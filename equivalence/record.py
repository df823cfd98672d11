"""The run record: what one implementation did with one question, as JSON Lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from usage import UsageError

SCHEMA = "agent-run/1"

STATUSES = {
    "completed": "answered with a text the user can read",
    "step_limit": "the budget of model calls ended first",
    "empty": "the last reply had no text",
    "truncated": "the last reply was cut off by the output limit",
    "refused": "the model or a filter refused to answer",
    "malformed": "the last reply was not usable, by its finish_reason or its calls",
    "model_error": "the endpoint failed",
    "failed": "the implementation itself raised",
}


@dataclass
class Step:
    """One tool call: what the model asked for and what came of it."""

    turn: int
    """Number of the model call that asked for it, from 1."""
    tool: str
    arguments: Any
    """As the model sent them, parsed; the text itself where it does not parse."""
    arguments_text: str
    """As the model wrote them, to the letter."""
    result: str | None
    """What the tool gave back, before any cut; the refusal where it was not executed;
    None where nothing was seen of it."""
    ok: bool | None
    """Whether the tool did its work; None where the tools could not be watched."""
    order: int | None = None
    """Place in the order of execution, from 0; None where it was not executed."""
    ungrounded: list[dict[str, Any]] = field(default_factory=list)
    """The numbers of the arguments that nobody had said before, as grounding finds
    them: number, argument, the real value, the turn it arrived in, what the answer made
    of it."""


@dataclass
class Run:
    """One implementation, one question, one try."""

    implementation: str
    question: str
    repeat: int = 0
    protocol: str = "tool_calls"
    """How the model asks for tools: by "tool_calls", or in its "text"."""
    history: list[str] = field(default_factory=list)
    """The earlier questions of the conversation."""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    status: str = "failed"
    answer: str = ""
    unread: list[int] = field(default_factory=list)
    """The model calls, from 1, whose reply could not be read as the model wrote it."""
    steps: list[Step] = field(default_factory=list)
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def model_calls(self) -> list[dict[str, Any]]:
        """The exchanges less the failed attempts that the client repeated."""
        repeated = [after.get("attempt") for after in self.exchanges[1:]]
        return [
            exchange
            for exchange, again in zip_longest(self.exchanges, repeated)
            if not again
        ]

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Run:
        """ValueError where the data is not a run record of this schema."""
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise UsageError(f'no run record: "schema" is not "{SCHEMA}"')
        try:
            fields = {key: value for key, value in data.items() if key != "schema"}
            fields["steps"] = [Step(**step) for step in fields.get("steps", ())]
            return cls(**fields)
        except TypeError as error:
            raise UsageError(f"no run record: {error}") from None


def append(path: Path, run: Run) -> None:
    """Add one line to the file and flush it to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    end_last_line(path)
    line = json.dumps(run.to_json(), ensure_ascii=False) + "\n"
    with path.open("a", encoding="utf-8", errors="replace", newline="\n") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Run]:
    """Return the runs of a file. A last line cut off by a crash is passed over;
    ValueError names any other line that is not a run record."""
    return list(_parsed(path, whole_lines(path)))


def whole_lines(path: Path) -> list[str]:
    """Return the lines that are not blank, less a last one that a crash cut off."""
    text = path.read_text(encoding="utf-8", errors="replace")
    *lines, last = text.split("\n")  # not splitlines: a text may hold U+2028
    if _is_json(last):
        lines.append(last)
    return [line for line in lines if line.strip()]


def _parsed(path: Path, lines: Iterable[str]) -> Iterator[Run]:
    for number, line in enumerate(lines, 1):
        try:
            yield Run.from_json(json.loads(line))
        except ValueError as error:
            raise UsageError(f"{path}, record {number}: {error}") from None


def end_last_line(path: Path) -> None:
    """Let the next record begin a line; one that a crash cut off is dropped."""
    with path.open("ab+") as file:
        if not file.tell():
            return
        file.seek(-1, os.SEEK_END)
        if file.read() == b"\n":
            return
        file.seek(0)
        before, newline, last = file.read().rpartition(b"\n")
        if _is_json(last):
            file.write(b"\n")
        else:
            file.truncate(len(before + newline))


def _is_json(text: str | bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
