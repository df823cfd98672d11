"""How long commands take from the start of their process to its end.

    python -m benchmarks.startup

Each beside a process that does the least: `python -c pass`, or one that only imports
what the command stands on.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.figures import Figure, interleaved, ratio, table
from equivalence.gateway import Exchange
from equivalence.runs.files import to_line
from equivalence.runs.record import Run, Step

ROOT = Path(__file__).parent.parent
ROUNDS, LONG_ROUNDS = 20, 7


def small_run(city: str) -> Run:
    """Return a run of two model calls with one tool call."""
    question = "Is it warm there?"
    said = [{"role": "user", "content": question}]
    arguments = f'{{"city": "{city}"}}'
    function = {"name": "get_weather", "arguments": arguments}
    call = {"id": "call00001", "type": "function", "function": function}
    asks = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call00001", "content": "23 degrees"}
    answers = {"role": "assistant", "content": "It is warm."}
    run = Run("agent", question, status="completed", answer="It is warm.")
    conversations = (
        [said, asks, "tool_calls"],
        [[*said, asks, result], answers, "stop"],
    )
    for number, (messages, message, finish) in enumerate(conversations):
        reply = {"choices": [{"message": message, "finish_reason": finish}]}
        request = {"model": "m", "messages": messages}
        exchange = Exchange(request, reply, 200, reply, 200, began=number * 9.0, ms=5.0)
        run.exchanges.append(exchange)
    run.steps = [Step(1, "get_weather", {"city": city}, arguments, "23 degrees", True)]
    return run


def _process(code: int, *words: str) -> None:
    """Run Python to its end. Bytecode is written in the first round, which does not
    count, as an installer writes it."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=kept, capture_output=True, check=False
    )
    assert done.returncode == code, (words, done.stderr.decode("utf-8", "replace"))


def measure() -> list[Figure]:
    """Return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, city in (("a", "Rome"), ("same", "Rome"), ("other", "Oslo")):
            files[name] = f"{folder}/{name}.jsonl"
            Path(files[name]).write_bytes(to_line(small_run(city)))
        judge, question = ("-m", "equivalence"), "What is 17 * 23?"
        light = interleaved(
            {
                "pass": partial(_process, 0, "-c", "pass"),
                "help": partial(_process, 0, *judge, "--help"),
                "equal": partial(
                    _process, 0, *judge, "diff", files["a"], files["same"]
                ),
                "unlike": partial(
                    _process, 1, *judge, "diff", files["a"], files["other"]
                ),
            },
            ROUNDS,
        )
    heavy = interleaved(
        {
            "openai": partial(_process, 0, "-c", "import openai"),
            "stage4": partial(_process, 0, "-m", "stage4_mini_framework", question),
            "frameworks": partial(
                _process,
                0,
                "-c",
                "import langchain.agents, langchain_openai, langgraph.prebuilt",
            ),
            "demo": partial(_process, 0, *judge, "run"),
        },
        LONG_ROUNDS,
    )
    for name, times in (light | heavy).items():
        print(f"{name:12}{statistics.median(times) * 1000:9.0f} ms")
    nothing, times = light["pass"], "times python -c pass"
    return [
        Figure("--help", ratio(light["help"], nothing), times, 4),
        Figure("diff of two equal runs", ratio(light["equal"], nothing), times, 6),
        Figure("diff of two that differ", ratio(light["unlike"], nothing), times, 9),
        Figure(
            "one question to stage 4",
            ratio(heavy["stage4"], heavy["openai"]),
            "times importing openai",
            1.3,
        ),
        Figure(
            "make demo, installed",
            ratio(heavy["demo"], heavy["frameworks"]),
            "times importing LangChain and langgraph",
            1.5,
        ),
    ]


if __name__ == "__main__":
    print(table(measure()))
