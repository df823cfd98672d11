"""Playback: a run's model calls answered from what was recorded, in order.

It holds no address and no client, so it cannot reach a network. A request that is not
the recorded one at its place is a miss: an error that names the first field in which
the two differ.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from equivalence.gateway.canonical import canonical_request, differences, excerpts
from equivalence.gateway.exchange import Exchange
from equivalence.gateway.streaming import to_stream
from equivalence.gateway.upstreams import Reply, Upstream, dump, error_reply, model_list

LONGEST_VALUE = 200


class Playback:
    """Answers one run from recorded model calls: exchanges without those that the
    client repeated. Not to be shared between runs.

    Model calls that were under way together may come in another order than recorded:
    among them, the first with the same request answers. `ignores` tells of a JSON path
    in a request whether what stands there is passed over; `redact` takes out of a
    request what was taken out of the recorded ones.
    """

    def __init__(
        self,
        model_calls: Sequence[Exchange] = (),
        ignores: Callable[[str], bool] = lambda path: False,
        redact: Callable[[dict[str, Any]], dict[str, Any]] = lambda request: request,
    ) -> None:
        self.calls = list(model_calls)
        self.ignores = ignores
        self.redact = redact
        self.requests = [canonical_request(call.request) for call in self.calls]
        self.left = OrderedDict.fromkeys(range(len(self.calls)))
        """The calls, by index, that have no reply yet, in order."""
        starts = accumulate((call.began for call in reversed(self.calls)), min)
        self._earliest = [*starts][::-1]
        """When the first of a call and all behind it began."""
        self.asked = 0

    def __str__(self) -> str:
        return "the recording"

    def next_reply(self, request: dict[str, Any]) -> Reply | None:
        """Return the recorded reply to the request and go on; None where the request is
        not one of those recorded at this place."""
        sent = canonical_request(self.redact(request))
        for index in self._together():
            if self._difference(index, sent) is None:
                del self.left[index]
                self.asked += 1
                return as_recorded(self.calls[index], request)
        return None

    def _difference(self, index: int, sent: Any) -> tuple[str, Any, Any] | None:
        """The first difference that counts from the recorded request at this place."""
        found = differences(self.requests[index], sent)
        return next((each for each in found if not self.ignores(each[0])), None)

    def _together(self) -> list[int]:
        """The next call that has no reply yet, and those that had begun before it
        ended."""
        found: list[int] = []
        ended = 0.0
        for index in self.left:
            if not found:
                ended = self.calls[index].ended
            elif self._earliest[index] >= ended:
                break  # nor had any later one: a long run is not searched at each call
            elif self.calls[index].began >= ended:
                continue
            found.append(index)
        return found

    def miss(self, request: dict[str, Any]) -> str:
        """Return in one line how the request differs from the recorded one at its
        place."""
        number = self.asked + 1
        if not self.calls:
            return "no model call is recorded here"
        where = f"model call {number} is not in the recording"
        nearest = next(iter(self.left)) if self.left else len(self.calls) - 1
        if not self.left:
            where += f", which ends after model call {len(self.calls)}"
        sent = canonical_request(self.redact(request))
        place = self._difference(nearest, sent)
        if place is None:
            return f"{where} with this same request"
        path = place[0]
        recorded, sent_value = excerpts(*place[1:], LONGEST_VALUE)
        return (
            f"{where}: {path} differs from model call {nearest + 1}:"
            f" recorded {recorded}, sent {sent_value}"
        )

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        found = self.next_reply(request)
        return found or error_reply(404, self.miss(request), retry=False)

    async def models(self, authorization: str | None) -> Reply:
        return model_list("recording")

    async def close(self) -> None:
        pass


class Fork:
    """Answers from a recording up to a model call, and from another upstream from there
    on. The name of the model does not count: it is what differs."""

    def __init__(
        self,
        model_calls: Sequence[Exchange],
        first_live: int,
        live: Upstream,
        ignores: Callable[[str], bool] = lambda path: False,
        redact: Callable[[dict[str, Any]], dict[str, Any]] = lambda request: request,
    ) -> None:
        recorded = model_calls[: first_live - 1]
        self.recorded = Playback(
            recorded, lambda path: path == "$.model" or ignores(path), redact
        )
        self.live = live

    def __str__(self) -> str:
        return str(self.live)

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        if self.recorded.left:
            return await self.recorded.answer(request, authorization)
        return await self.live.answer(request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self.live.models(authorization)

    async def close(self) -> None:
        await self.live.close()


def as_recorded(recorded: Exchange, request: dict[str, Any]) -> Reply:
    """Return the upstream's reply as one body or, where the request asks for it, as a
    stream. A failure is final: what a repetition of the request met is recorded too."""
    reply, headers = recorded.raw_reply, {"x-should-retry": "false"}
    status = recorded.raw_status or 502
    if isinstance(reply, str):
        return Reply(status, reply.encode("utf-8", "replace"), "text/plain", headers)
    if request.get("stream") is True and isinstance(reply, dict) and "choices" in reply:
        return Reply(status, to_stream(reply, request), "text/event-stream")
    return Reply(status, dump(reply), headers=headers)
