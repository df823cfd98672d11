"""Exercise 3a, where it starts: the loop of stage 3.

Make the model ask for one tool at a time, whatever the question.
"""

from langchain_core.messages import HumanMessage

from config import chat_model, load_settings
from stage3_pure_loop.agent import call_model, run_tools, wants_tools
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name
from tools import TOOLS


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
