"""Exercise 3c: several questions in one process, and two at once in one event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from equivalence.gateway.upstreams import Reply, error_reply
from equivalence.runs.implementation import Implementation
from exercises.checking import Checked
from offline_model import OfflineModel

STAGE3 = Implementation("stage3", "stage3_pure_loop.agent:run_agent")
QUESTIONS = ("介绍一下你自己", "17 * 23", "北京和上海今天哪个更暖和？")
PATIENCE = 2.0


def check(file: Checked) -> None:
    file.value("arun_agent")
    file.same_as(STAGE3, QUESTIONS[0], "not_the_same")
    for question in QUESTIONS[1:]:
        file.same_as(STAGE3, question, "second_question")
    conversation = ["What is the weather in Beijing?", "And in London?"]
    file.same_as(STAGE3, conversation, "not_the_same")
    run = file.run(QUESTIONS[1], model=Pair, agent=two_at_once(file.module))[0].run
    file.require(run.status == "completed", "not_async", run)


def two_at_once(module: Any) -> Any:
    """An agent that asks the question twice, both under way in one event loop. It is
    the last of the check: the connections end with this loop."""

    def run_agent(question: str, **more: Any) -> list[Any]:
        async def both() -> list[list[Any]]:
            asked = [module.arun_agent(question, **more) for _ in range(2)]
            return await asyncio.gather(*asked)

        return asyncio.run(both())[0]

    return run_agent


class Pair(OfflineModel):
    """An offline model that answers its first two requests only together."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = 0
        self.both = asyncio.Event()

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.arrived += 1
        if self.arrived == 2:
            self.both.set()
        try:
            await asyncio.wait_for(self.both.wait(), PATIENCE)
        except TimeoutError:
            return error_reply(400, "no other request came", retry=False)
        return await super().answer(request, authorization)
