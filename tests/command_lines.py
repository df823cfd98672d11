"""How tests run a command line, and read what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent


TABLE = (ROOT / "pyproject.toml").read_text("utf-8")
TABLE = TABLE[TABLE.index("[tool.equivalence]") :].replace(
    '"scenarios/', f'"{ROOT.as_posix()}/scenarios/'
)
"""The project's own table, for another folder."""


def environment(**more: str) -> dict[str, str]:
    dropped = ("LLM_", "PYTHONIOENCODING", "PYTHONUTF8")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    usual = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    usual |= {"LLM_RETRIES": "0", "LLM_LANG": "en"}
    return {**kept, **usual, **more}


def python(
    *arguments: str,
    stdin: str = "",
    encoding: str = "utf-8",
    cwd: Path | None = None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(PYTHONIOENCODING=encoding, **more),
        input=stdin,
        capture_output=True,
        encoding=encoding,
        timeout=60,
        cwd=cwd,
        check=False,
    )


def at_terminal(*arguments: str, columns: int, **more: str) -> tuple[int, str]:
    """Return the exit code, and what came to a terminal of that width. POSIX alone."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment(TERM="xterm-256color", COLUMNS="", **more),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    parts = []
    with suppress(OSError):  # Linux's word for the end
        while part := os.read(ours, 65536):
            parts.append(part)
    os.close(ours)
    return process.wait(timeout=60), b"".join(parts).decode().replace("\r\n", "\n")


def in_order(text: str, *parts: str) -> bool:
    position = 0
    for part in parts:
        position = text.find(part, position) + len(part)
        if position < len(part):
            return False
    return True


RUN_KEYS = {
    *("schema", "implementation", "question", "repeat", "history", "protocol"),
    *("settings", "tools", "versions", "recorded", "note", "status", "answer"),
    *("error", "warnings", "unread", "steps", "exchanges"),
}


VERDICT_KEYS = {
    *("left", "right", "question", "history", "repeat"),
    *("verdict", "cause", "model_call", "path", "began"),
}
"""Those that every verdict has; a value that is absent has no key."""


ONE = ["--implementation", "stage3"]
OWN = '''
def same(question, **given):
    """Exactly stage 3."""
    from stage3_pure_loop.agent import run_agent
    return run_agent(question, **given)

def shouts(question, **given):
    from stage3_pure_loop.agent import run_agent
    return run_agent(question.upper(), **given)

def breaks(question, **given):
    raise RuntimeError("it\\nbroke")

def lazy(question, **given):
    return []

NOT_A_FUNCTION = 5

def roll(sides: int) -> int:
    "Roll ONE die."
    return 4

TOOLS = [roll]
TWICE = [roll, roll]

async def later() -> str:
    "Answer later."

LATER = [later]
'''
