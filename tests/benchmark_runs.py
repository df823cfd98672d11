"""Runs of benchmark cases, made up."""

from __future__ import annotations

import json
from typing import Any

from equivalence.runs.record import Run, Step
from equivalence.score.cases import (
    read_cases,
)

CASES = {case.id: case for case in read_cases()}


def step(tool: str, *, turn: int = 1, ok: bool | None = True, **arguments: Any) -> Step:
    return Step(turn, tool, arguments, json.dumps(arguments), "", ok)


def run(*steps: Step, answer: str = "", status: str = "completed") -> Run:
    return Run("stage9", "", steps=list(steps), answer=answer, status=status)


TENCENT = (
    step("get_current_time"),
    step("get_stock_price", symbol="腾讯", turn=2),
    step("calculate", expression="100 * 385.6", turn=3),
)


WORTH = "现在 09:30，股价 385.6 港元，市值 38,560 港元。"


def call(arguments: str) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {"tool_calls": [{"id": "a", "type": "function", "function": function}]}
