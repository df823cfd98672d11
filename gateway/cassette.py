"""The cassette upstream: a run's model calls answered from a recording, in order.

It holds no address and no client, so it cannot reach a network. A request that is not
the recorded one at its place is a miss: an error that names the first field in which
the two differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.canonical import canonical_request, differences, excerpts
from gateway.streaming import to_stream
from gateway.upstreams import Reply, dump, error_reply, model_list

LONGEST_VALUE = 200


@dataclass(frozen=True)
class RecordedExchange:
    """One exchange of a recording: the canonical request and the upstream's reply."""

    request: dict[str, Any]
    reply: Any
    """Unrepaired: a JSON value, or text where it was none."""
    status: int = 200
    attempt: int = 0
    """How often the client had tried this request before."""


class Cassette:
    """Answers one run from its recorded exchanges; attempts that failed and were
    repeated by the client are passed over. Not to be shared between runs."""

    def __init__(self, exchanges: Sequence[RecordedExchange] = ()) -> None:
        following = [*(exchange.attempt for exchange in exchanges[1:]), 0]
        self.exchanges = [
            exchange
            for exchange, repeated in zip(exchanges, following, strict=False)
            if not repeated
        ]
        self.position = 0

    def next_reply(self, request: dict[str, Any]) -> Reply | None:
        """Return the recorded reply to the request and go on to the next exchange; None
        where the request is not the one recorded at this place."""
        if self.miss(request):
            return None
        recorded = self.exchanges[self.position]
        self.position += 1
        return as_recorded(recorded, request)

    def miss(self, request: dict[str, Any]) -> str | None:
        """Return in one line how the request differs from the recorded one at its
        place; None where it is the same."""
        number = self.position + 1
        if not self.exchanges:
            return "no model call is recorded here"
        ended = self.position >= len(self.exchanges)
        nearest = self.exchanges[-1 if ended else self.position]
        place = next(differences(nearest.request, canonical_request(request)), None)
        where = f"model call {number} is not in the recording"
        if ended:
            where += f", which ends after model call {len(self.exchanges)}"
            if place is None:
                return f"{where} with this same request"
        elif place is None:
            return None
        path = place[0]
        recorded, sent = excerpts(*place[1:], LONGEST_VALUE)
        nearest_number = min(number, len(self.exchanges))
        return (
            f"{where}: {path} differs from model call {nearest_number}:"
            f" recorded {recorded}, sent {sent}"
        )

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        found = self.next_reply(request)
        return found or error_reply(404, f"{self.miss(request)}", retry=False)

    async def models(self, authorization: str | None) -> Reply:
        return model_list("cassette")

    async def close(self) -> None:
        pass


def as_recorded(recorded: RecordedExchange, request: dict[str, Any]) -> Reply:
    """Return the reply as one body or, where the request asks for it, as a stream. A
    failure is final: what a repetition of the request met is recorded too."""
    reply, headers = recorded.reply, {"x-should-retry": "false"}
    if isinstance(reply, str):
        body = reply.encode("utf-8", "replace")
        return Reply(recorded.status, body, "text/plain", headers)
    if request.get("stream") is True and isinstance(reply, dict) and "choices" in reply:
        return Reply(recorded.status, to_stream(reply, request), "text/event-stream")
    return Reply(recorded.status, dump(reply), headers=headers)
