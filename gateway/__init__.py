"""The gateway: a loopback server through which every implementation reaches its model.

It speaks OpenAI chat completions, so any client in any language can stand in front of
it. Behind it stands one upstream: the offline model, a real endpoint, a recording of
one, or a script. It records each exchange and, unless told otherwise, repairs broken
replies.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.cassette import Cassette as Cassette
    from gateway.cassette import RecordedExchange as RecordedExchange
    from gateway.server import Exchange as Exchange
    from gateway.server import Gateway as Gateway
    from gateway.server import RunLog as RunLog
    from gateway.upstreams import HttpUpstream as HttpUpstream
    from gateway.upstreams import OfflineModel as OfflineModel
    from gateway.upstreams import Script as Script
    from gateway.upstreams import Upstream as Upstream

_HOMES = {
    "Cassette": "gateway.cassette",
    "RecordedExchange": "gateway.cassette",
    "Exchange": "gateway.server",
    "Gateway": "gateway.server",
    "RunLog": "gateway.server",
    "HttpUpstream": "gateway.upstreams",
    "OfflineModel": "gateway.upstreams",
    "Script": "gateway.upstreams",
    "Upstream": "gateway.upstreams",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for: comparing two files needs no server."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'gateway' has no attribute {name!r}")
