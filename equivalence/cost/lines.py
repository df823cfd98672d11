"""How many lines of code a reader has to understand."""

from __future__ import annotations

import ast
from pathlib import Path

APART = ("__init__.py", "__main__.py")
"""Files without a lesson: the same few lines in every stage."""


def code_lines(text: str) -> int:
    """Return the number of lines that are neither blank nor only comment nor
    docstring."""
    silent: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in silent
        for number, line in enumerate(text.splitlines(), 1)
    )


def stage_lines(folder: Path, *, without: tuple[str, ...] = ()) -> dict[str, int]:
    """Return the lines of code of each file of a stage: all that is its own, and so all
    that a reader of this stage must know beside the libraries it stands on."""
    return {
        file.name: code_lines(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.py"))
        if file.name not in (*APART, *without)
    }


def implementation_lines(file: Path, root: Path, others: tuple[Path, ...] = ()) -> int:
    """Return the lines of code that are an implementation's own: its file, or all of
    its folder where that is no project's `root`, less the files of the `others`."""
    if file.parent == root:
        return code_lines(file.read_text(encoding="utf-8"))
    apart = tuple(x.name for x in others if x.parent == file.parent and x != file)
    return sum(stage_lines(file.parent, without=apart).values())
