"""Exercise 0, where it starts: a whole agent.

The model reads the conversation and asks for tools, or answers. That is all there is.
Give it a tool that counts letters: count_letters(word, letter).
"""

import json

from config import SYSTEM_PROMPT, load_settings, openai_model
from toolkit.schema import tool_schema
from tools import calculate, get_weather

TOOLS = (get_weather, calculate)


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
