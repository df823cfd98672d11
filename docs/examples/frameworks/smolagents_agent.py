import os
import sys

from smolagents import OpenAIModel, ToolCallingAgent, tool
from weather import INSTRUCTIONS, TOOLS

model = OpenAIModel("any", api_base=os.environ["OPENAI_BASE_URL"])
agent = ToolCallingAgent(
    tools=[tool(function) for function in TOOLS],
    model=model,
    instructions=INSTRUCTIONS,
    verbosity_level=0,
)
print(agent.run(sys.argv[1]))
