import sys

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from weather import INSTRUCTIONS, TOOLS

model = ChatOpenAI(model="any", temperature=0)
agent = create_react_agent(model, TOOLS, prompt=INSTRUCTIONS)

if __name__ == "__main__":
    state = agent.invoke({"messages": [("user", sys.argv[1])]})
    print(state["messages"][-1].content)
