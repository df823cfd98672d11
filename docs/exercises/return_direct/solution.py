"""Exercise 2, a solution: one edge more, from the tools to the end."""

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph

from config import SYSTEM_PROMPT, chat_model, load_settings
from tools import TOOLS, by_name, map_calls, run_tool

RETURN_DIRECT = {"get_stock_price"}


def call_model(model, messages) -> AIMessage:
    """Return the model's reply to the conversation, the system message in front."""
    return model.invoke([SystemMessage(SYSTEM_PROMPT), *messages])


def wants_tools(reply) -> bool:
    """Tell whether the reply asks for tools; otherwise it is the answer."""
    return bool(reply.tool_calls)


def run_tools(reply, tools, settings) -> list[ToolMessage]:
    """Return the result of each tool call of the reply, in call order."""

    def run(call):
        content, ok = run_tool(call["name"], call["args"], tools, settings)
        return ToolMessage(
            content,
            name=call["name"],
            tool_call_id=call["id"],
            status="success" if ok else "error",
        )

    return map_calls(run, reply.tool_calls, settings.tool_concurrency)


def build_graph(model, tools, settings):
    """Return the compiled graph: model -> tools -> model … until no tool is wanted."""

    def model_node(state):
        return {"messages": [call_model(model, state["messages"])]}

    def tools_node(state):
        return {"messages": run_tools(state["messages"][-1], tools, settings)}

    def next_node(state):
        return "tools" if wants_tools(state["messages"][-1]) else END

    def after_tools(state):
        """END where a result of this turn is an answer by itself."""
        for message in reversed(state["messages"]):
            if message.type != "tool":
                return "model"
            if message.name in RETURN_DIRECT:
                return END
        return "model"

    graph = StateGraph(MessagesState)
    graph.add_node("model", model_node)
    graph.add_node("tools", tools_node)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", next_node, ["tools", END])
    graph.add_conditional_edges("tools", after_tools, ["model", END])
    return graph.compile()


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    tools = by_name(tools)
    model = chat_model(settings)
    if tools:
        model = model.bind_tools([tool(function) for function in tools.values()])
    graph = build_graph(model, tools, settings)
    messages = [*history, HumanMessage(question)]
    limit = {"recursion_limit": 2 * settings.max_steps}  # the model and its tools
    try:
        for state in graph.stream({"messages": messages}, limit, stream_mode="values"):
            messages = state["messages"]
    except GraphRecursionError:
        pass  # the budget is spent: what was gathered is the result
    return messages
