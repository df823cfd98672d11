"""An exercise: its number, its folder, its texts, and how it is found by either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from equivalence.errors import UsageError
from exercises.texts import TEXTS

if TYPE_CHECKING:
    from exercises.checking import Checked

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Exercise:
    """One exercise. Its folder holds start.py, solution.py and check.py."""

    number: str
    name: str
    chapter: str
    """The page that ends with it, without its ending: docs/CHAPTER.md."""

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def start(self) -> Path:
        return self.folder / "start.py"

    @property
    def solution(self) -> Path:
        return self.folder / "solution.py"

    @property
    def title(self) -> str:
        return TEXTS[self.name]["title"]

    @property
    def task(self) -> str:
        return TEXTS[self.name]["task"]

    @property
    def hint(self) -> str:
        return TEXTS[self.name]["hint"]

    @property
    def tries(self) -> str:
        """What the checker tries, in one sentence."""
        return TEXTS[self.name]["tries"]

    def checker(self) -> Callable[[Checked], None]:
        """Return its check, which raises Failed with the reason."""
        module = import_module(f"exercises.{self.name}.check")
        return module.check  # type: ignore[no-any-return]


EXERCISES = (
    Exercise("0", "first_tool", "0-what-is-an-agent"),
    Exercise("1", "ask_a_person", "1-prebuilt"),
    Exercise("2", "return_direct", "2-stategraph"),
    Exercise("3a", "serial", "3-pure-loop"),
    Exercise("3b", "together", "3-pure-loop"),
    Exercise("3c", "async_twin", "3-pure-loop"),
    Exercise("3d", "order", "3-pure-loop"),
    Exercise("4a", "window", "4-mini-framework"),
    Exercise("4b", "dependencies", "4-mini-framework"),
    Exercise("5", "label", "5-text-react"),
    Exercise("6", "plant", "equivalence"),
    Exercise("7", "survive", "differences"),
)
"""In reading order."""


def find(wanted: str) -> Exercise:
    """Return the exercise of that number or name. Raises UsageError if there is none,
    or if the number is that of a chapter with several."""
    for exercise in EXERCISES:
        if wanted.lower() in (exercise.number, exercise.name):
            return exercise
    several = [e for e in EXERCISES if wanted and e.number.startswith(wanted)]
    if several:
        names = ", ".join(f"{each.number} {each.name}" for each in several)
        raise UsageError(TEXTS["any"]["several"].format(wanted=wanted, names=names))
    names = ", ".join(f"{each.number} {each.name}" for each in EXERCISES)
    raise UsageError(TEXTS["any"]["no_exercise"].format(wanted=wanted, names=names))


def markdown() -> str:
    """Return the list of the exercises as a table of Markdown."""
    head = ["| | exercise | task | after |", "| --- | --- | --- | --- |"]
    rows = [
        f"| {e.number} | [{e.name}]({e.name}/start.py) | {e.title} | {e.chapter} |"
        for e in EXERCISES
    ]
    return "\n".join([*head, *rows])
