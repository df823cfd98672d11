"""Exercise 1: a person in front of the console, who says y, n, or nothing."""

from __future__ import annotations

import contextlib
import functools
import io
import sys
from collections.abc import Iterator

import tools
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Run
from exercises.checking import Checked, asks, says, script
from toolkit.policy import Tool

QUESTION = "腾讯股票多少钱？"
TWO = "What are Tencent and Apple shares worth, and how is the weather in Beijing?"
SUCCESSOR = Implementation("successor", "stage1_prebuilt.successor:run_agent")


class Person(io.TextIOBase):
    """Standard input with a person at it: their answers in turn, then Enter alone."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []
        self.ran: list[str] = []
        """The companies whose price was looked up."""
        self._printed = io.StringIO()

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        self.prompts.append(self._printed.getvalue().strip())
        self._printed.seek(0)
        self._printed.truncate()
        return (self.answers.pop(0) if self.answers else "") + "\n"

    @contextlib.contextmanager
    def at_the_console(self) -> Iterator[None]:
        before = sys.stdin
        sys.stdin = self
        try:
            with contextlib.redirect_stdout(self._printed):
                yield
        finally:
            sys.stdin = before

    def tools(self) -> list[Tool]:
        """The demo tools; it is noted which prices were looked up."""

        @functools.wraps(tools.get_stock_price)
        def get_stock_price(symbol: str) -> str:
            self.ran.append(symbol)
            return tools.get_stock_price(symbol)

        return [
            get_stock_price if tool is tools.get_stock_price else tool
            for tool in tools.TOOLS
        ]


def check(file: Checked) -> None:
    def ask(question: str, person: Person, **how: object) -> Run:
        with person.at_the_console():
            return file.completed(question, tools=person.tools(), **how)

    for answer in ("n", "", "no", "yesterday"):
        person = Person(answer)
        run = ask(QUESTION, person)
        file.require(person.prompts, "nobody_asked", run)
        file.require(not person.ran, "ran_although_no", run, answer=answer)
        told = [step for step in run.steps if step.tool == "get_stock_price"]
        file.require(told and told[0].result, "not_told", run)
        shown = person.prompts[0]
        clear = "get_stock_price" in shown and "腾讯" in shown
        file.require(clear, "hidden_call", run, prompt=shown)

    person = Person()
    run = ask("北京今天天气怎么样？", person)
    file.require(not person.prompts, "asked_too_much", run)

    person = Person("y")
    run = ask(QUESTION, person)
    file.require(person.ran, "yes_is_not_enough", run)

    model = script(
        asks(
            ("get_stock_price", {"symbol": "腾讯"}),
            ("get_stock_price", {"symbol": "苹果"}),
            ("get_weather", {"city": "北京"}),
        ),
        says("385.6 HKD; of Apple I was not told; 25 °C."),
    )
    person = Person("y", "n")
    run = ask(TWO, person, model=model)
    times = len(person.prompts)
    file.require(times == 2, "once_for_two", run, times=times)
    ran = ", ".join(person.ran) or "none"
    file.require(ran == "腾讯", "wrong_call", run, ran=ran)

    with Person("y").at_the_console():
        for question in (QUESTION, "北京和上海今天哪个更暖和？"):
            file.same_as(SUCCESSOR, question, "not_the_same")
