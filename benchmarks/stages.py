"""What each stage costs per model call, beside two floors that do the same by hand.

    python -m benchmarks.stages [--rounds N] [--json]

Every question is a conversation of four model calls, three with a tool call each, at a
fresh address of a gateway whose model is a script, so that no time is the model's. The
rounds interleave all candidates; the figures are medians, also of the ratios against
the loop on a warm openai client in the same round. All that a stage builds for a
question counts.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import time
from collections.abc import Callable
from operator import truediv
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai

from config import SYSTEM_PROMPT
from equivalence.gateway import Gateway, Script
from equivalence.runs.implementation import load
from equivalence.settings import Settings
from equivalence.table import read_table
from stage4_mini_framework.registry import Registry
from tools import TOOLS

CALLS = 4
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


def by_hand(create: Callable[..., Any]) -> None:
    """Run the plain loop; `create` returns the message of a reply as a dict."""
    tools = Registry(TOOLS)
    functions = {tool.__name__: tool for tool in TOOLS}
    messages: list[Any] = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": QUESTION},
    ]
    while True:
        message = create(
            model="m", temperature=0.0, messages=messages, tools=tools.schemas
        )
        messages.append(message)
        if not message.get("tool_calls"):
            return
        for call in message["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            result = functions[call["function"]["name"]](**arguments)
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": result}
            )


def http_loop() -> Candidate:
    """Return the floor: http.client on one connection, and json."""
    connections: dict[str, http.client.HTTPConnection] = {}

    def run(url: str) -> None:
        place = urlsplit(url)
        connection = connections.setdefault(
            place.netloc, http.client.HTTPConnection(place.netloc)
        )

        def create(**request: Any) -> Any:
            connection.request(
                "POST",
                f"{place.path}/chat/completions",
                json.dumps(request, ensure_ascii=False).encode(),
                {"content-type": "application/json"},
            )
            return json.load(connection.getresponse())["choices"][0]["message"]

        by_hand(create)

    return run


def openai_loop() -> Candidate:
    """Return the loop on one openai client that is kept."""
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1")

    def create(**request: Any) -> Any:
        reply = client.chat.completions.create(**request)
        return reply.choices[0].message.model_dump(exclude_none=True)

    def run(url: str) -> None:
        client.base_url = url
        by_hand(create)

    return run


def stage(target: str) -> Candidate:
    """Return the implementation as it is called for one question."""
    agent = load(target)
    settings = Settings(model="m", retries=0)

    def run(url: str) -> None:
        agent(QUESTION, settings=settings.model_copy(update={"gateway_url": url}))

    return run


def measure(rounds: int) -> dict[str, list[float]]:
    """Return milliseconds per model call of each candidate, round by round."""
    implementations = read_table(Path(__file__).parent).implementations
    candidates = {
        "http.client loop": http_loop(),
        "openai loop": openai_loop(),
        **{name: stage(implementations[name].target) for name in GOALS},
    }
    seen: dict[str, list[float]] = {name: [] for name in candidates}
    with Gateway(script()) as gateway:
        for number in range(rounds + 2):  # the first two warm everything up
            for name, run in candidates.items():
                with gateway.open_run(script()) as wire:
                    began = time.perf_counter()
                    run(wire.url)
                    took = (time.perf_counter() - began) * 1000 / CALLS
                    assert len(wire.exchanges) == CALLS, (name, len(wire.exchanges))
                if number > 1:
                    seen[name].append(took)
    return seen


def main() -> None:
    """Print the figures beside their goals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    seen = measure(arguments.rounds)
    found = {name: statistics.median(times) for name, times in seen.items()}
    ratios = {  # within a round, so that what else the machine does counts for both
        name: statistics.median(map(truediv, times, seen["openai loop"]))
        for name, times in seen.items()
    }
    if arguments.json:
        print(json.dumps({"milliseconds": found, "ratios": ratios, "goals": GOALS}))
        return
    for name, took in found.items():
        goal = f"  goal {GOALS[name]}" if name in GOALS else ""
        print(f"{name:17} {took:7.2f} ms per model call  {ratios[name]:5.2f}{goal}")


if __name__ == "__main__":
    main()
