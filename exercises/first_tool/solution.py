"""Exercise 0, a solution: a function with type hints and a docstring, in TOOLS."""

import json

from config import SYSTEM_PROMPT, load_settings, openai_model
from toolkit.schema import tool_schema
from tools import calculate, get_weather


def count_letters(word: str, letter: str) -> str:
    """Count how often a letter stands in ONE word.

    Use it for any question about the letters of a word. Capital and small letters
    count alike.
    """
    return str(word.casefold().count(letter.casefold()))


TOOLS = (get_weather, calculate, count_letters)


def run_agent(question, *, history=(), settings=None, tools=TOOLS) -> list:
    """Answer the question; return the conversation, the history included."""
    model = openai_model(settings or load_settings())
    functions = {function.__name__: function for function in tools}
    schemas = [{"type": "function", "function": tool_schema(f)} for f in tools]
    system = {"role": "system", "content": SYSTEM_PROMPT}
    messages = [*history, {"role": "user", "content": question}]
    for _ in range(10):
        reply = model(messages=[system, *messages], tools=schemas).choices[0].message
        messages.append(reply.to_dict())
        if not reply.tool_calls:
            break
        for call in reply.tool_calls:
            arguments = json.loads(call.function.arguments)
            result = functions[call.function.name](**arguments)
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": result}
            )
    return messages
