"""What each stage costs per model call, beside two floors that do the same by hand.

    python -m benchmarks.stages

Every question is a conversation of four model calls, three with a tool call each, at a
fresh address of a gateway whose model is a script, so that no time is the model's. The
rounds interleave all candidates; the figures are medians, also of the ratios against
the loop on a warm openai client in the same round. All that a stage builds for a
question counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, interleaved, ratio, table
from config import SYSTEM_PROMPT
from equivalence.cost.floors import Loop, http_loop, openai_loop
from equivalence.gateway import Gateway, Script
from equivalence.runs.implementation import load
from equivalence.settings import Settings
from equivalence.table import read_table
from stage4_mini_framework.registry import Registry
from tools import TOOLS

CALLS = 4
ROUNDS = 100
QUESTION = "What is the weather in Beijing, Shanghai and Guangzhou?"
GOALS = {
    "stage4": 1.1,
    "stage3": 1.5,
    "stage2": 1.9,
    "stage1": 2.1,
    "successor": 2.1,
}
"""The most that each may take, as a ratio against the openai loop."""

Candidate = Callable[[str], Any]
"""Answers the question at a base URL."""


def script() -> Script:
    """Return the model: a tool call in each reply but the last."""
    function = {"name": "get_weather", "arguments": '{"city": "北京"}'}
    asks: list[Any] = [
        {
            "message": {
                "content": None,
                "tool_calls": [
                    {"id": f"call{number}", "type": "function", "function": function}
                ],
            }
        }
        for number in range(CALLS - 1)
    ]
    return Script([*asks, {"message": {"content": "It is sunny."}}])


def stage(target: str) -> Candidate:
    """Return the implementation as it is called for one question."""
    agent = load(target)
    settings = Settings(model="m", retries=0)

    def run(url: str) -> None:
        agent(QUESTION, settings=settings.model_copy(update={"gateway_url": url}))

    return run


def measure() -> list[Figure]:
    """Return what each takes per model call."""
    implementations = read_table(Path(__file__).parent).implementations
    functions = {tool.__name__: tool for tool in TOOLS}
    loop = Loop(QUESTION, SYSTEM_PROMPT, Registry(TOOLS).schemas, functions)
    candidates = {
        "http.client loop": http_loop(loop),
        "openai loop": openai_loop(loop),
        **{name: stage(implementations[name].target) for name in GOALS},
    }
    with Gateway(script()) as gateway:

        def answer(run: Candidate) -> None:
            with gateway.open_run(script()) as wire:
                run(wire.url)
                assert len(wire.exchanges) == CALLS, len(wire.exchanges)

        works = {name: partial(answer, run) for name, run in candidates.items()}
        times = interleaved(works, ROUNDS, warm=2)
    for name, seen in times.items():
        took = statistics.median(seen) * 1000 / CALLS
        print(f"{name:17}{took:7.2f} ms a model call")
    floor = times["openai loop"]
    return [
        Figure(name, ratio(times[name], floor), "times a warm openai loop", goal)
        for name, goal in GOALS.items()
    ]


if __name__ == "__main__":
    print(table(measure()))
