"""The tools of the mechanism scenarios: some that any agent might have, whose results
never change, and some of which each does one thing that has broken an agent."""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Any, Literal

from equivalence.clock import now


class ToolError(str):
    """What a tool returns when it could not do its work: a text for the model."""

    is_error = True
    """The observer recognises by it a result that reports a failure."""


CELSIUS = {
    ("北京", "Beijing"): 25,
    ("上海", "Shanghai"): 28,
    ("香港", "Hong Kong"): 29,
}


def get_weather(city: str) -> str:
    """Look up the temperature of one city now."""
    for names, celsius in CELSIUS.items():
        if city in names:
            return f"{' '.join(names)}: {celsius} °C"
    return ToolError(f"Error: no weather for {city!r}.")


def get_current_time() -> str:
    """Tell the current local date, weekday and time."""
    return now().strftime("%Y-%m-%d %H:%M:%S (%A, UTC%z)")


OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def calculate(expression: str) -> str:
    """Compute one operation on two numbers, for example "17 * 23"."""
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*([-+*/])\s*(\d+\.?\d*)\s*", expression)
    if found is None:
        return ToolError(f'Error: {expression!r} is not like "17 * 23".')
    left, right = (float(n) if "." in n else int(n) for n in found.group(1, 3))
    return str(OPERATIONS[found[2]](left, right))


def get_stock_price(symbol: str) -> str:
    """Look up the latest share price of one company."""
    if symbol not in ("腾讯", "Tencent", "0700.HK"):
        return ToolError(f"Error: no price for {symbol!r}.")
    return "腾讯 Tencent 0700.HK: 385.6 HKD"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def boom(text: str) -> str:
    """Fail with ValueError."""
    raise ValueError(text)


def divide_by_zero() -> float:
    """Fail with ZeroDivisionError."""
    return 1 / 0


def look_up_key(key: str) -> str:
    """Fail with KeyError."""
    return {"known": "value"}[key]


def time_out() -> str:
    """Fail with TimeoutError."""
    raise TimeoutError("no answer in time")


def recurse() -> str:
    """Fail with RecursionError."""
    return recurse()


def give(kind: str) -> Any:
    """Return a value of the kind named: none, true, integer, float, nan, list, dict,
    tuple, set, bytes, datetime, object, empty, blocks, long, surrogate."""
    return {
        "none": None,
        "true": True,
        "integer": 3,
        "float": 100.0,
        "nan": float("nan"),
        "list": [1, "二"],
        "empty_list": [],
        "dict": {"城市": "北京", "ok": True, "价格": 385.6},
        "tuple": (1, 2),
        "set": {1},
        "bytes": b"\xe5\x8c\x97",
        "bad_bytes": b"\xff\xfe",
        "datetime": datetime(2026, 1, 5, 9, 30),
        "object": Opaque(),
        "empty": "",
        "blocks": [{"type": "text", "text": "北京"}],
        "long": "长" * 200_000,
        "surrogate": "half \ud83d a character",
    }[kind]


class Opaque:
    """A value that JSON does not know."""

    def __repr__(self) -> str:
        return "Opaque()"

    __str__ = __repr__


def nap(seconds: float) -> str:
    """Sleep, then say for how long."""
    time.sleep(seconds)
    return f"slept {seconds:g} s"


def alone(seconds: float) -> str:
    """Tell whether another call of this tool was under way."""
    if not _under_way.acquire(blocking=False):
        return "beside another"
    try:
        time.sleep(seconds)
        return "alone"
    finally:
        _under_way.release()


_under_way = Lock()


def choose(
    colour: Literal["red", "green"], count: int = 1, note: str | None = None
) -> str:
    """Choose a colour."""
    return f"{count} {colour} {note}"


_ALL: tuple[Callable[..., Any], ...] = (
    get_weather,
    get_current_time,
    calculate,
    get_stock_price,
    add,
    boom,
    divide_by_zero,
    look_up_key,
    time_out,
    recurse,
    give,
    nap,
    alone,
    choose,
)
SCENARIO_TOOLS = {tool.__name__: tool for tool in _ALL}
