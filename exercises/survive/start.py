"""Exercise 7, where it starts: create_react_agent as it comes.

A tool that raises ends the run. Let it go on.
"""

import warnings

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent
from langgraph.warnings import LangGraphDeprecatedSinceV10

from config import SYSTEM_PROMPT, chat_model, load_settings
from tools import TOOLS


def build_graph(model, tools):
    """Return the prebuilt agent."""
    with warnings.catch_warnings():  # create_agent is what the warning asks for
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        return create_react_agent(model, tools, prompt=SYSTEM_PROMPT)


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    graph = build_graph(chat_model(settings), [tool(function) for function in tools])
    messages = [*history, HumanMessage(question)]
    return graph.invoke({"messages": messages})["messages"]
