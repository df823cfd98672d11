"""How many runs a second several jobs ask of a server that takes its time.

    python -m benchmarks.scale [--seconds 0.05] [--dask]

The server is a script that answers after so many seconds, any number of requests at
once: what is measured is the instrument, the start of its processes included. Each
figure is of one `record` of the same questions.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from equivalence.gateway import Gateway, Script

QUESTIONS = 400
JOBS = (1, 2, 4, 8)


def runs_a_second(url: str, folder: Path, *options: str) -> float:
    """Return how many runs a second a recording comes to."""
    out = folder / "runs.jsonl"
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "equivalence", "record", "--out", str(out)]
    command += ["--questions", str(folder / "questions.txt"), "--base-url", url]
    command += ["--model", "m", "--implementation", "stage4", *options]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    assert out.read_bytes().count(b"\n") == QUESTIONS
    return QUESTIONS / (time.perf_counter() - began)


def main() -> None:
    """Print a line for each number of jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--dask", metavar="ADDRESS", help="measure a cluster, too")
    arguments = parser.parse_args()
    calls = [{"type": "function", "id": "call00001"}]
    calls[0]["function"] = {"name": "calculate", "arguments": '{"expression": "1 + 1"}'}  # type: ignore[assignment]

    class Model(Script):
        """Calls a tool once, then answers."""

        async def answer(self, request, authorization):  # type: ignore[no-untyped-def]
            asked = request["messages"][-1]["role"] == "user"
            message = (
                {"content": None, "tool_calls": calls} if asked else {"content": "2"}
            )
            item = {"message": message, "delay": arguments.seconds}
            return await Script([item]).answer(request, authorization)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = "".join(f"question {number}\n" for number in range(QUESTIONS))
        (folder / "questions.txt").write_text(lines)
        with Gateway(Model([]), repair=False) as server:
            first = 0.0
            for jobs in JOBS:
                rate = runs_a_second(server.url, folder, "--jobs", str(jobs))
                first = first or rate
                print(f"--jobs {jobs}: {rate:6.1f} runs/s, {rate / first:.1f} times")
            if arguments.dask:
                rate = runs_a_second(server.url, folder, "--dask", arguments.dask)
                print(f"--dask:   {rate:6.1f} runs/s, {rate / first:.1f} times")


if __name__ == "__main__":
    main()
