"""Exercise 0: the tool is offered, and it counts."""

from __future__ import annotations

import re
from typing import Any

from equivalence.runs.implementation import Implementation
from equivalence.runs.record import Run
from exercises.checking import Checked, asks, says, script
from exercises.first_tool import start

NAME = "count_letters"
COUNTS = [("strawberry", "r", 3), ("Mississippi", "S", 4), ("Otto", "o", 2)]
COUNTS += [("上海自来水来自海上", "海", 2), ("rhythm", "e", 0)]
QUESTION = "How many r are in strawberry, how many s in Mississippi, and so on?"


def check(file: Checked) -> None:
    tools = list(file.value("TOOLS"))
    names = [tool.__name__ for tool in tools]
    if NAME not in names:
        file.fail("not_offered")
    for old in start.TOOLS:
        if old.__name__ not in names:
            file.fail("tool_lost", name=old.__name__)
    calls = [(NAME, {"word": word, "letter": letter}) for word, letter, _ in COUNTS]
    model = script(asks(calls[0]), asks(*calls[1:]), says("3, 4, 2, 2 and none."))
    run = file.completed(QUESTION, model=model, tools=tools)
    parameters = offered(run)[NAME]["parameters"]
    kinds = {name: p.get("type") for name, p in parameters["properties"].items()}
    wanted = {"word": "string", "letter": "string"}
    required = set(parameters.get("required", ()))
    if kinds != wanted or required != set(wanted):
        file.fail("parameters", parameters=parameters)
    for step, (word, letter, count) in zip(run.steps, COUNTS, strict=True):
        told = re.findall(r"\d+", step.result or "")
        file.require(
            str(count) in told,
            "wrong_count",
            run,
            word=word,
            letter=letter,
            wanted=count,
        )
    before = Implementation("the start", agent=start.run_agent)
    for question in ("北京和上海今天哪个更暖和？", "How much is 17 * 23?"):
        file.same_as(before, question, "not_the_same", tools=start.TOOLS)


def offered(run: Run) -> dict[str, dict[str, Any]]:
    """Return the schemas that the model got to read, by name."""
    tools = run.exchanges[0].request["tools"]
    return {tool["function"]["name"]: tool["function"] for tool in tools}
