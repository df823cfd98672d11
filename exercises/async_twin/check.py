"""Exercise 3c: several questions in one process, and two at once in one event loop."""

from __future__ import annotations

import subprocess
import sys

from equivalence.runs.implementation import Implementation
from exercises.checking import Checked
from exercises.exercise import FOLDER

STAGE3 = Implementation("stage3", "stage3_pure_loop.agent:run_agent")
QUESTIONS = ("介绍一下你自己", "17 * 23", "北京和上海今天哪个更暖和？")
LIMIT = 60.0
"""Seconds that two questions at once may take."""


def check(file: Checked) -> None:
    file.value("arun_agent")
    for question in QUESTIONS:
        file.same_as(STAGE3, question, "not_the_same")
    conversation = ["What is the weather in Beijing?", "And in London?"]
    file.same_as(STAGE3, conversation, "not_the_same")
    two = [sys.executable, "-m", "exercises.async_twin.two_at_once", str(file.path)]
    try:
        done = subprocess.run(
            two,
            cwd=FOLDER.parent,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        file.fail("not_async")
    if done.returncode:
        file.fail("not_async", *(done.stdout or done.stderr).splitlines()[-3:])
