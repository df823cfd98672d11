"""The agent before the change: a loop on the openai client."""

import json

from openai import OpenAI

SCHEMA = {
    "name": "get_weather",
    "description": "Look up the weather of one city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def run(question, *, base_url=None, tools=()):
    client = OpenAI(base_url=base_url)
    named = {tool.__name__: tool for tool in tools}
    messages = [{"role": "user", "content": question}]
    for _ in range(10):
        reply = client.chat.completions.create(
            model="any",
            messages=messages,
            tools=[{"type": "function", "function": SCHEMA}],
        )
        message = reply.choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            result = named[call.function.name](**json.loads(call.function.arguments))
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": result}
            )
    return messages
