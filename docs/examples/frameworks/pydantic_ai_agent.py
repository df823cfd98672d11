import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from weather import INSTRUCTIONS, TOOLS

model = OpenAIChatModel("any")  # the base URL comes from OPENAI_BASE_URL
agent = Agent(model, instructions=INSTRUCTIONS, tools=TOOLS)
print(agent.run_sync(sys.argv[1]).output)
