"""Exercise 3b: tools that meet, so that no clock is needed to see that they do."""

from __future__ import annotations

import threading
from collections.abc import Callable

import tools
from equivalence.runs.implementation import Implementation
from exercises.checking import Checked, asks, says, script
from toolkit.policy import Tool, ToolError

STAGE3 = Implementation("stage3", "stage3_pure_loop.agent:run_agent")
CITIES = ("北京", "上海", "广州")
QUESTION = "北京、上海和广州今天哪里最暖和？"
PATIENCE = 2.0
"""Seconds that a tool waits for another one."""


def check(file: Checked) -> None:
    model = script(
        asks(*(("get_weather", {"city": city}) for city in CITIES)),
        says("广州最暖和。"),
    )
    run = file.completed(QUESTION, model=model, tools=[meeting()])
    file.require(all(step.ok for step in run.steps), "not_together", run)
    run = file.completed(QUESTION, model=model, tools=[first_ends_last()])
    before = file.play(STAGE3, QUESTION, model=model)
    read, wanted = (
        [
            (message.get("tool_call_id"), message["content"])
            for message in each.exchanges[-1].request["messages"]
            if message["role"] == "tool"
        ]
        for each in (run, before)
    )
    file.require(read == wanted, "call_order", run)
    failing = script(
        asks(
            ("get_weather", {}),
            ("no_such_tool", {"city": "北京"}),
            ("get_weather", {"city": "北京"}),
            ("calculate", {"expression": "1 / 0"}),
        ),
        says("25 °C."),
    )
    file.same_as(STAGE3, QUESTION, "failures", model=failing)
    for question in (QUESTION, "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"):
        file.same_as(STAGE3, question, "not_the_same")


def meeting() -> Tool:
    """A get_weather that works only while two others are under way."""
    barrier = threading.Barrier(len(CITIES))

    def wait(city: str) -> bool:
        try:
            barrier.wait(PATIENCE)
        except threading.BrokenBarrierError:
            return False
        return True

    return weather(wait)


def first_ends_last() -> Tool:
    """A get_weather whose first city waits until the others are done."""
    done = threading.Semaphore(0)

    def wait(city: str) -> bool:
        if city != CITIES[0]:
            done.release()
            return True
        return all(done.acquire(timeout=PATIENCE) for _ in CITIES[1:])

    return weather(wait)


def weather(wait: Callable[[str], bool]) -> Tool:
    def get_weather(city: str) -> str:
        if not wait(city):
            return ToolError("Error: no other call was under way.")
        return tools.get_weather(city)

    get_weather.__doc__ = tools.get_weather.__doc__
    return get_weather
