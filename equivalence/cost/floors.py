"""The floors: the same conversation by hand, on http.client and on an openai client."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

Create = Callable[..., Any]
"""Takes the fields of a request, returns the message of its reply as a dict."""


class Loop:
    """The plain loop over a list of messages; `schemas` are its tools as the wire has
    them, `functions` what runs."""

    def __init__(
        self,
        question: str,
        system: str,
        schemas: Sequence[Any],
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.question = question
        self.system = system
        self.schemas = schemas
        self.functions = functions

    def run(self, create: Create) -> None:
        """Ask until a reply has no tool calls."""
        messages: list[Any] = [
            {"role": "system", "content": self.system},
            {"role": "user", "content": self.question},
        ]
        while True:
            message = create(
                model="m", temperature=0.0, messages=messages, tools=self.schemas
            )
            messages.append(message)
            if not message.get("tool_calls"):
                return
            for call in message["tool_calls"]:
                arguments = json.loads(call["function"]["arguments"])
                result = self.functions[call["function"]["name"]](**arguments)
                messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": result}
                )


def http_loop(loop: Loop) -> Callable[[str], None]:
    """Return the loop on http.client: one kept connection, and json."""
    connections: dict[str, http.client.HTTPConnection] = {}

    def run(url: str) -> None:
        place = urlsplit(url)
        connection = connections.setdefault(
            place.netloc, http.client.HTTPConnection(place.netloc)
        )

        def create(**request: Any) -> Any:
            body = json.dumps(request, ensure_ascii=False).encode()
            reply = json.loads(_posted(connection, place.path, body))
            return reply["choices"][0]["message"]

        loop.run(create)

    return run


def _posted(connection: http.client.HTTPConnection, path: str, body: bytes) -> bytes:
    """The body of the reply; on a new connection where the server closed the old one
    because it was idle."""
    headers = {"content-type": "application/json"}
    try:
        connection.request("POST", f"{path}/chat/completions", body, headers)
        return connection.getresponse().read()
    except ConnectionError:
        connection.close()
        connection.request("POST", f"{path}/chat/completions", body, headers)
        return connection.getresponse().read()


def openai_loop(loop: Loop) -> Callable[[str], None]:
    """Return the loop on one openai client that is kept. Raises ImportError if openai
    is not installed."""
    import openai

    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1")

    def create(**request: Any) -> Any:
        reply = client.chat.completions.create(**request)
        return reply.choices[0].message.model_dump(exclude_none=True)

    def run(url: str) -> None:
        client.base_url = url
        loop.run(create)

    return run
