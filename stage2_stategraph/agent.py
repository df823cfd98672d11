"""Stage 2: the same agent as a StateGraph drawn by hand: two nodes, three edges.

Unlike stage 1 nothing is prebuilt: what the model's node does, what the tools' node
does and which edge is taken are functions of the state, each a place for your own.
"""

from functools import partial

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph

from config import SYSTEM_PROMPT, chat_model, load_settings
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name, map_calls, run_tool
from tools import TOOLS


def call_model(state, model) -> dict:
    """Add the model's reply to the conversation, the system message in front."""
    reply = model.invoke([SystemMessage(SYSTEM_PROMPT), *state["messages"]])
    return {"messages": [reply]}


def wants_tools(state) -> bool:
    """Tell whether the reply asks for tools; otherwise it is the answer."""
    return bool(state["messages"][-1].tool_calls)


def run_tools(state, tools, settings) -> dict:
    """Add the result of each tool call of the reply, in call order."""

    def run(call):
        content, ok = run_tool(call["name"], call["args"], tools, settings, call["id"])
        identity = {"name": call["name"], "tool_call_id": call["id"]}
        return ToolMessage(content, status="success" if ok else "error", **identity)

    calls = state["messages"][-1].tool_calls
    return {"messages": map_calls(run, calls, settings.tool_concurrency)}


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
