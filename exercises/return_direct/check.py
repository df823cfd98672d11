"""Exercise 2: the judge, against create_react_agent with return_direct."""

from __future__ import annotations

from equivalence.runs.implementation import Implementation
from exercises.checking import Call, Checked, asks, says, script

FRAMEWORK = Implementation(
    "create_react_agent", "exercises.return_direct.baseline:run_agent"
)
PRICE: Call = ("get_stock_price", {"symbol": "腾讯"})
WEATHER: Call = ("get_weather", {"city": "北京"})
QUESTION = "腾讯股票多少钱？北京今天天气怎么样？"


def check(file: Checked) -> None:
    file.same_as(FRAMEWORK, "腾讯股票多少钱？", "one_call")
    file.same_as(FRAMEWORK, "北京今天天气怎么样？", "other_tool")
    file.same_as(FRAMEWORK, QUESTION, "first_of_two")
    cases: list[tuple[str, list[list[Call]]]] = [
        ("first_of_two", [[PRICE, WEATHER]]),
        ("last_of_two", [[WEATHER, PRICE]]),
        ("failed_call", [[("get_stock_price", {"symbol": "nobody"})]]),
        ("failed_call", [[("get_stock_price", {})]]),
        ("later_turn", [[WEATHER], [PRICE]]),
    ]
    for key, turns in cases:
        model = script(*(asks(*turn) for turn in turns), says("25 °C and 385.6 HKD."))
        file.same_as(FRAMEWORK, QUESTION, key, model=model)
    conversation = ["腾讯股票多少钱？", "北京今天天气怎么样？"]
    file.same_as(FRAMEWORK, conversation, "conversation")
