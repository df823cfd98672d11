"""Stage 4: the same for-loop on the openai client alone. LangChain is gone.

Unlike stage 3 messages are the dicts of the wire, the tools' schemas come from our own
registry, and a memory may choose what the model sees of a long conversation.
"""

import json
from functools import partial

from config import SYSTEM_PROMPT, load_settings, openai_model
from stage4_mini_framework.memory import whole
from stage4_mini_framework.registry import Registry
from stage4_mini_framework.reply import read_reply
from toolkit.history import answered
from toolkit.policy import map_calls, run_tool
from tools import TOOLS


def call_model(model, messages) -> dict:
    """Return the model's reply to the conversation, the system message in front."""
    system = {"role": "system", "content": SYSTEM_PROMPT}
    return read_reply(model(messages=[system, *messages]))


def wants_tools(reply) -> bool:
    """Tell whether the reply asks for tools; otherwise it is the answer."""
    return "tool_calls" in reply


def run_tools(reply, tools, settings) -> list[dict]:
    """Return the result of each tool call of the reply, in call order."""

    def run(call):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        content, _ = run_tool(name, json.loads(arguments), tools, settings, call["id"])
        return {"role": "tool", "tool_call_id": call["id"], "content": content}

    return map_calls(run, reply["tool_calls"], settings.tool_concurrency)


def run_agent(
    question, *, history=(), settings=None, tools=TOOLS, memory=whole
) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    tools = Registry(tools)
    model = openai_model(settings)
    if tools:
        model = partial(model, tools=tools.schemas)
    messages = [*answered(history), {"role": "user", "content": question}]
    for _ in range(settings.max_steps):
        reply = call_model(model, memory(messages))
        messages.append(reply)
        if not wants_tools(reply):
            break
        messages.extend(run_tools(reply, tools, settings))
    return messages
