"""Code of the project: by symbol, as a difference, as a link, as a count of lines."""

from __future__ import annotations

import ast
import difflib
import functools
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import cog

from blocks.page import ROOT, fence, importable, said, table, up

importable()
from equivalence.cost.lines import code_lines, stage_lines  # noqa: E402


def code(path: str, *symbols: str, language: str = "python") -> None:
    """Write the source of the symbols of a file, or the whole file without any, with a
    link to the lines."""
    lines = lines_of(path)
    parts = []
    places = []
    for symbol in symbols:
        first, last = place(path, symbol)
        parts.append("\n".join(lines[first - 1 : last]))
        places.append(link(path, symbol))
    apart = "\n\n\n" if any("\n    " in part for part in parts) else "\n"
    text = apart.join(parts) if symbols else "\n".join(lines)
    fence(language, text.splitlines())
    cog.outl()
    where = said(", ").join(places) or link(path)
    cog.outl(said("from {places}").format(places=where))
    cog.outl()


def say(text: str) -> None:
    """Write prose or a table in which `](path.py#symbol)` leads to the lines of the
    symbol, and `](path.py#symbol « text »)` to its line that has the text in it. (A
    block inside a paragraph would end it.) Raises ValueError if there is no such symbol
    or line."""

    def to_lines(match: re.Match[str]) -> str:
        return link(match[2], match[3], match[1], fragment=match[4] or "")

    pattern = r"\[([^]]+)\]\((\w[\w./]*\.py)#([\w.]+)(?: « (.+?) »)?\)"
    cog.outl(re.sub(pattern, to_lines, text.strip("\n")))


def docstring(path: str) -> None:
    """Write what a file says about itself, as a quotation."""
    text = ast.get_docstring(ast.parse("\n".join(lines_of(path)))) or ""
    text = "\n\n".join(map(said, text.split("\n\n")))
    for line in text.splitlines():
        cog.outl(f"> {line}".rstrip())


def difference(left: str, right: str, *symbols: str) -> None:
    """Write how the code of one file differs from that of another, docstrings of the
    module apart, or how the symbols do, with the count of lines that went and came."""
    sides = [_code_lines(path, symbols) for path in (left, right)]
    lines = list(difflib.unified_diff(*sides, n=2, lineterm=""))[2:]
    fence("diff", [line for line in lines if not line.startswith("@@")])
    cog.outl()
    went, came = (sum(line[:1] == sign for line in lines) for sign in "-+")
    count = said("{went} lines go, {came} come: {left} to {right}")
    cog.outl(count.format(went=went, came=came, left=link(left), right=link(right)))


def _code_lines(path: str, symbols: Sequence[str]) -> list[str]:
    """The lines of the symbols; of the file below its docstring, if there are none."""
    if symbols:
        places = [place(path, symbol) for symbol in symbols]
        return [x for first, last in places for x in lines_of(path)[first - 1 : last]]
    first = ast.parse("\n".join(lines_of(path))).body[0]
    return lines_of(path)[first.end_lineno or 0 :]


def link(path: str, symbol: str = "", text: str = "", *, fragment: str = "") -> str:
    """Return a link to a file, to the lines of a symbol in it, or to the line of the
    symbol that has the fragment in it; for the page that is being made."""
    target = f"{up()}{path}"
    if not symbol:
        return f"[{text or f'`{path}`'}]({target})"
    first, last = place(path, symbol)
    if fragment:
        first = last = _line(path, symbol, fragment)
    lines = f"L{first}" if first == last else f"L{first}-L{last}"
    return f"[{text or f'`{path}#{symbol}`'}]({target}#{lines})"


def place(path: str, symbol: str) -> tuple[int, int]:
    """Return the first and last line of a symbol, "Class.method" for one in a class;
    Raises ValueError if there is none."""
    body: Sequence[Any] = ast.parse("\n".join(lines_of(path))).body
    found, last = None, 0
    for part in symbol.split("."):
        index = next((i for i, node in enumerate(body) if part in _names(node)), None)
        if index is None:
            raise ValueError(f"{path} has no {symbol}")
        found, after = body[index], body[index + 1 : index + 2]
        last = found.end_lineno or 0
        if not hasattr(found, "body") and after and is_text(after[0]):
            last = after[0].end_lineno or 0  # what is said of a constant
        body = getattr(found, "body", ())
    decorators = getattr(found, "decorator_list", [])
    return min([found.lineno, *(d.lineno for d in decorators)]), last


def said_of_fields(path: str, name: str) -> dict[str, str]:
    """Return what a class says of each of its fields, in the text behind it."""
    body = ast.parse("\n".join(lines_of(path))).body
    fields = next(
        node for node in body if isinstance(node, ast.ClassDef) and node.name == name
    ).body
    return {
        name: ast.literal_eval(text.value)
        for field, text in pairwise(fields)
        if isinstance(text, ast.Expr) and is_text(text)
        for name in _names(field)
    }


def is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _names(node: Any) -> Iterator[str]:
    """The names that a statement binds."""
    if name := getattr(node, "name", None):
        yield name
    for target in getattr(node, "targets", [getattr(node, "target", None)]):
        if name := getattr(target, "id", None):
            yield name


def _line(path: str, symbol: str, fragment: str) -> int:
    first, last = place(path, symbol)
    for number in range(first, last + 1):
        if fragment in lines_of(path)[number - 1]:
            return number
    raise ValueError(f"{path}#{symbol} has no line with {fragment!r}")


@functools.cache
def lines_of(path: str) -> list[str]:
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


def lines_of_code(path: str) -> int:
    """Return the lines of code of a file: what a reader has to understand."""
    return code_lines((ROOT / path).read_text(encoding="utf-8"))


def library_lines(module: str, function: str = "") -> int:
    """Return the same count for a module of an installed library, or a function of it;
    the versions are those of requirements.txt."""
    text = Path(find_spec(module).origin).read_text(encoding="utf-8")
    if function:
        nodes = [n for n in ast.parse(text).body if getattr(n, "name", "") == function]
        lines = text.splitlines()[nodes[-1].lineno - 1 : nodes[-1].end_lineno]
        text = "\n".join(lines)
    return code_lines(text)


def cost(folder: str) -> None:
    """Write how many lines a stage is: its loop, and what stands beside it."""
    counted = stage_lines(ROOT / folder)
    rows = [
        (link(f"{folder}/{name}", text=name), lines) for name, lines in counted.items()
    ]
    rows.append((said("together"), sum(counted.values())))
    table((said("file"), said("lines of code")), rows)
