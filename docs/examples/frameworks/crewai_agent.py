import os
import sys

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

from crewai import LLM, Agent
from crewai.tools import tool
from weather import INSTRUCTIONS, TOOLS

agent = Agent(
    role="weather assistant",
    goal="answer the question",
    backstory=INSTRUCTIONS,
    tools=[tool(function) for function in TOOLS],
    llm=LLM(model="openai/any", base_url=os.environ["OPENAI_BASE_URL"], temperature=0),
)
print(agent.kickoff(sys.argv[1]).raw)
