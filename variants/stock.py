"""The agents as the frameworks and the articles ship them, without the shared policy.

They are implementations like the ladder's, so that the matrix shows where the originals
really part. Each is the published code, made to fit the contract of run_agent.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.warnings import LangGraphDeprecatedSinceV10

from config import SYSTEM_PROMPT, Settings, chat_model

Tools = Sequence[Callable[..., Any]]


def prebuilt(
    question: str, *, history: Sequence[Any] = (), settings: Settings, tools: Tools
) -> list[Any]:
    """create_react_agent as it comes: tools that raise end the run, and at the limit it
    answers "Sorry, need more steps"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        graph = create_react_agent(
            chat_model(settings), _wrapped(tools), prompt=SYSTEM_PROMPT
        )
    return _invoke(graph, question, history, settings)


def successor(
    question: str, *, history: Sequence[Any] = (), settings: Settings, tools: Tools
) -> list[Any]:
    """create_agent as it comes: at the limit it raises GraphRecursionError."""
    from langchain.agents import create_agent

    graph = create_agent(
        chat_model(settings), _wrapped(tools), system_prompt=SYSTEM_PROMPT
    )
    return _invoke(graph, question, history, settings)


def stategraph(
    question: str, *, history: Sequence[Any] = (), settings: Settings, tools: Tools
) -> list[Any]:
    """The articles' StateGraph: the system message is in the state, the tools node is a
    for-loop that turns exceptions into text and results into str()."""
    named = {each.name: each for each in _wrapped(tools)}

    def run_tools(state: MessagesState) -> dict[str, Any]:
        calls = state["messages"][-1].tool_calls  # type: ignore[union-attr]
        return {"messages": [_run_as_published(call, named) for call in calls]}

    return _drawn(question, history, settings, tools, run_tools)


def stategraph_toolnode(
    question: str, *, history: Sequence[Any] = (), settings: Settings, tools: Tools
) -> list[Any]:
    """The same StateGraph with langgraph's ToolNode in place of the for-loop."""
    return _drawn(question, history, settings, tools, ToolNode(_wrapped(tools)))


def loop(
    question: str, *, history: Sequence[Any] = (), settings: Settings, tools: Tools
) -> list[Any]:
    """The article's run_agent: a for-loop, exceptions as text, results as str()."""
    named = {each.name: each for each in _wrapped(tools)}
    model = chat_model(settings).bind_tools(list(named.values()))
    messages: list[Any] = [
        SystemMessage(SYSTEM_PROMPT),
        *history,
        HumanMessage(question),
    ]
    for _ in range(settings.max_steps):
        reply = model.invoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            break
        messages += [_run_as_published(call, named) for call in reply.tool_calls]
    return messages[1:]


def _wrapped(tools: Tools) -> list[BaseTool]:
    return [tool(function) for function in tools]


def _run_as_published(call: Any, named: dict[str, BaseTool]) -> ToolMessage:
    try:
        text = str(named[call["name"]].invoke(call["args"]))
    except Exception as error:  # as published
        text = f"工具执行出错: {error}"
    return ToolMessage(text, tool_call_id=call["id"])


def _drawn(
    question: str,
    history: Sequence[Any],
    settings: Settings,
    tools: Tools,
    run_tools: Any,
) -> list[Any]:
    model = chat_model(settings).bind_tools(_wrapped(tools))

    def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def next_node(state: MessagesState) -> str:
        last: Any = state["messages"][-1]
        return "tools" if last.tool_calls else END

    graph = StateGraph(MessagesState)
    graph.add_node("agent", call_model)
    graph.add_node("tools", run_tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", next_node, ["tools", END])
    graph.add_edge("tools", "agent")
    before = [SystemMessage(SYSTEM_PROMPT), *history]
    return _invoke(graph.compile(), question, before, settings)[1:]


def _invoke(
    graph: Any, question: str, history: Sequence[Any], settings: Settings
) -> list[Any]:
    """Invoke as published, with the limit that allows as many model calls."""
    state = graph.invoke(
        {"messages": [*history, HumanMessage(question)]},
        {"recursion_limit": 2 * settings.max_steps},
    )
    return list(state["messages"])
