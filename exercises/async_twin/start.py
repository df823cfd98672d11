"""Exercise 3c, where it starts: stage 3, async, with a mistake in run_agent.

The first question is answered. Make the ones after it work, too.
"""

import asyncio

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from config import SYSTEM_PROMPT, chat_model, load_settings
from stage3_pure_loop.agent import run_tools, wants_tools
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name
from tools import TOOLS


async def call_model(model, messages) -> AIMessage:
    """Return the model's reply to the conversation, the system message in front."""
    return await model.ainvoke([SystemMessage(SYSTEM_PROMPT), *messages])


def run_agent(question, **more) -> list:
    """Answer the question; return the conversation, the history included."""
    return asyncio.run(arun_agent(question, **more))


async def arun_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """The same for callers that are async themselves."""
    settings = settings or load_settings()
    tools = by_name(tools)
    model = chat_model(settings)
    if tools:
        model = model.bind_tools([tool(function) for function in tools.values()])
    messages = [*answered(history), HumanMessage(question)]
    for _ in range(settings.max_steps):
        reply = await call_model(model, messages)
        messages.append(reply)
        if not wants_tools(reply):
            break
        messages.extend(await asyncio.to_thread(run_tools, reply, tools, settings))
    return messages
