"""Commands and Python code, and what they print when they are run now.

A page's commands run one after another in a folder of the page's own, whose entries are
links to those of the project. So a command may write a file that the next one reads,
nothing is left behind, and a .env of yours cannot get into a page.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cog

from blocks.page import ROOT, fence, importable

WIDTH = 88

HIDDEN = (".env", ".git", ".venv", ".venv-articles")
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
    `head` and `tail` keep so many lines at the start and the end, and the rules of
    comparing, which every run repeats, are cut; a cut says how long it is. A line that
    has `without` in it is left out: it is another one on each machine.
    AssertionError where the command ends with another exit code than `exit_code`.
    """
    for name, path in (files or {}).items():
        shutil.copy(ROOT / path, _folder() / name)
    code, output = run(command)
    assert code == exit_code, f"{command}: {code}, not {exit_code}\n{output}"
    lines = [line.rstrip() for line in output.splitlines()]
    lines = _without_rules("\n".join(lines).strip("\n").splitlines())
    if without:
        varies = "[… this line varies]"
        lines = [varies if without in line else line for line in lines]
    if (head or tail) and len(lines) > head + tail + 1:
        cut = f"[… {len(lines) - head - tail} more lines]"
        lines = [*lines[:head], cut, *lines[len(lines) - tail :]]
    fence("console", [f"$ {command}", *lines])


def run(command: str) -> tuple[int, str]:
    """Run a command in the page's folder; return its exit code and what it printed."""
    said, _, rest = command.rpartition(" | ")
    stdin = f"{said.removeprefix('echo ')}\n" if said.startswith("echo ") else ""
    words = shlex.split(rest)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(REMOVED)}
    environment |= {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    environment |= {"PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"}
    here = Path(sys.executable).parent  # a command may start `python` itself
    environment["PATH"] = f"{here}{os.pathsep}{environment.get('PATH', '')}"
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if words[0] == "python":
        words[0] = sys.executable
    done = subprocess.run(
        words,
        cwd=_folder(),
        env=environment,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def python(source: str) -> None:
    """Write Python code as a reader would type it, and below it what it prints."""
    source = source.strip("\n")
    script = _folder() / "_typed.py"
    script.write_text(source + "\n", encoding="utf-8")
    code, output = run(f"python {script.name}")
    script.unlink()
    assert code == 0, f"{source}\n{output}"
    fence("python", source.splitlines())
    if output.strip():
        cog.outl()
        fence("text", [line.rstrip() for line in output.strip("\n").splitlines()])


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


_TALLY = re.compile(r"\d+ comparisons?:")


def _without_rules(lines: list[str]) -> list[str]:
    """The lines of a judge's report less its rules, which equivalence.md has."""
    if "What is looked past:" not in lines:
        return lines
    start = lines.index("What is looked past:")
    end = next(i for i in range(start, len(lines)) if _TALLY.match(lines[i]))
    cut = f"[… {end - start - 1} lines: the rules of comparing]"
    return [*lines[: start + 1], cut, *lines[end:]]


@functools.cache
def _folder_of(page: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="page-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for entry in ROOT.iterdir():
        if entry.name not in (*HIDDEN, "my_agent.py"):
            (folder / entry.name).symlink_to(entry)
    return folder


def _folder() -> Path:
    """The folder in which the commands of this page run."""
    return _folder_of(str(cog.inFile))
