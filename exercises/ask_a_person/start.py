"""Exercise 1, where it starts: create_agent with the shared tool policy.

Let it ask a person before get_stock_price runs.
"""

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.errors import GraphRecursionError

from config import SYSTEM_PROMPT, chat_model, load_settings
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name, run_tool
from tools import TOOLS


def build_graph(model, tools, settings):
    """Return the prebuilt agent; its tool calls go through our one tool policy."""

    @wrap_tool_call
    def run(request, execute):
        call = request.tool_call
        content, ok = run_tool(call["name"], call["args"], tools, settings, call["id"])
        identity = {"name": call["name"], "tool_call_id": call["id"]}
        return ToolMessage(content, status="success" if ok else "error", **identity)

    functions = [tool(function) for function in tools.values()]
    return create_agent(model, functions, system_prompt=SYSTEM_PROMPT, middleware=[run])


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
