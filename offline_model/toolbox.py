"""The five tools that the offline model knows, as a request offers them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

LOOKS_UP = {"weather": "get_weather", "price": "get_stock_price"}
CLOCK = "get_current_time"
PARAMETERS: dict[str, tuple[str, ...]] = {
    "get_weather": ("city",),
    "get_stock_price": ("symbol",),
    "calculate": ("expression",),
    "unit_convert": ("value", "from_unit", "to_unit"),
    CLOCK: (),
}


@dataclass(frozen=True)
class Tool:
    """An offered tool. Its parameters are in our order, under its own names, and None
    when it takes others than the tool that we know by this name."""

    description: str
    parameters: tuple[str, ...] | None


def toolbox(functions: Iterable[object]) -> dict[str, Tool]:
    """The offered tools that we know by name, from their schemas in the request."""
    return {
        name: Tool(str(function.get("description", "")), _parameters(name, function))
        for function in map(as_dict, functions)
        if (name := str(function.get("name"))) in PARAMETERS
    }


def _parameters(name: str, function: dict[str, Any]) -> tuple[str, ...] | None:
    """Our names if the tool has them, else the name of its single required string."""
    schema, ours = as_dict(function.get("parameters")), PARAMETERS[name]
    offered = as_dict(schema.get("properties"))
    required = [p for p in offered if p in as_list(schema.get("required", [*offered]))]
    if not offered or set(required) <= set(ours) <= set(offered):
        return ours
    texts = [p for p in required if as_dict(offered[p]).get("type") == "string"]
    return tuple(texts) if len(ours) == len(required) == len(texts) == 1 else None


def as_list(value: object) -> list[Any]:
    """The value where it is a list; else an empty one."""
    return value if isinstance(value, list) else []


def as_dict(value: object) -> dict[str, Any]:
    """The value where it is a dict; else an empty one."""
    return value if isinstance(value, dict) else {}
