"""Exercise 3a: one call a turn, by one field, and no number that was made up."""

from __future__ import annotations

from equivalence.gateway.canonical import ABSENT, differences
from equivalence.judge.compare import request
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Run
from exercises.checking import Checked

STAGE3 = Implementation("stage3", "stage3_pure_loop.agent:run_agent")
FIELD = "$.parallel_tool_calls"
CITIES = "北京和上海今天哪个更暖和？"
SHARES = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
EAGER = {"temperature": 0.7, "seed": 7}
"""Where the offline model makes up the price, as the model of the article did."""


def check(file: Checked) -> None:
    before = file.play(STAGE3, CITIES)
    run = file.completed(CITIES)
    for turn in {step.turn for step in run.steps}:
        several = sum(step.turn == turn for step in run.steps) > 1
        file.require(not several, "several_calls", run, turn=turn)
    check_field(file, run)
    first, yours = (request(each.exchanges[0]) for each in (before, run))
    found = list(differences(first, yours))
    only = found == [(FIELD, ABSENT, False)]
    file.require(only, "more_than_the_field", run)
    file.same_as(STAGE3, "介绍一下你自己", "field_without_tools", tools=())
    run = file.completed(SHARES, **EAGER)
    for step in run.steps:
        for number in step.ungrounded:
            file.require(False, "made_up", run, number=number["number"])
    check_field(file, run)


def check_field(file: Checked, run: Run) -> None:
    for number, exchange in enumerate(run.exchanges, 1):
        field = exchange.request.get("parallel_tool_calls")
        file.require(field is False, "no_field", run, number=number)
