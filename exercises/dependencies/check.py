"""Exercise 4b: calls that are guesses, and calls that are none."""

from __future__ import annotations

from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Run
from exercises.checking import Call, Checked, asks, says, script

STAGE4 = Implementation("stage4", "stage4_mini_framework.agent:run_agent")
QUESTION = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
TIME: Call = ("get_current_time", {})
PRICE: Call = ("get_stock_price", {"symbol": "腾讯"})
GUESS: Call = ("calculate", {"expression": "300 * 100"})
KNOWN: Call = ("calculate", {"expression": "385.6 * 100"})
WEATHER: Call = ("get_weather", {"city": "北京"})
CONVERT = {"value": 18, "from_unit": "celsius", "to_unit": "fahrenheit"}
UNITS: Call = ("unit_convert", CONVERT)
ANSWER = says("38,560 HKD.")


def check(file: Checked) -> None:
    turn: list[Call]
    for turn in ([TIME, PRICE, GUESS], [GUESS, PRICE, TIME], [PRICE, GUESS]):
        model = script(asks(*turn), asks(KNOWN), ANSWER)
        check_guess(file, file.completed(QUESTION, model=model), turn)
    for turn in ([KNOWN], [TIME, KNOWN], [WEATHER, KNOWN], [PRICE, UNITS]):
        model = script(asks(*turn), ANSWER)
        file.same_as(STAGE4, QUESTION, "not_the_same", model=model)
    file.same_as(STAGE4, QUESTION, "not_the_same")


def check_guess(file: Checked, run: Run, turn: list[Call]) -> None:
    """Raise Failed unless the guess of the first turn waited, and all else ran."""
    first = [step for step in run.steps if step.turn == 1]
    for step in first:
        if step.tool != "calculate":
            ran = step.order is not None
            file.require(ran, "others_refused", run, tool=step.tool)
            continue
        calls = ", ".join(name for name, _ in turn)
        file.require(step.order is None, "guess_ran", run, calls=calls)
        told = "get_stock_price" in (step.result or "")
        file.require(told, "not_told", run)
    later = [step for step in run.steps if step.turn == 2]
    file.require(all(step.ok for step in later), "later_refused", run)
