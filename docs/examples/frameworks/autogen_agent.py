import asyncio
import os
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from weather import INSTRUCTIONS, TOOLS

client = OpenAIChatCompletionClient(
    model="any",
    base_url=os.environ["OPENAI_BASE_URL"],
    model_info={
        "vision": False,
        "function_calling": True,
        "json_output": False,
        "structured_output": False,
        "family": "unknown",
    },
)
agent = AssistantAgent(
    "weather",
    client,
    tools=TOOLS,
    system_message=INSTRUCTIONS,
    max_tool_iterations=10,  # 1 by default: it ends with the first tool's result
)
print(asyncio.run(agent.run(task=sys.argv[1])).messages[-1].content)
