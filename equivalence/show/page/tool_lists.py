"""Lists of tools in requests: long texts, so each is printed once on the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from equivalence.show.page.values import text


class ToolLists:
    """The lists of tools that were offered, each printed once on the page."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.lists: list[tuple[dict[str, Any], ...]] = []

    def number(self, tools: tuple[dict[str, Any], ...]) -> int:
        """Return the number of the list, from 1."""
        if tools and text(tools) not in self._numbers:
            self.lists.append(tools)
            self._numbers[text(tools)] = len(self.lists)
        return self._numbers.get(text(tools), 0)


def tools_of(request: Any) -> tuple[dict[str, Any], ...]:
    """Return the tools of the request, () where they are not a list of tools."""
    tools = request.get("tools") if isinstance(request, dict) else None
    if not isinstance(tools, list) or not all(isinstance(t, dict) for t in tools):
        return ()
    return tuple(tools)


def tool_names(tools: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names of the tools."""
    functions = (tool.get("function") for tool in tools)
    return [
        str(function.get("name")) if isinstance(function, dict) else "?"
        for function in functions
    ]
