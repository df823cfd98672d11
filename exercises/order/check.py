"""Exercise 3d: a strict server, and the judge against stage 3."""

from __future__ import annotations

from equivalence.runs.implementation import Implementation
from exercises.checking import Checked, asks, script

STAGE3 = Implementation("stage3", "stage3_pure_loop.agent:run_agent")
QUESTIONS = (
    "北京今天天气怎么样？",
    "北京和上海今天哪个更暖和？",
    "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？",
    "介绍一下你自己",
    ["What is the weather in Beijing?", "And in London?", "Which is warmer?"],
)


def check(file: Checked) -> None:
    for question in QUESTIONS:
        file.same_as(STAGE3, question, "not_the_same")
    endless = script(asks(("get_weather", {"city": "北京"})))
    file.same_as(STAGE3, QUESTIONS[0], "budget", model=endless, max_steps=1)
