"""Which tool call is under way, told by an implementation's policy to who watches.

An implementation need not tell it: then a call and its execution are matched by what
came of it. With it, the two are one for certain.
"""

from __future__ import annotations

from contextvars import ContextVar

call_id: ContextVar[str | None] = ContextVar("call_id", default=None)
"""The id of the tool call for which a tool is being run; None where nobody told."""
