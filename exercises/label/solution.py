"""Exercise 5, a solution: the label is put right before the text is parsed."""

import re
from functools import partial

from config import load_settings, openai_model
from stage5_text_react.agent import run_tools, wants_tools
from stage5_text_react.memory import recall
from stage5_text_react.parser import parse
from stage5_text_react.prompt import STOP, as_text, scratchpad, system_prompt
from stage5_text_react.reply import as_message, read_text
from toolkit.history import answered
from toolkit.policy import by_name
from tools import TOOLS

LABEL = re.compile("^answer:", re.IGNORECASE | re.MULTILINE)


def call_model(model, opening, messages, tools) -> dict:
    """Return what the model's reply says: an action, an answer, or neither. The
    `opening` is the system message and what is remembered of earlier questions."""
    view = [*opening, *as_text(scratchpad(messages))]
    text, end = read_text(model(messages=view))
    if not re.search("final answer", text, re.IGNORECASE):
        text = LABEL.sub("Final Answer:", text)
    return as_message(parse(text, tools, end), messages)


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
