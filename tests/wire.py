"""A client's requests, and what stands behind the gateway in its tests."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import threading
from pathlib import Path
from typing import Any

import openai
import pytest

from config import Settings
from equivalence.implementations import LADDER, load
from equivalence.observe import Observed, observe
from gateway import (
    Gateway,
    HttpUpstream,
    OfflineModel,
    RunLog,
    Script,
    Upstream,
)
from gateway.upstreams import Reply
from tools import TOOLS

ROOT = Path(__file__).parent.parent
CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
DONE = {"message": {"content": "done"}}


implementations = pytest.mark.parametrize(
    "implementation", LADDER, ids=[entry.name for entry in LADDER]
)


NAMES = (f"run-{number}" for number in itertools.count())


def before(
    server: Gateway,
    script: Upstream,
    front: Gateway,
    key: str | None = None,
    timeout: float = 20,
) -> RunLog:
    """A run of `front` whose upstream is a run of `server` that plays the script."""
    behind = server.open_run(next(NAMES), script)
    upstream = HttpUpstream(server.url(behind.name), key, timeout)
    return front.open_run(next(NAMES), upstream)


class Answer:
    """What came back over a plain connection."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"]["message"])


def send(
    port: int,
    body: Any = HELLO,
    path: str = CHAT,
    method: str = "POST",
    **headers: str,
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"content-type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, data, {k: v for k, v in sent.items() if v})
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def says(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def client(gateway: Gateway, run: str | None = None, **more: Any) -> openai.OpenAI:
    more = {"max_retries": 0, "api_key": "client-key", **more}
    return openai.OpenAI(base_url=gateway.url(run), **more)


class Waits(OfflineModel):
    """An upstream that never answers; `asked` is set when a request has arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


class Keeps:
    """An upstream in front of another that keeps what it is asked."""

    def __init__(self, inner: Upstream) -> None:
        self.inner = inner
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.requests.append(request)
        self.keys.append(authorization)
        return await self.inner.answer(request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self.inner.models(authorization)

    async def close(self) -> None:
        await self.inner.close()


CALL = {
    "id": "a",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "北京"}'},
}


WEATHER_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object"}},
}


def watched(
    implementation: Any,
    settings: Settings,
    gateway: Gateway,
    question: str,
    upstream: Upstream | None = None,
) -> Observed:
    agent = load(implementation.target)
    name = implementation.name
    return observe(name, agent, question, settings, gateway, TOOLS, upstream=upstream)


def offers_tools(implementation: Any, settings: Settings, gateway: Gateway) -> None:
    """Skip an implementation whose model has no tool calls."""
    seen = watched(implementation, settings, gateway, "hi", Script([DONE]))
    if "tools" not in seen.exchanges[0].request:
        pytest.skip("it offers its tools as text")
