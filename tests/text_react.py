"""The text protocol, as its tests write and read it."""

from __future__ import annotations

from equivalence.runs.observe import Observed
from toolkit.policy import by_name
from tools import TOOLS

NAMED = by_name(TOOLS)


def sent(observed: Observed, number: int = -1) -> list[str]:
    """The texts of a request, less the system message."""
    return [m["content"] for m in observed.exchanges[number].request["messages"][1:]]


BEIJING = {"city": "北京"}
