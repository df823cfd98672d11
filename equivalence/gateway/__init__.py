"""The gateway: a loopback server through which every implementation reaches its model.

It speaks OpenAI chat completions, so any client in any language can stand in front of
it. Behind it stands one upstream: a real endpoint, a recording of one, a script, or a
model of your own. It records each exchange and, unless told otherwise, repairs broken
replies.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Exchange": "exchange",
    "Fork": "playback",
    "Gateway": "server",
    "HttpUpstream": "endpoint",
    "Kept": "kept",
    "OpenRun": "run",
    "Playback": "playback",
    "Script": "script",
    "Upstream": "upstreams",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for: comparing two files needs no server."""
    if name in _HOMES:
        return getattr(import_module(f"equivalence.gateway.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
