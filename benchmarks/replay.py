"""Replay: the time of one call, however many exchanges are recorded.

    python -m benchmarks.replay

A recording of one long run is answered in order, without a server in between: a call is
what the upstream takes to find its reply. The requests hold the last messages alone, as
those of an agent with a short memory do, so that none grows with the run.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from benchmarks.endpoint import REPLY
from benchmarks.figures import Figure, table
from equivalence.gateway import Exchange, Playback

SIZES = (100, 1_000, 10_000)
ROUNDS = 9
MOST_SLOWER = 1.2
"""What counts as flat: a call in the largest recording against one in the smallest."""


def recording(size: int) -> list[Exchange]:
    """Return the model calls of a run."""
    return [
        Exchange(_request(number), REPLY, 200, REPLY, 200, began=number * 9.0, ms=5.0)
        for number in range(size)
    ]


def _request(number: int) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "You are a careful assistant."},
        {"role": "user", "content": f"What is the weather on day {number}?"},
    ]
    return {"model": "m", "temperature": 0, "messages": messages}


async def _played(size: int) -> float:
    """Seconds a call."""
    requests = [json.loads(json.dumps(_request(number))) for number in range(size)]
    playback = Playback(recording(size))
    began = time.perf_counter()
    for request in requests:
        reply = await playback.answer(request, None)
        assert reply.status == 200, reply.body
    took = time.perf_counter() - began
    assert playback.asked == size
    return took / size


def measure() -> list[Figure]:
    """Return the time of a call in each recording, and how it grows."""
    seen: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(ROUNDS):
        for size in SIZES:
            seen[size].append(asyncio.run(_played(size)))
    took = {size: min(times) for size, times in seen.items()}
    slower = took[SIZES[-1]] / took[SIZES[0]]
    return [
        *(
            Figure(f"replay of {size:,} exchanges", seconds * 1e6, "µs a call")
            for size, seconds in took.items()
        ),
        Figure(
            f"replay, {SIZES[-1]:,} against {SIZES[0]:,}", slower, "times", MOST_SLOWER
        ),
    ]


if __name__ == "__main__":
    print(table(measure()))
