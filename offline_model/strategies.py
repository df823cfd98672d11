"""How a run may drift above temperature 0: another strategy, fixed by the seed."""

from __future__ import annotations

import math
import random
import re
import zlib

from .view import View

WEIGHTS = {
    "eager": 35,  # everything at once, with made-up numbers for what is not known yet
    "independent first": 25,  # at once what needs nothing, then the rest
    "swapped factors": 20,  # 385.6 * 100 instead of 100 * 385.6
    "head": 20,  # works the last step out without a call
}


def choose(view: View) -> str:
    """The strategy: the same for all requests of a run; at temperature 0 "serial"."""
    heat = view.temperature
    rng = random.Random(f"{view.seed}|{view.turn.question}|{heat}")
    if rng.random() >= 1 - math.exp(-heat):
        return "serial"
    chosen = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    return "serial" if chosen == "eager" and view.one_at_a_time else chosen


def invented(tool: str, name: str) -> float | None:
    """20 °C anywhere; 300 for Tencent, a round number for each other company."""
    if tool == "get_stock_price" and name in ("腾讯", "Tencent"):
        return 300.0
    stable = zlib.crc32(name.encode()) % 40 * 10 + 50.0
    return {"get_weather": 20.0, "get_stock_price": stable}.get(tool)


def swapped(expression: str) -> str:
    """The expression with the factors of each product in the other order."""
    return re.sub(r"([\d.]+) \* ([\d.]+)", r"\2 * \1", expression)
