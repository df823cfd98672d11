"""The implementations by name, and how a name becomes a function."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from usage import UsageError


@dataclass(frozen=True)
class Implementation:
    """One version of the agent: "module:function" with the contract of run_agent."""

    name: str
    target: str
    about: str
    protocol: Literal["tool_calls", "text"] = "tool_calls"
    """How the model asks for tools: in the field of that name, or in its text."""
    exact: bool = False
    """Whether its requests have the very bytes of stage 1's."""


LADDER = (
    Implementation(
        "stage1",
        "stage1_prebuilt.agent:run_agent",
        "langgraph's create_react_agent",
        exact=True,
    ),
    Implementation(
        "successor",
        "stage1_prebuilt.successor:run_agent",
        "langchain's create_agent, which replaces it",
        exact=True,
    ),
    Implementation(
        "stage2",
        "stage2_stategraph.agent:run_agent",
        "a StateGraph drawn by hand",
        exact=True,
    ),
    Implementation(
        "stage3",
        "stage3_pure_loop.agent:run_agent",
        "a for-loop over a list",
        exact=True,
    ),
    Implementation(
        "stage4",
        "stage4_mini_framework.agent:run_agent",
        "the loop on the openai client alone",
    ),
    Implementation(
        "stage5",
        "stage5_text_react.agent:run_agent",
        "the loop for models without tool calling",
        protocol="text",
    ),
)

STOCK = (
    Implementation(
        "stock-stage1", "equivalence.stock:prebuilt", "create_react_agent as it comes"
    ),
    Implementation(
        "stock-successor", "equivalence.stock:successor", "create_agent as it comes"
    ),
    Implementation(
        "stock-stage2",
        "equivalence.stock:stategraph",
        "the article's StateGraph, tools in a for-loop",
    ),
    Implementation(
        "stock-toolnode",
        "equivalence.stock:stategraph_toolnode",
        "the article's StateGraph with langgraph's ToolNode",
    ),
    Implementation("stock-stage3", "equivalence.stock:loop", "the article's for-loop"),
)
"""As a framework or an article ships them, without the shared tool policy."""


def find(name: str) -> Implementation:
    """Return the implementation of that name, or a user's own "module:function"."""
    for implementation in (*LADDER, *STOCK):
        if name == implementation.name:
            return implementation
    if ":" in name:
        return Implementation(name, name, "your own")
    known = ", ".join(implementation.name for implementation in (*LADDER, *STOCK))
    raise UsageError(
        f"no implementation is named {name!r}; known are {known};"
        " your own is written module:function"
    )


def protocol(name: str) -> str:
    """Return how the model of that implementation asks for tools."""
    known = {each.name: each.protocol for each in (*LADDER, *STOCK)}
    return known.get(name, "tool_calls")


def load(target: str) -> Any:
    """Import "module:attribute"; ValueError says what is missing. The current folder
    is searched too, so that a user's own file is found."""
    module_name, _, attribute = target.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = import_module(module_name)
    except Exception as error:  # a user's file may do anything
        raise UsageError(
            f"cannot import {target}: {type(error).__name__}: {error}"
        ) from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UsageError(f"{module_name} has no {attribute!r}") from None
