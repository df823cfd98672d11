"""The model of this folder: replies from a script, whoever asks.

An agent that answers by calling a tool `final_answer`, as those of smolagents do, gets
the last text as such a call.
"""

import json
from dataclasses import replace
from typing import Any

from equivalence.gateway import Script
from equivalence.gateway.upstreams import Reply, dump

QUESTION = "Which is warmer, Beijing or Shanghai? In Fahrenheit, please."
ANSWER = "Shanghai, at 82.4 °F."


def _call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call{number:05}", "type": "function", "function": function}


CITIES = [
    _call(1, "get_weather", {"city": "Beijing"}),
    _call(2, "get_weather", {"city": "Shanghai"}),
]
TURNS = [CITIES, [_call(3, "to_fahrenheit", {"celsius": 28})]]
CALLS = [{"message": {"content": None, "tool_calls": calls}} for calls in TURNS]
AS_TEXT = {"message": {"content": ANSWER}}
FINAL = [_call(4, "final_answer", {"answer": ANSWER})]
AS_CALL = {"message": {"content": None, "tool_calls": FINAL}}
USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class Scripted(Script):
    """Two turns of calls, then the answer."""

    def __init__(self, run_seed: int) -> None:
        super().__init__([*CALLS, AS_TEXT])

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        names = [tool["function"]["name"] for tool in request.get("tools") or ()]
        self.items = [*CALLS, AS_CALL if "final_answer" in names else AS_TEXT]
        reply = await super().answer(request, authorization)
        counted = {**json.loads(reply.body), "usage": USAGE}  # smolagents reads it
        return replace(reply, body=dump(counted))
