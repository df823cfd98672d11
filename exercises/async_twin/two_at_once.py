"""Two questions at once, with arun_agent in one event loop:

    python -m exercises.async_twin.two_at_once FILE

It is a process of its own, because the connections of the HTTP client belong to the
event loop in which they were made. Exit code 0 if both were under way together.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from equivalence.gateway import Gateway
from equivalence.gateway.upstreams import Reply, error_reply
from exercises.checking import fixed, load
from offline_model import OfflineModel

PATIENCE = 2.0
"""Seconds that the first request waits for the second."""


class Pair(OfflineModel):
    """An offline model that answers its first two requests only together."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = 0
        self.both = asyncio.Event()

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.arrived += 1
        if self.arrived == 2:
            self.both.set()
        try:
            await asyncio.wait_for(self.both.wait(), PATIENCE)
        except TimeoutError:
            return error_reply(400, "no second request came", retry=False)
        return await super().answer(request, authorization)


def main(file: Path) -> int:
    module: Any = load(file)
    with Gateway(Pair()) as gateway:
        settings = fixed(gateway_url=gateway.url)

        async def both() -> None:
            await asyncio.gather(
                *(module.arun_agent(q, settings=settings) for q in ("17 * 23", "2 + 2"))
            )

        try:
            asyncio.run(both())
        except Exception as error:  # whatever a learner's file raises
            print(" ".join(f"{type(error).__name__}: {error}".split()))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
