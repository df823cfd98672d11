"""create_react_agent as it comes: an agent in three lines."""

import sys
import warnings

from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent

from config import SYSTEM_PROMPT, chat_model, load_settings
from tools import TOOLS

warnings.simplefilter("ignore")  # it says that create_agent replaces it


def answer(question, tools=TOOLS, **limits):
    """Return the messages of the conversation."""
    model = chat_model(load_settings())
    agent = create_react_agent(model, [tool(t) for t in tools], prompt=SYSTEM_PROMPT)
    return agent.invoke({"messages": [("user", question)]}, limits)["messages"]


if __name__ == "__main__":
    for message in answer(sys.argv[1]):
        calls = [(c["name"], c["args"]) for c in getattr(message, "tool_calls", ())]
        print(f"{type(message).__name__:13}{message.content or calls}")
