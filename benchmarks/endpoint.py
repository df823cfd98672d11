"""The least that a model's server can be: it answers every request with one reply.

python -m benchmarks.endpoint    # prints its port
"""

from __future__ import annotations

import asyncio
import json
import re

REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call00001",
                        "type": "function",
                        "function": {
                            "name": "get_weather",
                            "arguments": '{"city": "北京"}',
                        },
                    }
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520},
}
_BODY = json.dumps(REPLY, ensure_ascii=False).encode()
_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
    % (len(_BODY), _BODY)
)
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._came = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        while (end := self._came.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._came, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._came) < whole:
                return
            self._came = self._came[whole:]
            self._transport.write(_ANSWER)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
