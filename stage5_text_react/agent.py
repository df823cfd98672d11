"""Stage 5: the same for-loop for models without tool calling.

Unlike stage 4 a request carries no `tools`: the prompt describes them, the parser reads
one action out of each reply, and its result goes back as text, "Observation: …". What
cannot be read is answered like a call: with a reminder of the format.
"""

import json
from functools import partial

from config import load_settings, openai_model
from stage5_text_react.memory import recall
from stage5_text_react.parser import parse
from stage5_text_react.prompt import STOP, as_text, scratchpad, system_prompt
from stage5_text_react.reply import as_message, read_text
from toolkit.history import answered
from toolkit.policy import by_name, run_tool
from tools import TOOLS


def call_model(model, opening, messages, tools) -> dict:
    """Return what the model's reply says: an action, an answer, or neither. The
    `opening` is the system message and what is remembered of earlier questions."""
    view = [*opening, *as_text(scratchpad(messages))]
    text, end = read_text(model(messages=view))
    return as_message(parse(text, tools, end), messages)


def wants_tools(reply) -> bool:
    """Tell whether the loop goes on, with a tool or with a reminder of the format."""
    return bool(reply.get("tool_calls") or reply.get("unreadable"))


def run_tools(reply, tools, settings) -> list[dict]:
    """Return the result of the one action; the reminder where there is none to run."""
    if reminder := reply.get("unreadable"):
        return [{"role": "user", "content": reminder, "unreadable": True}]
    call = reply["tool_calls"][0]
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    content, _ = run_tool(name, json.loads(arguments), tools, settings, call["id"])
    return [{"role": "tool", "tool_call_id": call["id"], "content": content}]


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    tools = by_name(tools)
    model = partial(openai_model(settings), stop=STOP)
    sums_up = settings.base_url is not None and settings.max_steps > 1
    memory = recall(answered(history), tools, model if sums_up else None)
    prompt = system_prompt(tools, memory.summary)
    opening = [{"role": "system", "content": prompt}, *as_text(memory.recent)]
    messages = [*history, {"role": "user", "content": question, **memory.note()}]
    for _ in range(settings.max_steps - memory.model_calls):
        reply = call_model(model, opening, messages, tools)
        messages.append(reply)
        if not wants_tools(reply):
            break
        messages.extend(run_tools(reply, tools, settings))
    return messages
