"""What time it is for the tools of a run: the judge fixes it, so that runs compare."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime

clock: ContextVar[datetime | None] = ContextVar("clock", default=None)
"""The fixed time of the run under way; None is the real time."""


def now() -> datetime:
    """Return the time that a tool is to take for the present one."""
    return clock.get() or datetime.now().astimezone()
