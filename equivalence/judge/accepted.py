"""Differences that somebody knows and accepts, as a file lists them.

It is TOML, one entry a difference, each with a reason; of the other fields those that
stand there must all be those of the verdict. In texts, * stands for anything:

    [[accepted]]
    reason = "the new client sends no temperature"
    left = "old"                  # names of the implementations
    right = "new"
    question = "*weather*"
    verdict = "different"         # or "inconclusive", where both fail alike
    cause = "request"
    path = "$.temperature"
    error = "*no such model*"     # of both runs, where they failed
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from equivalence.errors import UsageError
from equivalence.judge.compare import Verdict
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs.record import Run

FIELDS = ("left", "right", "question", "verdict", "cause", "path", "error")


@dataclass
class Accepted:
    """The accepted differences of a file, and which of them have occurred."""

    entries: list[dict[str, str]] = field(default_factory=list)
    occurred: set[int] = field(default_factory=set)

    def __call__(self, verdict: Verdict, left: Run, right: Run) -> Verdict:
        """Return the verdict, as accepted with its reason where an entry fits it."""
        if verdict.verdict in ("equivalent", "accepted"):
            return verdict
        place = verdict.divergence
        values = {
            "left": verdict.left,
            "right": verdict.right,
            "question": verdict.question,
            "verdict": verdict.verdict,
            "cause": place.cause if place else "",
            "path": place.path if place else "",
            "error": left.error if left.error == right.error else "",
        }
        for number, entry in enumerate(self.entries):
            if all(
                _fits(entry[name], values[name] or "")
                for name in FIELDS
                if name in entry
            ):
                self.occurred.add(number)
                return replace(verdict, verdict="accepted", reason=entry["reason"])
        return verdict

    @property
    def absent(self) -> list[str]:
        """The reasons of the entries that have not occurred."""
        return [
            entry["reason"]
            for number, entry in enumerate(self.entries)
            if number not in self.occurred
        ]


def read_accepted(path: Path | None) -> Accepted:
    """Return the accepted differences of the file; none without one. Raises UsageError
    if it is no such file."""
    if path is None:
        return Accepted()
    import tomllib

    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: {translated(error.strerror)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            _("{path} is not TOML in UTF-8: {error}").format(path=path, error=error)
        ) from None
    entries = data.get("accepted")
    if not isinstance(entries, list) or set(data) != {"accepted"}:
        raise UsageError(
            _("{path} holds no list of [[accepted]] differences").format(path=path)
        )
    for number, entry in enumerate(entries, 1):
        _check(path, number, entry)
    return Accepted(entries)


def _check(path: Path, number: int, entry: Any) -> None:
    where = _("{path}, accepted difference {number}").format(path=path, number=number)
    if not isinstance(entry, dict) or not entry.get("reason"):
        raise UsageError(_("{where}: it needs a reason").format(where=where))
    for name, value in entry.items():
        if name not in (*FIELDS, "reason"):
            raise UsageError(
                _("{where}: no field is named {name!r}: {fields}").format(
                    where=where, name=name, fields=", ".join(FIELDS)
                )
            )
        if not isinstance(value, str):
            raise UsageError(
                _("{where}: {name} must be a text").format(where=where, name=name)
            )
    if len(entry) == 1:
        raise UsageError(
            _("{where}: it says nothing of the difference").format(where=where)
        )


def _fits(pattern: str, value: str) -> bool:
    """Whether the value fits; in a path, brackets are themselves."""
    return fnmatchcase(value, pattern.replace("[", "[[]"))
