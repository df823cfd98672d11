"""`diff` of two files of 100,000 runs: pairs a second, and memory.

    python -m benchmarks.diff [--runs N]

Every hundredth pair differs. Each run has two model calls and a tool call.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.startup import ROOT, small_run
from equivalence.runs.files import to_line

RUNS = 100_000


def write(path: Path, runs: int, other: str) -> None:
    """Write the runs; every hundredth is about another city."""
    with path.open("wb") as file:
        usual, unlike = small_run("Rome"), small_run(other)
        for number in range(runs):
            run = unlike if number % 100 == 0 else usual
            file.write(to_line(replace(run, question=f"{run.question} ({number})")))


def measure(runs: int = RUNS) -> list[Figure]:
    """Return the figures of one `diff`, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        left, right = Path(folder, "left.jsonl"), Path(folder, "right.jsonl")
        write(left, runs, "Rome")
        write(right, runs, "Oslo")
        words = [sys.executable, "-m", "equivalence", "diff", str(left), str(right)]
        began = time.perf_counter()
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout
        *_, last = process.stdout.read().decode().splitlines()
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
    unlike = -(-runs // 100)
    assert os.waitstatus_to_exitcode(status) == 1
    assert f"{unlike} different" in last, last
    assert f"{runs - unlike} equivalent" in last, last
    peak = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    what = f"diff, {runs:,} against {runs:,}"
    return [
        Figure(what, runs / took, "pairs/s", 5_000, at_least=True),
        Figure(what, peak, "MB", 200),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    print(table(measure(parser.parse_args().runs)))
