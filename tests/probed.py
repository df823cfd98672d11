"""Endpoints for the probe to be tried on: each answers by what it is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

from equivalence.gateway.script import Script, item
from equivalence.gateway.upstreams import Reply, dump, error_reply, model_list

CALL = '{"city": "Beijing"}'
ANSWER = "It is 17.3 degrees Celsius in Beijing, with light rain."
ACTION = 'Thought: I need it.\nAction: get_weather\nAction Input: {"city": "Beijing"}'


def kind(request: Mapping[str, Any]) -> str:
    """What the probe asks with this request: one, two, result or text."""
    last = request["messages"][-1]
    if not request.get("tools"):
        return "text" if "Action:" in request["messages"][0]["content"] else "plain"
    if last["role"] == "tool":
        return "result"
    return "two" if "Shanghai" in last["content"] else "one"


class Server:
    """An endpoint with a habit of its own for each kind of request; a list is what it
    answers in turn. `refuse` looks at a request first, and may say what is wrong."""

    def __init__(
        self, *, models: Reply | None = None, refuse: Any = None, **habits: Any
    ) -> None:
        usual = {
            "one": {"calls": [["get_weather", CALL]]},
            "two": {"calls": [["get_weather", CALL], ["get_weather", CALL]]},
            "result": ANSWER,
            "text": ACTION,
            "plain": "Hello.",
        }
        self.listed = models or model_list("m")
        self.refuse = refuse
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.replies: dict[str, Iterator[Any]] = {}
        for name, habit in (usual | habits).items():
            self.replies[name] = cycle(habit if isinstance(habit, list) else [habit])

    def __str__(self) -> str:
        return "the server"

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.requests.append(request)
        self.keys.append(authorization)
        if self.refuse and (said := self.refuse(request)):
            if isinstance(said, Reply):
                return said
            return error_reply(400, said, kind="invalid_request_error")
        asked = dict(item(next(self.replies[kind(request)])))
        for call in (asked.get("message") or {}).get("tool_calls") or ():
            if isinstance(call, dict) and str(call.get("id", "")).startswith("call0"):
                call["id"] = f"call_{len(self.requests)}_{call['id'][-1]}"
        return await Script([asked]).answer(request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return self.listed

    async def close(self) -> None:
        pass


class Recorded:
    """An endpoint that answers as a probe's `--json` document says it did once, and
    knows no other request."""

    def __init__(self, file: Path) -> None:
        self.document = json.loads(file.read_text(encoding="utf-8"))
        self.left = list(self.document["exchanges"])

    def __str__(self) -> str:
        return "the recorded server"

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        for exchange in self.left:
            if exchange["request"] == request:
                self.left.remove(exchange)
                script = Script([{"body": exchange["reply"]}])
                if exchange["status"] == 200 and request.get("stream"):
                    choice = exchange["reply"]["choices"][0]
                    script = Script([{"message": choice["message"]}])
                return await script.answer(request, authorization)
        return error_reply(404, "this request was not recorded")

    async def models(self, authorization: str | None) -> Reply:
        return Reply(200, dump(self.document["models"]))

    async def close(self) -> None:
        pass
