"""Exercise 7: tools that raise, in front of the prebuilt agent."""

from __future__ import annotations

import tools
from equivalence.runs.implementation import Implementation
from exercises.checking import Checked, asks, says, script
from exercises.survive import start
from toolkit.policy import Tool

AS_IT_COMES = Implementation("the start", agent=start.run_agent)
QUESTION = "北京和上海今天哪个更暖和？"
FAILURES = (
    ConnectionError("the weather service is down"),
    KeyError("no key for this city"),
    RuntimeError("503 from upstream"),
)


def check(file: Checked) -> None:
    model = script(
        asks(("get_weather", {"city": "北京"}), ("get_weather", {"city": "上海"})),
        says("北京 25 °C；上海不知道。"),
    )
    for error in FAILURES:
        words = str(error.args[0])
        run = file.run(QUESTION, model=model, tools=[failing(error)])[0].run
        died = run.status == "failed" and words in (run.error or "")
        file.require(not died, "died", run, error=run.error)
        file.require_completed(run)
        worked, failed = run.steps
        file.require("25 °C" in (worked.result or ""), "sibling_lost", run)
        text = failed.result or ""
        file.require(words in text, "not_told", run, text=text, words=words)
        file.require("Traceback" not in text, "traceback", run)
    for question in (QUESTION, "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"):
        file.same_as(AS_IT_COMES, question, "not_the_same")


def failing(error: Exception) -> Tool:
    """A get_weather that raises for Shanghai."""

    def get_weather(city: str) -> str:
        if city == "上海":
            raise error
        return tools.get_weather(city)

    get_weather.__doc__ = tools.get_weather.__doc__
    return get_weather
