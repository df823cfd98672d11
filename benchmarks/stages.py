"""What each stage costs per model call, beside two floors that do the same by hand.

    python -m benchmarks.stages

Every question is a conversation of four model calls, three with a tool call each, at a
fresh address of a gateway whose model is a script, so that no time is the model's. The
rounds interleave all candidates; the figures are medians, also of the ratios against
the loop on a warm openai client in the same round. All that a stage builds for a
question counts.
"""

from __future__ import annotations

import http.client
import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai

from benchmarks.figures import Figure, interleaved, ratio, table
from config import SYSTEM_PROMPT
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


def measure() -> list[Figure]:
    """Return what each takes per model call."""
    implementations = read_table(Path(__file__).parent).implementations
    candidates = {
        "http.client loop": http_loop(),
        "openai loop": openai_loop(),
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
