"""The stages' own lines, to stand beside what they did."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from equivalence.runs.implementation import LADDER

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Snippet:
    """Lines of a source file, with their numbers."""

    file: str
    name: str
    first: int
    lines: list[str]


@dataclass(frozen=True)
class Source:
    """The file of one stage, as it is now; it is read, not imported."""

    name: str
    file: str
    code: str

    def parts(self, names: Iterable[str]) -> list[Snippet]:
        """Return the functions of those names, in the order of the names."""
        lines = self.code.splitlines()
        found = {
            node.name: Snippet(
                self.file,
                node.name,
                node.lineno,
                lines[node.lineno - 1 : node.end_lineno],
            )
            for node in ast.parse(self.code).body
            if isinstance(node, ast.FunctionDef)
        }
        return [found[name] for name in names if name in found]


@functools.cache
def source(name: str) -> Source | None:
    """Return the source of a stage of the ladder; None for others, and where the file
    cannot be read."""
    for implementation in LADDER:
        if implementation.name == name:
            module = implementation.target.partition(":")[0]
            file = f"{module.replace('.', '/')}.py"
            try:
                code = (ROOT / file).read_text(encoding="utf-8")
                ast.parse(code)
            except (OSError, ValueError, SyntaxError):
                return None
            return Source(name, file, code)
    return None
