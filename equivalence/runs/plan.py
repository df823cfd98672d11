"""The plan: who is asked what, in which order, and how often."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Asked
from equivalence.runs.redaction import NOTHING, Redaction

if TYPE_CHECKING:
    from equivalence.settings import Settings

CLOCK = datetime(2026, 1, 5, 9, 30, tzinfo=timezone(timedelta(hours=8)))
"""What tools that ask for the time get under the judge, so that runs can be compared.
"""

Conversation = Sequence[str]
"""Questions asked one after another; each sees what was said before it."""


@dataclass(frozen=True)
class Plan:
    """Implementations, questions, and the conditions under which they are asked."""

    implementations: Sequence[Implementation]
    conversations: Sequence[Conversation]
    settings: Settings
    tools: Sequence[Callable[..., Any]] = ()
    tools_name: str = ""
    repeats: int = 1
    note: str = ""
    redaction: Redaction = NOTHING
    """What is taken out of every run."""
    jobs: int = 1
    """How many runs are under way at once."""
    dask: str = ""
    """The address of a Dask cluster that asks; "" asks on this machine."""
    shard: tuple[int, int] = (1, 1)
    """The third of eight parts is (3, 8). A part has whole conversations, with all
    implementations; their numbers are those of the whole plan."""

    def __post_init__(self) -> None:
        """Tell apart what has the same name, and fix the clock. Raise UsageError if
        two questions would have one record."""
        object.__setattr__(self, "implementations", _named(self.implementations))
        if self.settings.clock is None:
            fixed = self.settings.model_copy(update={"clock": CLOCK})
            object.__setattr__(self, "settings", fixed)

        told: dict[Asked, Asked] = {}
        for _number, _one, asked in self.runs() if self.redaction else ():
            written = self.redaction.asked(asked)
            if told.setdefault(written, asked) != asked:
                raise UsageError(
                    _(
                        "redact makes two questions one, {question!r}: ask them in"
                        " other words, so that their records can be told apart"
                    ).format(question=written.question)
                )

    def __len__(self) -> int:
        """How many runs it takes."""
        return sum(1 for _ in self.runs())

    def runs(self) -> Iterator[tuple[int, Implementation, Asked]]:
        """Yield who is asked what, in order, each with a number of its own, from 1. A
        question that stands twice after the same history is asked once.

        The implementations take turns at each question, and in each conversation
        another one goes first: replies change with time and with what a server has just
        computed (its prompt cache is cold for whoever comes first), and that must not
        fall to one of them.
        """
        number, count = 1, len(self.implementations)
        part, parts = self.shard
        beginnings: dict[tuple[int, str], int] = {}
        for repeat in range(self.repeats):
            seen: set[tuple[str, ...]] = set()
            for first, conversation in enumerate(self.conversations, repeat):
                for turn, question in enumerate(conversation):
                    history = tuple(conversation[:turn])
                    if (*history, question) in seen:
                        continue
                    seen.add((*history, question))
                    begins = repeat, conversation[0]
                    in_order = beginnings.setdefault(begins, len(beginnings))
                    if in_order % parts != part - 1:
                        number += count
                        continue
                    for place in range(count):
                        at = (first + place) % count
                        one = self.implementations[at]
                        asked = Asked(one.name, question, history, repeat)
                        yield number + at, one, asked
                    number += count


def _named(implementations: Sequence[Implementation]) -> list[Implementation]:
    """The implementations, each with a name of its own: stage3, stage3 (2)."""
    seen: dict[str, int] = {}
    named = []
    for one in implementations:
        seen[one.name] = times = seen.get(one.name, 0) + 1
        named.append(replace(one, name=f"{one.name} ({times})") if times > 1 else one)
    return named


def read_questions(path: Path) -> list[Conversation]:
    """Return the conversations of a file, one a line: a question as plain text or JSON
    string, or a JSON list of questions that follow each other. Raises UsageError if a
    line is neither, naming it."""
    found: list[Conversation] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            _("{path} is not UTF-8: {error}").format(path=path, error=error)
        ) from None
    except OSError as error:
        raise UsageError(f"{path}: {translated(error.strerror)}") from None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            value = json.loads(line) if line[0] in '["' else line
        except ValueError as error:
            raise UsageError(
                _("{path}, line {number}: {error}").format(
                    path=path, number=number, error=error
                )
            ) from None
        turns = value if isinstance(value, list) else [value]
        if not turns or not all(isinstance(q, str) and q.strip() for q in turns):
            raise UsageError(
                _("{path}, line {number}: a question must be a text").format(
                    path=path, number=number
                )
            )
        found.append(turns)
    if not found:
        raise UsageError(_("{path} holds no question").format(path=path))
    return found
