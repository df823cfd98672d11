"""The agent whose one run every sample beside it holds: openai's client and a loop."""

import json
import sys

import openai

ANSWERS = {"get_weather": "上海: 雷阵雨, 28°C", "calculate": "56"}


def tool(name, argument):
    """What the model is told of a tool."""
    properties = {argument: {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": [argument]}
    function = {"name": name, "description": name, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [tool("get_weather", "city"), tool("calculate", "expression")]


def run(question, run_tool=lambda call: ANSWERS[call.function.name], client=None):
    """Answer the question; `run_tool` is where a tracer may stand."""
    client = client or openai.OpenAI(api_key="none")
    messages = [
        {"role": "system", "content": "You are a helper."},
        {"role": "user", "content": question},
    ]
    while True:
        completion = client.chat.completions.create(
            model="offline-demo", temperature=0, messages=messages, tools=TOOLS
        )
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return messages
        for call in message.tool_calls:
            content = run_tool(call)
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": content}
            )


QUESTION = "上海天气怎么样？28 * 2 = ?"

if __name__ == "__main__":
    print(json.dumps(run(" ".join(sys.argv[1:]) or QUESTION), ensure_ascii=False))
