"""A process that has imported the libraries, and forks one for each command of a page.

It stands beside blocks/, not in it: there is no module `cog` in a forked process.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import traceback
from pathlib import Path

LIBRARIES = ["langgraph.prebuilt", "langchain.agents", "langchain_openai", "openai"]
LIBRARIES += ["aiohttp", "pydantic_settings", "rich.console", "starlette", "uvicorn"]

forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(LIBRARIES)


def in_child(
    words: list[str],
    folder: Path,
    environment: dict[str, str],
    said: str,
    printed: Path,
) -> None:
    """Do in this process what `python WORDS` does in the folder."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    for number in (1, 2):
        os.dup2(out, number)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    read, write = os.pipe()
    os.write(write, said.encode())
    os.close(write)
    sys.stdin = open(read, encoding="utf-8")  # noqa: SIM115
    sys.path.insert(0, str(folder))
    code = 0
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)
