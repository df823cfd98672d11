"""Exercise 4a, a solution: the window of stage 4 over the messages of LangChain."""

from langchain_core.messages import HumanMessage

from config import chat_model, load_settings
from stage3_pure_loop.agent import call_model, run_tools, wants_tools
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name
from tools import TOOLS

WINDOW = 3


def window(messages) -> list:
    """Return the newest messages up to WINDOW; calls and their results stay together,
    the last question and what came last are always there."""
    rounds: list[list] = []
    for message in messages:
        if message.type == "tool":
            rounds[-1].append(message)
        else:
            rounds.append([message])
    questions = [i for i, part in enumerate(rounds) if part[0].type == "human"]
    kept = {questions[-1], len(rounds) - 1}
    room = WINDOW - sum(len(rounds[index]) for index in kept)
    for index in reversed(range(len(rounds))):
        if index in kept:
            continue
        room -= len(rounds[index])
        if room < 0:
            break
        kept.add(index)
    return [message for index in sorted(kept) for message in rounds[index]]


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    settings = settings or load_settings()
    tools = by_name(tools)
    model = chat_model(settings)
    if tools:
        model = model.bind_tools([tool(function) for function in tools.values()])
    messages = [*answered(history), HumanMessage(question)]
    for _ in range(settings.max_steps):
        reply = call_model(model, window(messages))
        messages.append(reply)
        if not wants_tools(reply):
            break
        messages.extend(run_tools(reply, tools, settings))
    return messages
