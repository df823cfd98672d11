"""Files of runs, indexed: which run of which question stands where.

A run is held by its file and offset, never by itself, so that what a page needs of
memory does not grow with what the runs hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from equivalence.errors import UsageError
from equivalence.runs.files import read_run, runs_with_offsets
from equivalence.runs.record import Run

Name = tuple[str, int]
"""An implementation, and the number of the file in which it is another one than in the
other files; 0 where all files mean the same by it."""


@dataclass
class Index:
    """The runs of the files by question, history and repeat."""

    paths: list[Path]
    asked: list[tuple[str, ...]] = field(default_factory=list)
    """Earlier questions, question and repeat of each question."""
    places: list[dict[Name, tuple[int, int]]] = field(default_factory=list)
    """For each question: the number of the file and the offset of each run."""
    labels: dict[Name, str] = field(default_factory=dict)
    """What heads each run, in the order of the files; the first one of a question is
    the baseline of its others."""

    def runs(self, number: int) -> Iterator[tuple[str, Run]]:
        """Read the runs of one question, by its number from 0, with their labels."""
        places = self.places[number]
        for name, label in self.labels.items():
            if name in places:
                file, offset = places[name]
                yield label, read_run(self.paths[file], offset)


def index(paths: Sequence[Path]) -> Index:
    """Return the index of the files. Of runs recorded twice in a file the later one
    counts; files that hold different questions of one implementation are parts of one
    whole, and in those that hold the same ones its name is told apart by the file.
    Raises UsageError if a file holds no run or cannot be read."""
    paths = list(dict.fromkeys(paths))
    asked: dict[tuple[str, ...], dict[Name, tuple[int, int]]] = {}
    names: dict[Name, None] = {}
    twice: set[str] = set()
    for number, path in enumerate(paths):
        empty = True
        for offset, run in runs_with_offsets(path):
            empty = False
            key = (*run.history, run.question, str(run.repeat))
            runs = asked.setdefault(key, {})
            name = run.implementation, number
            if name not in runs and any(n == name[0] for n, _ in runs):
                twice.add(name[0])
            runs[name] = number, offset
            names.setdefault(name)
        if empty:
            raise UsageError(f"{path} holds no run")
    joined = Index(paths)
    for key, runs in asked.items():
        joined.asked.append(key)
        joined.places.append(
            {_joined(name, twice): place for name, place in runs.items()}
        )
    joined.labels = _labels(
        list(dict.fromkeys(_joined(name, twice) for name in names)), twice, paths
    )
    return joined


def _joined(name: Name, twice: set[str]) -> Name:
    return name if name[0] in twice else (name[0], 0)


def _labels(
    names: Sequence[Name], twice: set[str], paths: Sequence[Path]
) -> dict[Name, str]:
    """The function alone of a module:function, and the file where a name stands for
    several, as long as that tells them apart."""
    alike = len({path.name for path in paths}) < len(paths)
    ends = [
        f" in {paths[file] if alike else paths[file].name}" if name in twice else ""
        for name, file in names
    ]
    shortened = [re.sub(r"^[\w.]+:(\w+)$", r"\1", name) for name, _ in names]
    once = Counter(zip(shortened, ends, strict=True))
    return {
        name: (label if once[label, end] == 1 else name[0]) + end
        for name, label, end in zip(names, shortened, ends, strict=True)
    }
