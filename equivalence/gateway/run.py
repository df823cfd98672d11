"""A run on the wire: an address of its own, its exchanges, and its end.

Nothing that comes after the end is added to the run or to another one: its address
answers 410 from then on, and what was under way is cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from equivalence.gateway.exchange import Exchange
from equivalence.gateway.kept import Kept
from equivalence.gateway.upstreams import Upstream


class OpenRun:
    """One run: who answers it, what was exchanged, until `close`. A context manager."""

    def __init__(
        self,
        address: str,
        url: str,
        upstream: Upstream,
        *,
        kept: Kept | None = None,
        on_exchange: Callable[[Exchange], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        read_along: bool = True,
        forget: Callable[[OpenRun], None],
    ) -> None:
        self.address = address
        self.url = url
        """Base URL for the clients of this run, and of no other."""
        self.upstream = upstream
        self.kept = Kept() if kept is None else kept
        self.read_along = read_along
        """Whether a stream is read while it is written; else it need not hurry."""
        self.exchanges: list[Exchange] = []
        self.closed = False
        self._began = time.perf_counter()
        self._on_exchange = on_exchange
        self._on_text = on_text
        self._failure: Exception | None = None
        self._forget = forget
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: set[asyncio.Task[Any]] = set()

    def __enter__(self) -> OpenRun:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def milliseconds(self) -> float:
        """Return the time since the run began."""
        return (time.perf_counter() - self._began) * 1000

    @property
    def answered(self) -> int:
        """How many model calls have been answered: repeated attempts count once."""
        return sum(exchange.attempt == 0 for exchange in self.exchanges)

    def close(self) -> None:
        """End the run: what is under way is cancelled and waited for, what comes later
        is refused. Raises what `on_exchange` raised, if it did."""
        self._forget(self)
        if self._loop is None:
            self.closed = True
        else:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        if self._failure:
            raise self._failure

    async def _end(self) -> None:
        self.closed = True
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------ called by the gateway alone

    async def answering(self, work: asyncio.Task[Any]) -> bool:
        """Wait for the work of one request, which ends early with the run. Return
        whether it was done."""
        self._loop = asyncio.get_running_loop()
        self._under_way.add(work)
        try:
            await asyncio.wait([work])
        finally:
            self._under_way.discard(work)
            work.cancel()
        return not work.cancelled()

    def observed(self, exchange: Exchange) -> None:
        """Tell the observer of an exchange that is complete."""
        if self._on_exchange is not None:
            self._tell(self._on_exchange, exchange)

    def written(self, text: str) -> None:
        """Tell the observer of a piece of a streamed reply that goes to the client."""
        if self._on_text is not None and text:
            self._tell(self._on_text, text)

    def _tell(self, observer: Callable[[Any], None], what: Any) -> None:
        """An observer can change nothing: what it raises is raised at the end of the
        run, in the thread that ends it."""
        if self._failure or self.closed:
            return
        try:
            observer(what)
        except Exception as error:
            self._failure = error
