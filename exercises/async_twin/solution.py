"""Exercise 3c, a solution: one event loop for the whole process, in a thread.

The connections that the HTTP client keeps open belong to the loop they were made in.
"""

import asyncio
import threading
from functools import cache

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from config import SYSTEM_PROMPT, chat_model, load_settings
from stage3_pure_loop.agent import run_tools, wants_tools
from toolkit.history import answered
from toolkit.langchain_tool import tool
from toolkit.policy import by_name
from tools import TOOLS


@cache
def the_loop() -> asyncio.AbstractEventLoop:
    """Return the one loop; it is started when it is first wanted."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


async def call_model(model, messages) -> AIMessage:
    """Return the model's reply to the conversation, the system message in front."""
    return await model.ainvoke([SystemMessage(SYSTEM_PROMPT), *messages])


def run_agent(question, **more) -> list:
    """Answer the question; return the conversation, the history included."""
    work = arun_agent(question, **more)
    return asyncio.run_coroutine_threadsafe(work, the_loop()).result()


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
