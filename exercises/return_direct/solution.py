"""Exercise 2, a solution: one edge more, from the tools to the end."""

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


def answers_itself(state) -> bool:
    """Tell whether a result of this turn is the answer."""
    for message in reversed(state["messages"]):
        if message.type != "tool":
            return False
        if message.name in RETURN_DIRECT:
            return True
    return False


def build_graph(model, tools, settings):
    """Return the compiled graph: model -> tools -> model … until no tool is wanted."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", partial(call_model, model=model))
    graph.add_node("tools", partial(run_tools, tools=tools, settings=settings))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", wants_tools, {True: "tools", False: END})
    graph.add_conditional_edges("tools", answers_itself, {True: END, False: "model"})
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
