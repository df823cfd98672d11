"""Files of runs side by side: which run of which question stands where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.runs.files import RunIndex
from equivalence.runs.record import Asked, Run
from equivalence.traces import run_index

Name = tuple[str, int]
"""An implementation, and the number of its file where it is another one than in the
other files; 0 where all files mean the same by it."""
Question = tuple[str, ...]
"""The earlier questions, the question, and which try it is."""


@dataclass
class Index:
    """The runs of several files by question; none of them is held in memory."""

    files: list[RunIndex]
    questions: dict[Question, dict[Name, tuple[int, Asked]]] = field(
        default_factory=dict
    )
    """The runs of each question: the number of the file, and which run of it."""
    labels: dict[Name, str] = field(default_factory=dict)
    """What heads each run, in the order of the files; the first one of a question is
    the baseline of its others."""

    def runs(self, question: Question) -> Iterator[tuple[str, Run]]:
        """Read the runs of one question, with their labels."""
        places = self.questions[question]
        for name, label in self.labels.items():
            if name in places:
                file, asked = places[name]
                yield label, self.files[file].read(asked)

    def close(self) -> None:
        """Let the files go."""
        for file in self.files:
            file.close()


def index(paths: Sequence[Path]) -> Index:
    """Return the index of the files. Files that hold different questions of one
    implementation are parts of one whole; where two hold the same ones, its name is
    told apart by the file. Raises UsageError if a file holds no run or cannot be read.
    """
    paths = list(dict.fromkeys(paths))
    found = Index([])
    for path in paths:
        found.files.append(file := run_index([path]))
        if not file.places:
            raise UsageError(_("{path} holds no run").format(path=path))
    times = Counter(asked for file in found.files for asked in file.places)
    twice = {asked.implementation for asked, count in times.items() if count > 1}
    names: dict[Name, None] = {}
    for number, file in enumerate(found.files):
        for asked in file.places:
            name = asked.implementation, number if asked.implementation in twice else 0
            names.setdefault(name)
            question = (*asked.history, asked.question, str(asked.repeat))
            found.questions.setdefault(question, {})[name] = number, asked
    found.labels = _labels(list(names), twice, paths)
    return found


def _labels(
    names: Sequence[Name], twice: set[str], paths: Sequence[Path]
) -> dict[Name, str]:
    """The function alone of a module:function, and the file where a name stands for
    several, as long as that tells them apart."""
    alike = len({path.name for path in paths}) < len(paths)
    ends = [
        _(" in {file}").format(file=paths[file] if alike else paths[file].name)
        if name in twice
        else ""
        for name, file in names
    ]
    shortened = [re.sub(r"^[\w.]+:(\w+)$", r"\1", name) for name, _file in names]
    once = Counter(zip(shortened, ends, strict=True))
    return {
        name: (label if once[label, end] == 1 else name[0]) + end
        for name, label, end in zip(names, shortened, ends, strict=True)
    }
