"""A client's requests, and what stands behind the gateway in its tests."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from config import Settings
from equivalence.gateway import Gateway, HttpUpstream, OpenRun, Upstream
from equivalence.gateway.streaming import event
from equivalence.gateway.upstreams import Reply, Streamed
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import Observed, observe
from equivalence.table import read_table
from offline_model import OfflineModel
from tools import TOOLS

ROOT = Path(__file__).parent.parent
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
DONE = {"message": {"content": "done"}}


LADDER = tuple(read_table(ROOT).implementations.values())
STOCK = tuple(read_table(ROOT).variants.values())
EXACT = ("stage1", "successor", "stage2", "stage3")
"""The implementations whose requests have the very same bytes."""

implementations = pytest.mark.parametrize(
    "implementation", LADDER, ids=[entry.name for entry in LADDER]
)
_CALLING = [entry for entry in LADDER if entry.protocol == "tool_calls"]
calling = pytest.mark.parametrize(
    "implementation", _CALLING, ids=[entry.name for entry in _CALLING]
)
"""Those whose model is offered tools, not told of them in the prompt."""


@contextmanager
def before(
    server: Gateway, script: Upstream, front: Gateway, key: str | None = None
) -> Iterator[OpenRun]:
    """A run of `front` whose upstream is a run of `server` that plays the script."""
    with (
        server.open_run(script) as behind,
        front.open_run(HttpUpstream(behind.url, key)) as run,
    ):
        yield run


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
    url: str,
    body: Any = HELLO,
    path: str = "/chat/completions",
    method: str = "POST",
    **headers: str,
) -> Answer:
    """Send a request to a base URL."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=20)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"content-type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(
        method, address.path + path, data, {k: v for k, v in sent.items() if v}
    )
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def says(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def client(run: OpenRun, **more: Any) -> openai.OpenAI:
    more = {"max_retries": 0, "api_key": "client-key", **more}
    return openai.OpenAI(base_url=run.url, **more)


class Waits(OfflineModel):
    """An upstream that never answers; `asked` is set when a request has arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


class Writes(OfflineModel):
    """An upstream that streams what a test says, when the test says it."""

    def __init__(self) -> None:
        super().__init__()
        self._said: deque[bytes | None] = deque()
        self._listening: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self.left = threading.Event()
        """Whether nobody reads on."""

    def say(self, *contents: str, **delta: Any) -> None:
        for content in contents or ("",):
            choice = {"index": 0, "delta": {**delta, "content": content}}
            self.send(event({"id": "x", "choices": [choice]}))

    def end(self, finish: str = "stop") -> None:
        choice = {"index": 0, "delta": {}, "finish_reason": finish}
        self.send(event({"choices": [choice]}), b"data: [DONE]\n\n", None)

    def send(self, *data: bytes | None) -> None:
        self._said.extend(data)
        for loop, said in list(self._listening):
            with suppress(RuntimeError):  # nobody listens any more
                loop.call_soon_threadsafe(said.set)

    async def stream(self, request: Any, authorization: str | None) -> Streamed:
        return Streamed(self._pieces(), self.left.set)

    async def _pieces(self) -> AsyncIterator[bytes]:
        said = asyncio.Event()
        self._listening.append((asyncio.get_running_loop(), said))
        while True:
            said.clear()
            while self._said:
                if (data := self._said.popleft()) is None:
                    return
                yield data
            await said.wait()


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
    implementation: Implementation,
    settings: Settings,
    gateway: Gateway,
    question: str,
    upstream: Upstream | None = None,
) -> Observed:
    return observe(
        implementation, question, settings, gateway, TOOLS, upstream=upstream
    )
