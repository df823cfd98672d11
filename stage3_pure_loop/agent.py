"""Stage 3: the agent as a for-loop over a list of messages. langgraph is gone.

Unlike stage 2 there is no graph: nodes are calls, the conditional edge is an `if`, the
reducer is `append`, the recursion limit is the `range` of the loop.
"""

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from config import SYSTEM_PROMPT, chat_model, load_settings
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name, map_calls, run_tool
from tools import TOOLS


def call_model(model, messages) -> AIMessage:
    """Return the model's reply to the conversation, the system message in front."""
    return model.invoke([SystemMessage(SYSTEM_PROMPT), *messages])


def wants_tools(reply) -> bool:
    """Tell whether the reply asks for tools; otherwise it is the answer."""
    return bool(reply.tool_calls)


def run_tools(reply, tools, settings) -> list[ToolMessage]:
    """Return the result of each tool call of the reply, in call order."""

    def run(call):
        content, ok = run_tool(call["name"], call["args"], tools, settings, call["id"])
        identity = {"name": call["name"], "tool_call_id": call["id"]}
        return ToolMessage(content, status="success" if ok else "error", **identity)

    return map_calls(run, reply.tool_calls, settings.tool_concurrency)


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    tools = by_name(tools)
    model = chat_model(settings)
    if tools:
        model = model.bind_tools([tool(function) for function in tools.values()])
    messages = [*answered(history), HumanMessage(question)]
    for _ in range(settings.max_steps):
        reply = call_model(model, messages)
        messages.append(reply)
        if not wants_tools(reply):
            break
        messages.extend(run_tools(reply, tools, settings))
    return messages
