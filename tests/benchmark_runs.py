"""Runs of benchmark cases, made up."""

from __future__ import annotations

import json
from typing import Any

from wire import ROOT

from equivalence.runs.plan import CLOCK
from equivalence.runs.record import Run, Step
from equivalence.score.cases import read_cases
from equivalence.settings import Settings
from toolkit.policy import by_name, run_tool
from tools import TOOLS

FILE = ROOT / "scenarios" / "benchmark.yaml"
_cases, PUBLISHED = read_cases(FILE, TOOLS)
CASES = {case.id: case for case in _cases}


def step(tool: str, *, turn: int = 1, ok: bool | None = True, **arguments: Any) -> Step:
    """A step with the result that the demo tool gives."""
    settings = Settings(_env_file=None, clock=CLOCK)
    result, worked = run_tool(tool, arguments, by_name(TOOLS), settings)
    worked_or_not = ok and worked
    return Step(turn, tool, arguments, json.dumps(arguments), result, worked_or_not)


def run(*steps: Step, answer: str = "", status: str = "completed") -> Run:
    """A run of these steps."""
    return Run("stage9", "", steps=list(steps), answer=answer, status=status)


TENCENT = (
    step("get_current_time"),
    step("get_stock_price", symbol="腾讯", turn=2),
    step("calculate", expression="100 * 385.6", turn=3),
)


WORTH = "现在 09:30，股价 385.6 港元，市值 38,560 港元。"


def call(arguments: str) -> dict[str, Any]:
    """A reply with one call."""
    function = {"name": "get_weather", "arguments": arguments}
    return {"tool_calls": [{"id": "a", "type": "function", "function": function}]}
