"""From files of run records to groups: the runs of one question, side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equivalence.errors import UsageError
from equivalence.runs import record
from equivalence.runs.grounding import note
from equivalence.runs.record import Run


@dataclass
class Group:
    """The runs of one question; the first is the measure of the others."""

    runs: dict[str, Run]
    """By the name that heads their column."""


def groups(paths: Sequence[Path]) -> Iterator[Group]:
    """Yield the runs by question, history and try. Of runs recorded twice in a file
    the later one counts; a name that is in two files is told apart by the file."""
    found: dict[tuple[Any, ...], dict[tuple[str, Path], Run]] = {}
    for path in dict.fromkeys(paths):
        runs = record.read(path)
        if not runs:
            raise UsageError(f"{path} holds no run")
        for number, run in enumerate(runs, 1):
            if wrong := _malformed(run):
                raise UsageError(f"{path}, record {number}: no run record: {wrong}")
            asked = (*run.history, run.question, run.repeat)
            found.setdefault(asked, {})[run.implementation, path] = run
    order = list(dict.fromkeys(key for runs in found.values() for key in runs))
    labels = _labels(order)
    for asked_runs in found.values():
        yield Group(
            {labels[key]: asked_runs[key] for key in order if key in asked_runs}
        )


def _labels(keys: Sequence[tuple[str, Path]]) -> dict[tuple[str, Path], str]:
    """What heads the columns: the function alone of a module:function, and the file
    where a name stands in several, as long as that tells them apart."""
    names = Counter(name for name, _ in keys)
    files = {path for _, path in keys}
    alike = len({path.name for path in files}) < len(files)
    ends = [
        "" if names[name] == 1 else f" in {path if alike else path.name}"
        for name, path in keys
    ]
    shortened = [re.sub(r"^[\w.]+:(\w+)$", r"\1", name) for name, _ in keys]
    once = Counter(zip(shortened, ends, strict=True))
    return {
        key: (short if once[short, end] == 1 else key[0]) + end
        for key, short, end in zip(keys, shortened, ends, strict=True)
    }


def _malformed(run: Run) -> str:
    """Which field of the record is not what it should be, "" where all are."""
    expected = {
        str: ("implementation", "question", "protocol", "status", "answer"),
        int: ("repeat",),
        dict: ("settings", "versions"),
        list: ("history", "steps", "exchanges", "warnings"),
    }
    for kind, names in expected.items():
        for name in names:
            if not isinstance(getattr(run, name), kind):
                return f"{name} is not a {kind.__name__}"
    if not all(isinstance(each, str) for each in [*run.history, *run.warnings]):
        return "history or warnings hold something else than text"
    if not isinstance(run.error, str | None):
        return "error is not a str"
    for step in run.steps:
        parts = (step.tool, step.arguments_text, step.result or "")
        numbers = (step.turn, step.order or 0, step.ok or 0)
        if not all(isinstance(n, int) for n in numbers) or not all(
            isinstance(part, str) for part in parts
        ):
            return "a step has a field of the wrong type"
        if not _readable(step.ungrounded):
            return "a step has an ungrounded number that is not as it should be"
    for each in run.exchanges:
        if not isinstance(each, dict) or not {"request", "reply", "status"} <= set(
            each
        ):
            return "an exchange lacks request, reply or status"
        if not isinstance(each.request, dict):
            return "a request is not an object"
        each.setdefault("repairs", [])
        each.setdefault("ms", None)
        repairs = each.repairs
        if not isinstance(repairs, list) or not isinstance(each.ms, int | float | None):
            return "repairs or ms of an exchange are of the wrong type"
    return ""


def _readable(ungrounded: Any) -> bool:
    """Whether the ungrounded numbers of a step are as `grounding.mark` enters them."""
    try:
        texts = [part for each in ungrounded for part in (each["argument"], note(each))]
        texts += [each["number"] for each in ungrounded]
    except (KeyError, TypeError):
        return False
    return isinstance(ungrounded, list) and all(isinstance(t, str) for t in texts)
