"""The text protocol, as its tests write and read it."""

from __future__ import annotations

from typing import Any

from wire import LADDER

from equivalence.gateway import Kept
from equivalence.runs.observe import Observed
from equivalence.runs.record import Run
from toolkit.policy import by_name
from tools import TOOLS

NAMED = by_name(TOOLS)
(STAGE5,) = (entry for entry in LADDER if entry.name == "stage5")


def spoken(conversation: list[Any]) -> Observed:
    """What a conversation that was never run leaves to the next question."""
    return Observed(Run("stage5", "earlier"), conversation, Kept(), "")


def sent(observed: Observed, number: int = -1) -> list[str]:
    """The texts of a request, less the system message."""
    return [
        m["content"] for m in observed.run.exchanges[number].request["messages"][1:]
    ]


BEIJING = {"city": "北京"}
