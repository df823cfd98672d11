"""The gateway: a loopback server through which every implementation reaches its model.

It speaks OpenAI chat completions, so any client in any language can stand in front of
it. Behind it stands one upstream: the offline model, a real endpoint, a recording of
one, or a script.
It records each exchange and, unless told otherwise, repairs broken replies.
"""

from gateway.cassette import Cassette, RecordedExchange
from gateway.server import Exchange, Gateway, RunLog
from gateway.upstreams import HttpUpstream, OfflineModel, Script, Upstream

__all__ = [
    "Cassette",
    "Exchange",
    "Gateway",
    "HttpUpstream",
    "OfflineModel",
    "RecordedExchange",
    "RunLog",
    "Script",
    "Upstream",
]
