"""The registry: tools by name, each with the schema by which the model knows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolkit.policy import Tool, by_name
from toolkit.schema import tool_schema


class Registry(dict[str, Tool]):
    """Tools by name, in the order in which they came in."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        super().__init__()
        self.schemas: list[dict[str, Any]] = []
        """As a request carries them, in the same order."""
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Take the tool in. ValueError says why a tool cannot be one: no name, no
        docstring, a name that is taken, types without a JSON Schema, async."""
        named = by_name([*self.values(), tool])
        self.schemas.append({"type": "function", "function": tool_schema(tool)})
        self.update(named)
