"""The prompt: the system message that describes tools and format, and the conversation
as the text that the model reads and writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from config import PROMPT_LANGUAGE, SYSTEM_PROMPT
from toolkit import chinese
from toolkit.policy import Tool
from toolkit.schema import tool_schema

Message = dict[str, Any]

STOP = ["\nObservation"]
"""Where the model must stop: what comes then is for the tool to say."""

LONGEST_UNREADABLE = 400
"""Characters of a reply that could not be read which the model gets to see again."""

FORMAT = """
Tools, one JSON Schema a line:
{tools}

Each reply has one of two forms. To use one of these tools, write this and stop; you get
its result as an observation:
Thought: <what is still missing>
Action: <one of {names}>
Action Input: <its arguments as one JSON object>

As soon as the observations answer the question, write this instead:
Thought: <what the observations say>
Final Answer: <the answer to the question>
"""


def system_prompt(tools: Mapping[str, Tool], summary: str = "") -> str:
    """Return the system message: the task, the tools, the format, and the summary of
    what was said before. ValueError says what is wrong with a tool."""
    schemas = [tool_schema(tool) for tool in tools.values()]
    lines = [json.dumps(schema, ensure_ascii=False) for schema in schemas]
    form = chinese.FORMAT if PROMPT_LANGUAGE == "zh" else FORMAT
    prompt = f"{SYSTEM_PROMPT}\n" + form.format(
        tools="\n".join(lines) or "(none)", names=", ".join(tools) or "no tools"
    )
    return f"{prompt}\nEarlier in this conversation:\n{summary}" if summary else prompt


def scratchpad(messages: Sequence[Message]) -> list[Message]:
    """Return the last question of the conversation and what followed it."""
    questions = [
        index
        for index, message in enumerate(messages)
        if message["role"] == "user" and "unreadable" not in message
    ]
    return list(messages[questions[-1] :]) if questions else []


def as_text(messages: Iterable[Message]) -> list[Message]:
    """Return the messages in the form in which they go over the wire: calls and results
    as text, of the roles only user and assistant."""
    return [{"role": _role(m), "content": _content(m)} for m in messages]


def _role(message: Message) -> str:
    return "assistant" if message["role"] == "assistant" else "user"


def _content(message: Message) -> str:
    content = str(message["content"])
    if message["role"] == "assistant":
        return _written(message, content)
    observed = message["role"] == "tool" or "unreadable" in message
    return f"Observation: {content}" if observed else content


def _written(message: Message, content: str) -> str:
    """An assistant message as the model should have written it; a beginning of what
    could not be read, as it was."""
    if "unreadable" in message:
        return content[:LONGEST_UNREADABLE] or "(nothing)"
    if "tool_calls" not in message:
        return f"Final Answer: {content}"
    function = message["tool_calls"][0]["function"]
    call = f"Action: {function['name']}\nAction Input: {function['arguments']}"
    return f"Thought: {content}\n{call}" if content else call
