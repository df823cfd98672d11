"""Stage 3, with tools that are described in two words each, as one meets them."""

import functools

from stage3_pure_loop import agent
from tools import TOOLS

DESCRIPTIONS = {
    "get_weather": "Weather tool.",
    "get_current_time": "Time tool.",
    "calculate": "Calculator tool.",
    "get_stock_price": "Stock tool.",
    "unit_convert": "Conversion tool.",
}


def described(tool):
    """Return the tool with its name and its signature, and another description."""

    @functools.wraps(tool)
    def same(*args, **kwargs):
        return tool(*args, **kwargs)

    same.__doc__ = DESCRIPTIONS[tool.__name__]
    return same


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    short = [described(tool) for tool in tools]
    return agent.run_agent(question, history=history, settings=settings, tools=short)
