"""Commands and Python code, and what they print when they are run now.

A page's commands run one after another in a folder of the page's own, whose entries are
links to those of the project. So a command may write a file that the next one reads,
nothing is left behind, and a .env of yours cannot get into a page.

Each command has a process of its own, forked from one that has imported the libraries
already: a page with twenty commands does not import LangChain twenty times.
"""

from __future__ import annotations

import atexit
import functools
import os
import platform
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cog
from forked import forks, in_child

from blocks.page import ROOT, fence, importable, language, said, table, value

WIDTH = 88
LIMIT = 300
"""Seconds that a command may take."""

HIDDEN = (".env", ".git", ".venv", ".venv-articles", ".venv-npm", "my_agent.py")
"""What a page's folder does not have."""

REMOVED = ("LLM_", "OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LANGGRAPH_", "PYTHON")
"""Beginnings of the variables that a page's commands do not see."""


def console(
    command: str,
    *,
    exit_code: int = 0,
    files: dict[str, str] | None = None,
    head: int = 0,
    tail: int = 0,
    without: str = "",
) -> None:
    """Write a console block: the command, and what it prints when it is run now.

    `echo WORD |` may stand in front and is its input, NAME=VALUE sets a variable.
    `files` are put into the page's folder first, {name there: path in the project}.
    `head` and `tail` keep so many lines at the start and the end; a cut says how long
    it is. A line that has `without` in it is left out: it is another one on each
    machine. Raises AssertionError if the command ends with another exit code.
    """
    for name, path in (files or {}).items():
        shutil.copy(ROOT / path, _folder() / name)
    lines = _printed(command, exit_code)
    if without:
        varies = said("[… this line varies]")
        lines = [varies if without in line else line for line in lines]
    if (head or tail) and len(lines) > head + tail + 1:
        cut = said("[… {count} more lines]").format(count=len(lines) - head - tail)
        lines = [*lines[:head], cut, *lines[len(lines) - tail :]]
    fence("console", [f"$ {command}", *lines])


def comparison(command: str, *, exit_code: int = 0, drawn: bool = False) -> None:
    """Write what `python -m equivalence run` prints. Its table of traces becomes one of
    Markdown: the box of a terminal is crooked in a browser where it holds Chinese.
    `drawn`: a picture above the block has shown them already."""
    importable()
    from equivalence.runs.files import read_runs

    kept = _folder() / "_traces.jsonl"
    lines = _printed(f"{command} --out {kept.name}", exit_code)
    runs = list(read_runs(kept))
    kept.unlink()
    edges = [i for i, line in enumerate(lines) if line[:1] in ("┏", "└")]
    above, below = (
        "[… the traces: the picture above]",
        "[… the traces: the table below]",
    )
    lines[edges[0] : edges[-1] + 1] = [said(above if drawn else below)]
    fence("console", [f"$ {command}", *lines])
    if not drawn:
        cog.outl()
        traces(runs)


def traces(runs: Sequence[Any]) -> None:
    """Write the traces of one question as a table: columns are implementations, those
    with the same trace share one; rows are turns, and the last one is the end."""
    joined: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        joined.setdefault(tuple(turns(run)), []).append(run.implementation)
    depth = max(map(len, joined))
    rows = [
        (
            number + 1,
            *(trace[number] if number < len(trace) else "" for trace in joined),
        )
        for number in range(depth)
    ]
    table((said("turn"), *(" = ".join(names) for names in joined.values())), rows)


def turns(run: Any) -> Iterator[str]:
    """Yield the turns of a run for the cells of a table, the last one its end."""
    from equivalence.runs.words import call, ending, mark, ungrounded

    for number in range(1, len(run.model_calls) + 1):
        steps = [step for step in run.steps if step.turn == number]
        lines = []
        for step in steps:
            lines.append(value(call(step)))
            lines += [ungrounded(each["number"]) for each in step.ungrounded]
            lines.append(f"{mark(step)} {_cell(step.result or '')}")
        if lines:
            yield "<br>".join(lines)
    yield _cell(ending(run))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _printed(command: str, exit_code: int) -> list[str]:
    code, output = run(command)
    assert code == exit_code, f"{command}: {code}, not {exit_code}\n{output}"
    lines = [line.rstrip() for line in output.splitlines()]
    lines = [line for line in lines if not _OTHER_PYTHON.search(line)]
    return "\n".join(lines).strip("\n").splitlines()


_OTHER_PYTHON = re.compile(
    rf"\bpython (?:是 )?\d+\.\d+\.\w+\b.*\b{re.escape(platform.python_version())}\b"
)
"""A line that says that a recording was made with another Python than this one. A page
says the same on each."""


def run(command: str) -> tuple[int, str]:
    """Run a command in the page's folder; return its exit code and what it printed."""
    said, _, rest = command.rpartition(" | ")
    stdin = f"{said.removeprefix('echo ')}\n" if said.startswith("echo ") else ""
    words = shlex.split(rest)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(REMOVED)}
    environment |= {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "PYTHONUTF8": "1"}
    environment["LLM_LANG"] = language()
    here = Path(sys.executable).parent  # a command may start `python` itself
    environment["PATH"] = f"{here}{os.pathsep}{environment.get('PATH', '')}"
    while re.match(r"\w+=", words[0]):
        name, _, text = words.pop(0).partition("=")
        environment[name] = text
    assert words.pop(0) == "python", f"only python is run here: {command}"
    printed = _folder() / "_printed"
    child = forks.Process(
        target=in_child, args=(words, _folder(), environment, stdin, printed)
    )
    child.start()
    child.join(LIMIT)
    if child.exitcode is None:
        child.kill()
        child.join()
    output = printed.read_text(encoding="utf-8")
    printed.unlink()
    return child.exitcode or 0, output


def python(source: str) -> None:
    """Write Python code as a reader would type it, and below it what it prints."""
    source = source.strip("\n")
    script = _folder() / "_typed.py"
    script.write_text(source + "\n", encoding="utf-8")
    output = _printed(f"python {script.name}", 0)
    script.unlink()
    fence("python", source.splitlines())
    if output:
        cog.outl()
        fence("text", output)


def probe(recording: str) -> None:
    """Write a console block: what the probe prints in front of an endpoint that answers
    as the `--json` document of an earlier probe says it did."""
    importable()
    sys.path.insert(0, str(ROOT / "tests"))
    from probed import Recorded

    from equivalence.gateway import Gateway

    endpoint = Recorded(ROOT / recording)
    model, url = endpoint.document["model"], endpoint.document["endpoint"]
    with Gateway(endpoint, repair=False) as server, server.open_run() as behind:
        command = f"python -m equivalence probe --base-url {behind.url} --model {model}"
        _, output = run(command)
    lines = [command, *output.strip("\n").splitlines()]
    lines = [line.rstrip().replace(behind.url, url) for line in lines]
    fence("console", [f"$ {lines[0]}", *lines[1:]])


@functools.cache
def _folder_of(page: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="page-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for entry in ROOT.iterdir():
        if entry.name not in HIDDEN:
            (folder / entry.name).symlink_to(entry)
    return folder


def _folder() -> Path:
    """The folder in which the commands of this page run."""
    return _folder_of(str(cog.inFile))
