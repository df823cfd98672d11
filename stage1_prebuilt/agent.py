"""Stage 1: the agent in one call, langgraph's prebuilt create_react_agent.

The top of the ladder: you hold a model, tools and a prompt; the loop, the nodes and
the state are the library's. Stages 2 to 5 take one layer away each. call_model and
wants_tools are inside the library here, and run_tools is its ToolNode.
"""

import warnings
from typing import NotRequired

from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.errors import GraphRecursionError
from langgraph.graph import MessagesState
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.warnings import LangGraphDeprecatedSinceV10

from config import SYSTEM_PROMPT, chat_model, load_settings
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name, run_tool
from tools import TOOLS


class State(MessagesState):
    """As a plain field, remaining_steps no longer makes the library answer "Sorry,
    need more steps" in the model's place when the budget ends."""

    remaining_steps: NotRequired[int]


def build_graph(model, tools, settings):
    """Return the prebuilt agent; its tool calls go through our one tool policy."""

    def run(request, execute):
        call = request.tool_call
        content, ok = run_tool(call["name"], call["args"], tools, settings, call["id"])
        identity = {"name": call["name"], "tool_call_id": call["id"]}
        return ToolMessage(content, status="success" if ok else "error", **identity)

    node = ToolNode([tool(f) for f in tools.values()], wrap_tool_call=run)
    with warnings.catch_warnings():  # successor.py is what the warning asks for
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        return create_react_agent(model, node, prompt=SYSTEM_PROMPT, state_schema=State)


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    graph = build_graph(chat_model(settings), by_name(tools), settings)
    messages = [*answered(history), HumanMessage(question)]
    limits = {
        "recursion_limit": 2 * settings.max_steps,  # the model and its tools
        "max_concurrency": settings.tool_concurrency,
    }
    try:
        for state in graph.stream({"messages": messages}, limits, stream_mode="values"):
            messages = state["messages"]
    except GraphRecursionError:
        pass  # the budget is spent: what was gathered is the result
    return messages
