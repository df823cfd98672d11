"""The gateway, recording, beside mitmdump in reverse mode, saving.

    python -m benchmarks.gateway

Both stand in front of the same endpoint, each in a process of its own, as shipped: the
gateway with repairs and bounds, each conversation's end found and its record on the
disk; mitmdump with a save file. Every reply is compared with that of the endpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.endpoint import REPLY
from benchmarks.figures import Figure, interleaved, table
from config import SYSTEM_PROMPT
from equivalence.runs.files import read_runs
from stage4_mini_framework.registry import Registry
from tools import TOOLS

ROOT = Path(__file__).parent.parent
MITMDUMP = ROOT / ".venv-bench" / "bin" / "mitmdump"
CALLS = 4
CLIENTS = 32
ROUNDS = 400
SECONDS, SLICES = 1.5, 5
LONGEST_START = 30.0


def conversation(number: int) -> list[bytes]:
    """Return the bodies of the four requests of one question, each of which adds to the
    one before; no two questions are the same."""
    messages: list[Any] = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": f"How warm is it in Beijing? ({number})"},
    ]
    tools = Registry(TOOLS).schemas
    bodies = []
    for turn in range(CALLS):
        request = {"model": "m", "temperature": 0, "messages": messages, "tools": tools}
        bodies.append(json.dumps(request, ensure_ascii=False).encode())
        function = {"name": "get_weather", "arguments": '{"city": "北京"}'}
        call = {"id": f"asked{turn:04}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": call["id"], "content": "晴，23 度"}
        messages = [*messages, message, result]
    return bodies


@contextlib.contextmanager
def process(*words: str, first_line: bool = False) -> Iterator[str]:
    """Start a process, and end it at the end; yield its first line where it is asked
    for."""
    running = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert running.stdout
        yield running.stdout.readline().decode() if first_line else ""
    finally:
        running.terminate()
        running.wait(20)


@contextlib.contextmanager
def mitmdump(endpoint: str, file: Path) -> Iterator[str]:
    """Yield the base URL of a mitmdump in front of the endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(MITMDUMP), "--mode", f"reverse:{endpoint}", "--listen-port", str(port)]
    words += ["--listen-host", "127.0.0.1", "--quiet", "--save-stream-file", str(file)]
    words += ["--set", f"confdir={file.parent / 'mitmproxy'}"]
    with process(*words):
        end = time.monotonic() + LONGEST_START
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"


class Client:
    """One caller, one connection."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._path = f"{place.path}/chat/completions"
        self._connection = http.client.HTTPConnection(place.netloc)
        self._bodies = itertools.chain.from_iterable(
            map(conversation, itertools.count())
        )
        self._ready = [next(self._bodies) for _ in range(ROUNDS + 50)]

    def call(self) -> None:
        """Send the next request and check its reply."""
        body, headers = self._ready.pop(0), {"content-type": "application/json"}
        self._connection.request("POST", self._path, body, headers)
        reply = self._connection.getresponse().read()
        assert json.loads(reply) == REPLY, reply


class Load:
    """32 callers at once, each in its own conversations."""

    def __init__(self, url: str, first: int) -> None:
        self.place = urlsplit(url)
        self.questions = itertools.count(first)
        self.answered = 0

    async def _caller(self, end: float) -> None:
        place = self.place
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        head = (
            f"POST {place.path}/chat/completions HTTP/1.1\r\nhost: {place.netloc}\r\n"
            "content-type: application/json\r\ncontent-length: "
        ).encode()
        try:
            while True:
                for body in conversation(next(self.questions)):
                    writer.write(b"%s%d\r\n\r\n%s" % (head, len(body), body))
                    came = (await reader.readuntil(b"\r\n\r\n")).lower()
                    length = came.partition(b"content-length:")[2].split(b"\r")[0]
                    reply = await reader.readexactly(int(length))
                    assert json.loads(reply) == REPLY, reply
                    if time.perf_counter() > end:
                        return
                    self.answered += 1
        finally:
            writer.close()

    async def _callers(self) -> None:
        end = time.perf_counter() + SECONDS
        await asyncio.gather(*(self._caller(end) for _ in range(CLIENTS)))

    def rate(self) -> float:
        """Return requests per second."""
        self.answered = 0
        asyncio.run(self._callers())
        return self.answered / SECONDS


def measure() -> list[Figure]:
    """Return the figures; only those that stand alone where mitmdump is missing."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        endpoint = [sys.executable, "-m", "benchmarks.endpoint"]
        port = stack.enter_context(process(*endpoint, first_line=True)).strip()
        urls = {"endpoint": f"http://127.0.0.1:{port}/v1"}
        record = folder / "runs.jsonl"
        gateway = [sys.executable, "-m", "equivalence", "gateway", "--port", "0"]
        gateway += ["--upstream", urls["endpoint"], "--record", str(record)]
        gateway += ["--idle", "1"]
        recording = stack.enter_context(contextlib.ExitStack())
        line = recording.enter_context(process(*gateway, first_line=True))
        urls["gateway"] = line.split(" ")[0]
        if MITMDUMP.exists():
            origin = f"http://127.0.0.1:{port}"
            urls["mitmdump"] = stack.enter_context(
                mitmdump(origin, folder / "flows.mitm")
            )
        else:
            print("mitmproxy is missing: make .venv-bench/ready")
        clients = {name: Client(url).call for name, url in urls.items()}
        times = interleaved(clients, ROUNDS, warm=20)
        medians = {name: statistics.median(seen) for name, seen in times.items()}
        loads = {name: Load(url, 10_000_000) for name, url in urls.items()}
        rates: dict[str, list[float]] = {name: [] for name in loads}
        for number in range(SLICES + 1):
            for name, load in loads.items():
                rate = load.rate()
                if number:
                    rates[name].append(rate)
        recording.close()
        recorded = sum(len(run.exchanges) for run in read_runs(record))
    added = {name: seen - medians["endpoint"] for name, seen in medians.items()}
    speed = {name: statistics.median(seen) for name, seen in rates.items()}
    for name in urls:
        print(
            f"{name:12}{medians[name] * 1000:7.2f} ms a call, added"
            f" {added[name] * 1000:5.2f} ms; {speed[name]:7.0f} requests/s at {CLIENTS}"
        )
    print(f"{recorded} exchanges recorded")
    figures = [
        Figure("gateway, added a call", added["gateway"] * 1000, "ms"),
        Figure(f"gateway, {CLIENTS} clients", speed["gateway"], "requests/s"),
    ]
    if "mitmdump" in urls:
        share = added["gateway"] / added["mitmdump"]
        figures += [
            Figure("gateway, added a call", share, "of mitmdump's", 0.35),
            Figure(
                f"gateway, {CLIENTS} clients",
                speed["gateway"] / speed["mitmdump"],
                "times mitmdump's requests/s",
                4,
                at_least=True,
            ),
        ]
    return figures


if __name__ == "__main__":
    print(table(measure()))
