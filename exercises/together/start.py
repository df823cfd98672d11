"""Exercise 3b, where it starts: stage 3 with its calls one after another.

Run the calls of one turn at the same time; the results stay in call order.
"""

from langchain_core.messages import HumanMessage, ToolMessage

from config import chat_model, load_settings
from stage3_pure_loop.agent import call_model, wants_tools
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name, run_tool
from tools import TOOLS


def run_tools(reply, tools, settings) -> list[ToolMessage]:
    """Return the result of each tool call of the reply, in call order."""

    def run(call):
        content, ok = run_tool(call["name"], call["args"], tools, settings, call["id"])
        identity = {"name": call["name"], "tool_call_id": call["id"]}
        return ToolMessage(content, status="success" if ok else "error", **identity)

    return [run(call) for call in reply.tool_calls]


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
