"""Exercise 4a: the judge, against stage 4 with a window of 3 messages."""

from __future__ import annotations

from equivalence.runs.implementation import Implementation
from exercises.checking import Checked

WINDOW = Implementation("stage 4 with Window(3)", "exercises.window.baseline:run_agent")
TWO = "北京和上海今天哪个更暖和？"
CHAIN = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
CITIES = ["What is the weather in Beijing?", "And in London?"]
CITIES += ["Which of the two is warmer?"]


def check(file: Checked) -> None:
    file.same_as(WINDOW, TWO, "two_calls")
    file.same_as(WINDOW, CHAIN, "chain")
    file.same_as(WINDOW, CITIES, "conversation")
    file.same_as(WINDOW, [CHAIN, TWO, "介绍一下你自己"], "conversation")
