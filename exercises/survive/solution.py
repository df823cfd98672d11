"""Exercise 7, a solution: a ToolNode that turns what a tool raises into a message."""

import warnings

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.warnings import LangGraphDeprecatedSinceV10

from config import SYSTEM_PROMPT, chat_model, load_settings
from tools import TOOLS


def in_words(error: Exception) -> str:
    """Return the tool message for the model."""
    return f"Error: {error}"


def build_graph(model, tools):
    """Return the prebuilt agent; what a tool raises is told to the model."""
    node = ToolNode(tools, handle_tool_errors=in_words)
    with warnings.catch_warnings():  # create_agent is what the warning asks for
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        return create_react_agent(model, node, prompt=SYSTEM_PROMPT)


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    graph = build_graph(chat_model(settings), [tool(function) for function in tools])
    messages = [*history, HumanMessage(question)]
    return graph.invoke({"messages": messages})["messages"]
