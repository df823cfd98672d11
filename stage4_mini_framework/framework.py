"""The mini-framework: an agent that holds its tools, its memory and its conversation.

agent = Agent(memory=Window(messages=20))

@agent.tool
def get_weather(city: str) -> str:
    "Look up the weather of ONE city."
    return "25 °C, sunny"

agent.run("北京天气怎么样？")
agent.run("And in Fahrenheit?")
agent.clear()
"""

from __future__ import annotations

from collections.abc import Iterable

from config import Settings
from stage4_mini_framework.agent import run_agent
from stage4_mini_framework.memory import Memory, Message, whole
from stage4_mini_framework.registry import Registry
from toolkit.policy import Tool


class Agent:
    """The loop of agent.py with what it needs from one question to the next."""

    def __init__(
        self,
        *,
        tools: Iterable[Tool] = (),
        memory: Memory = whole,
        settings: Settings | None = None,
    ) -> None:
        self.tools = Registry(tools)
        self.memory = memory
        self.settings = settings
        self.messages: list[Message] = []
        """The whole conversation, whatever the memory lets the model see of it."""

    def tool(self, function: Tool) -> Tool:
        """Decorate a function to make it a tool; ValueError where it cannot be one."""
        self.tools.add(function)
        return function

    def run(self, question: str) -> str:
        """Answer the question, the conversation in mind. The answer is empty where the
        budget of model calls ended first; self.messages holds how far it came."""
        self.messages = run_agent(
            question,
            history=self.messages,
            settings=self.settings,
            tools=self.tools.values(),
            memory=self.memory,
        )
        last = self.messages[-1]
        return str(last["content"]) if last["role"] == "assistant" else ""

    def clear(self) -> None:
        """Forget the conversation; the tools stay."""
        self.messages = []
