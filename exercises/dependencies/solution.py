"""Exercise 4b, a solution: a call waits for what it needs of its own turn."""

import json
from functools import partial

from config import load_settings, openai_model
from stage4_mini_framework.agent import call_model, wants_tools
from stage4_mini_framework.registry import Registry
from toolkit.history import answered
from toolkit.policy import run_tool
from tools import TOOLS

NEEDS = {"calculate": {"get_stock_price"}, "unit_convert": {"get_weather"}}


def run_tools(reply, tools, settings) -> list[dict]:
    """Return the result of each tool call of the reply, in call order."""
    asked = {call["function"]["name"] for call in reply["tool_calls"]}

    def run(call):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if missing := asked & NEEDS.get(name, set()):
            names = ", ".join(sorted(missing))
            content = f"Error: {name} was not run. Call it when you know {names}."
        else:
            content, _ = run_tool(
                name, json.loads(arguments), tools, settings, call["id"]
            )
        return {"role": "tool", "tool_call_id": call["id"], "content": content}

    return [run(call) for call in reply["tool_calls"]]


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    tools = Registry(tools)
    model = openai_model(settings)
    if tools:
        model = partial(model, tools=tools.schemas)
    messages = [*answered(history), {"role": "user", "content": question}]
    for _ in range(settings.max_steps):
        reply = call_model(model, messages)
        messages.append(reply)
        if not wants_tools(reply):
            break
        messages.extend(run_tools(reply, tools, settings))
    return messages
