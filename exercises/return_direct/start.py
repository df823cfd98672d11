"""Exercise 2, where it starts: the graph of stage 2.

Let it end as soon as a tool in RETURN_DIRECT has run: its result is the answer.
"""

from functools import partial

from langchain_core.messages import HumanMessage
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph

from config import chat_model, load_settings
from stage2_stategraph.agent import call_model, run_tools, wants_tools
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name
from tools import TOOLS

RETURN_DIRECT = {"get_stock_price"}


def build_graph(model, tools, settings):
    """Return the compiled graph: model -> tools -> model … until no tool is wanted."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", partial(call_model, model=model))
    graph.add_node("tools", partial(run_tools, tools=tools, settings=settings))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", wants_tools, {True: "tools", False: END})
    graph.add_edge("tools", "model")
    return graph.compile()


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    tools = by_name(tools)
    model = chat_model(settings)
    if tools:
        model = model.bind_tools([tool(function) for function in tools.values()])
    graph = build_graph(model, tools, settings)
    messages = [*answered(history), HumanMessage(question)]
    limit = {"recursion_limit": 2 * settings.max_steps}  # the model and its tools
    try:
        for state in graph.stream({"messages": messages}, limit, stream_mode="values"):
            messages = state["messages"]
    except GraphRecursionError:
        pass  # the budget is spent: what was gathered is the result
    return messages
