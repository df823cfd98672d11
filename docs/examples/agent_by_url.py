"""An agent that knows nothing of this project: HTTP, JSON, and a base URL.

    OPENAI_BASE_URL=http://127.0.0.1:8100/v1 python agent_by_url.py "问题"

It brings its own tool. Written in any other language it would look the same.
"""

import json
import os
import sys
from urllib.request import Request, urlopen

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
WEATHER = {"北京": "25 °C, sunny", "上海": "28 °C, cloudy"}
TOOL = {
    "name": "get_weather",
    "description": "Look up the weather of ONE city. Known cities: 北京, 上海.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def ask(messages: list) -> dict:
    body = {
        "model": os.environ.get("LLM_MODEL", "offline"),
        "messages": messages,
        "tools": [{"type": "function", "function": TOOL}],
    }
    request = Request(
        URL, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


messages: list = [{"role": "user", "content": sys.argv[1]}]
for _ in range(10):
    reply = ask(messages)
    messages.append(reply)
    for call in reply.get("tool_calls") or ():
        city = json.loads(call["function"]["arguments"])["city"]
        text = WEATHER.get(city, "Error: no such city.")
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    if not reply.get("tool_calls"):
        print(reply["content"])
        break
