"""An agent of another library, warm, in a process of an environment that has it.

FOLDER/bin/python peers.py LIBRARY QUESTION

Each line of standard input is a base URL and a number of model calls. The answer is a
line of JSON: the seconds of that question, and the depth of the stack at the tool. This
file imports nothing of the instrument: it is run by its path.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

MODULES = {
    "smolagents": "smolagents",
    "openai-agents": "agents",
    "pydantic-ai": "pydantic_ai",
}
"""The libraries, and what each is imported as."""
PACKAGES = "openai-agents 'pydantic-ai-slim[openai]' 'smolagents[openai]'"

Run = Callable[[str, str, int], Any]
"""Asks at a base URL a question with so many model calls."""

depths: list[int] = []


def look_up(key: str) -> str:
    """Look up the value of a key.

    Args:
        key: the key
    """
    depth, frame = 0, sys._getframe(1)
    while frame and frame.f_code.co_filename != __file__:
        depth += 1
        frame = frame.f_back  # type: ignore[assignment]
    depths.append(depth)
    return f"value of {key}"


def smolagents() -> Run:
    """Return the ToolCallingAgent."""
    library: Any = importlib.import_module("smolagents")
    model = library.OpenAIModel(
        "m", api_base="http://127.0.0.1", api_key="none", temperature=0.0
    )
    agent = library.ToolCallingAgent(
        tools=[library.tool(look_up)], model=model, verbosity_level=-1
    )

    def run(url: str, question: str, calls: int) -> None:
        model.client.base_url = url
        agent.run(question, max_steps=calls)

    return run


def openai_agents() -> Run:
    """Return the Agent, on chat completions."""
    library: Any = importlib.import_module("agents")
    library.set_tracing_disabled(True)  # it would send the runs away
    client = library.AsyncOpenAI(base_url="http://127.0.0.1", api_key="none")
    agent = library.Agent(
        name="a",
        instructions="Use the tools.",
        tools=[library.function_tool(look_up)],
        model=library.OpenAIChatCompletionsModel("m", client),
        model_settings=library.ModelSettings(temperature=0.0),
    )

    def run(url: str, question: str, calls: int) -> None:
        client.base_url = url
        library.Runner.run_sync(agent, question, max_turns=calls)

    return run


def pydantic_ai() -> Run:
    """Return the Agent, on chat completions."""
    library: Any = importlib.import_module("pydantic_ai")
    models: Any = importlib.import_module("pydantic_ai.models.openai")
    providers: Any = importlib.import_module("pydantic_ai.providers.openai")
    openai: Any = importlib.import_module("openai")
    client = openai.AsyncOpenAI(base_url="http://127.0.0.1", api_key="none")
    model = models.OpenAIChatModel(
        "m", provider=providers.OpenAIProvider(openai_client=client)
    )
    agent = library.Agent(
        model,
        system_prompt="Use the tools.",
        tools=[look_up],
        model_settings={"temperature": 0.0},
    )

    def run(url: str, question: str, calls: int) -> None:
        client.base_url = url
        limits = library.UsageLimits(request_limit=calls)
        agent.run_sync(question, usage_limits=limits)

    return run


def main(library: str, question: str) -> None:
    """Answer line by line. What the library itself prints goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    build = {
        "smolagents": smolagents,
        "openai-agents": openai_agents,
        "pydantic-ai": pydantic_ai,
    }
    importlib.import_module(MODULES[library])
    run = None
    for line in sys.stdin:
        url, calls = line.split()
        depths.clear()
        began = time.perf_counter()
        run = run or build[library]()  # the first question builds it
        run(url, question, int(calls))
        took = time.perf_counter() - began
        out.write(json.dumps([took, max(depths, default=0)]) + "\n")
        out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
