"""What the pages of README and docs/ include: code by symbol, real output, counts.

The pages hold cog blocks that call these functions; `make docs` fills them in, and
`make check` fails where a page says something else than the code does.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from pathlib import Path

import cog

ROOT = Path(__file__).resolve().parent.parent


def console(
    command: str, *, exit_code: int = 0, head: int = 0, width: int = 88
) -> None:
    """Write a console block: the command, and what it prints when it is run now.

    `head` cuts the output after so many lines and says so. AssertionError where the
    command ends with another exit code than `exit_code`.
    """
    words = shlex.split(command)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LLM_")}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if words[0] == "python":
        words[0] = sys.executable
    environment |= {"COLUMNS": str(width), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == exit_code, f"{command}: {done.returncode}\n{done.stdout}"
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    if head and len(lines) > head:
        lines = [*lines[:head], f"[… {len(lines) - head} more lines]"]
    cog.outl("```console")
    cog.outl(f"$ {command}")
    for line in lines:
        cog.outl(line)
    cog.outl("```")


def code(path: str, *symbols: str) -> None:
    """Write the source of the symbols of a file, or the whole file without any, with a
    link to the lines."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    parts = []
    places = []
    for symbol in symbols:
        first, last = place(path, symbol)
        parts.append("\n".join(lines[first - 1 : last]))
        places.append(link(path, symbol))
    cog.outl("```python")
    cog.outl("\n\n\n".join(parts) if symbols else text.strip("\n"))
    cog.outl("```")
    cog.outl(f"from {', '.join(places) or f'[{path}](../{path})'}")


def place(path: str, symbol: str) -> tuple[int, int]:
    """Return the first and last line of a top-level symbol; ValueError: there is none."""
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names = {
            getattr(node, "name", None),
            *(getattr(t, "id", None) for t in targets),
        }
        if symbol in names:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(d.lineno for d in decorators)])
            return first, node.end_lineno or first
    raise ValueError(f"{path} has no {symbol}")


def link(path: str, symbol: str, text: str = "") -> str:
    """Return a link to the lines of a symbol, for a page in docs/."""
    first, last = place(path, symbol)
    return f"[{text or f'`{path}#{symbol}`'}](../{path}#L{first}-L{last})"


def lines_of_code(path: str) -> int:
    """Return the number of lines of a file that are neither blank nor only comment nor
    docstring: what a reader has to understand."""
    text = (ROOT / path).read_text(encoding="utf-8")
    silent = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in silent
        for number, line in enumerate(text.splitlines(), 1)
    )


def ladder() -> None:
    """Write the ladder as a table, with counts taken from the files."""
    cog.outl("| stage | what you hold in your hands | lines | what you no longer get |")
    cog.outl("| --- | --- | ---: | --- |")
    for path, holds, gone in LADDER:
        name = path.split("/")[0]
        cog.outl(f"| [{name}]({path}) | {holds} | {lines_of_code(path)} | {gone} |")


LADDER = (
    (
        "stage1_prebuilt/agent.py",
        "a model, tools, a prompt",
        "nothing: loop, nodes and state are the library's",
    ),
    (
        "stage1_prebuilt/successor.py",
        "the same, for `langchain.agents.create_agent`",
        "create_react_agent, which is deprecated",
    ),
    (
        "stage2_stategraph/agent.py",
        "nodes, edges, a state",
        "the prebuilt graph",
    ),
    (
        "stage3_pure_loop/agent.py",
        "a `for` loop over a list of messages",
        "langgraph: checkpoints, streaming modes, interrupts",
    ),
    (
        "stage4_mini_framework/agent.py",
        "dicts and the `openai` client",
        "langchain: message classes, schemas from signatures",
    ),
    (
        "stage5_text_react/agent.py",
        "a prompt and a parser",
        "tool calling: the model writes its calls as text",
    ),
)


def causes() -> None:
    """Write the causes as a table."""
    sys.path.insert(0, str(ROOT))
    from equivalence.compare import CAUSES

    cog.outl("| cause | what it means |")
    cog.outl("| --- | --- |")
    for cause, meaning in CAUSES.items():
        cog.outl(f"| `{cause}` | {meaning} |")
