"""The smallest agent that the judge can run: a function of this signature."""

import json

from openai import OpenAI

from config import SYSTEM_PROMPT
from toolkit.schema import tool_schema


def run_agent(question, *, history=(), settings=None, tools=()) -> list:
    client = OpenAI(base_url=settings.gateway_url, api_key="held-by-the-gateway")
    named = {function.__name__: function for function in tools}
    offered = [{"type": "function", "function": tool_schema(f)} for f in tools]
    messages = [*history, {"role": "user", "content": question}]
    for _ in range(settings.max_steps):
        reply = client.chat.completions.create(
            model=settings.model,
            temperature=settings.temperature,
            stream=False,
            messages=[{"role": "system", "content": SYSTEM_PROMPT}, *messages],
            tools=offered,
        )
        message = reply.choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            result = named[call.function.name](**json.loads(call.function.arguments))
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": str(result)}
            )
    return messages
