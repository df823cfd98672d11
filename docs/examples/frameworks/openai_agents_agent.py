import os
import sys

from agents import (
    Agent,
    AsyncOpenAI,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from weather import INSTRUCTIONS, TOOLS

set_tracing_disabled(True)  # it would send the runs to api.openai.com
client = AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"])
agent = Agent(
    name="weather",
    instructions=INSTRUCTIONS,
    tools=[function_tool(tool) for tool in TOOLS],
    model=OpenAIChatCompletionsModel("any", client),  # or /v1/responses
)
print(Runner.run_sync(agent, sys.argv[1]).final_output)
