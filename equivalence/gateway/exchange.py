"""One request to the model and what came back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Exchange:
    """One request and its reply, as the gateway saw both."""

    request: dict[str, Any]
    """As the implementation sent it, parsed."""
    reply: Any = None
    """What the implementation got: the repaired reply, or the error body; None where it
    got nothing, because it went away or the run ended first."""
    status: int | None = None
    """The HTTP status with which it got that; None where it got nothing."""
    raw_reply: Any = None
    """What the upstream answered: a JSON value, or text where it was none."""
    raw_status: int | None = None
    """The HTTP status with which it did."""
    repairs: list[str] = field(default_factory=list)
    """The names of the repairs between the two, see gateway.repairs.REPAIRS."""
    attempt: int = 0
    """How often the client had tried this request before."""
    began: float = 0.0
    """Milliseconds from the beginning of the run to the request."""
    ms: float | None = None
    """Milliseconds to the end of the reply; None while it is open, or where it never
    came."""
    body: bytes = b""
    """The request, byte for byte; a run record does not keep it."""

    @property
    def ended(self) -> float:
        """Milliseconds from the beginning of the run to the end of the reply; infinite
        where it never came."""
        return float("inf") if self.ms is None else self.began + self.ms
