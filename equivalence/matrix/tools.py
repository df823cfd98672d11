"""Tools for mechanism scenarios: each does one thing that has broken an agent."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Any, Literal

from tools import TOOLS


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
    *TOOLS,
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
