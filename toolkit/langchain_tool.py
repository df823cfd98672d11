"""LangChain's `tool`, which takes about two milliseconds, with a memory.

It remembers functions, not what is wrapped around them to watch one run, so that it
holds nothing of a run. The stages take only name and schema from what it makes: what a
call runs is looked up in their own tools at that moment.
"""

from __future__ import annotations

import inspect
from functools import lru_cache

from langchain_core.tools import BaseTool
from langchain_core.tools import tool as langchain_tool

from toolkit.policy import Tool


def tool(function: Tool) -> BaseTool:
    """Return the function as LangChain's tool; the same object for the same function.
    Raises ValueError if LangChain cannot make one of it."""
    inner = inspect.unwrap(function)
    if (inner.__name__, inner.__doc__) != (function.__name__, function.__doc__):
        return langchain_tool(function)  # renamed or described anew by a wrapper
    return _made(inner, inner.__name__, inner.__doc__)


@lru_cache(maxsize=256)
def _made(function: Tool, name: str, description: str | None) -> BaseTool:
    """Name and description are part of the key: both can be set anew."""
    return langchain_tool(function)
