"""Which model answers: the endpoint of the settings, or what the table names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivalence.errors import UsageError
from equivalence.gateway import Gateway, Upstream
from equivalence.language import N_, _
from equivalence.runs.implementation import load
from equivalence.settings import Settings

if TYPE_CHECKING:
    from equivalence.gateway import HttpUpstream

NO_MODEL = N_(
    "there is no model to ask: give --base-url and --model, set"
    " LLM_BASE_URL and LLM_MODEL, name an upstream in"
    ' [tool.equivalence] (upstream = "script:FILE.yaml" plays'
    " replies), or replay a recording"
)

NewUpstream = Callable[[int], Upstream]
"""Returns what answers a run, given the run's number in its plan."""


class Upstreams:
    """Makes the upstream of each run: one endpoint for all, where the settings name
    one; else what the table names, made anew for each run: a script, or `module:name`,
    called with `run_seed=` the run's number.

    Raises UsageError if there is neither.
    """

    def __init__(self, settings: Settings, named: str | None, folder: Path) -> None:
        self.named = named
        self.folder = folder
        self._endpoint = http_upstream(settings) if settings.base_url else None
        self._make: Callable[..., Upstream] | None = None
        if self._endpoint:
            return
        if not named:
            raise UsageError(_(NO_MODEL))
        kind, _colon, rest = named.partition(":")
        if kind == "script":
            from equivalence.gateway.script import Script, read_script

            items = read_script(folder / rest)
            self._make = lambda run_seed: Script(items)
        else:
            self._make = load(named)

    def __call__(self, number: int) -> Upstream:
        if self._endpoint:
            return self._endpoint
        assert self._make
        return self._make(run_seed=number)


def http_upstream(settings: Settings) -> HttpUpstream:
    """Return the endpoint of the settings, which must name one."""
    from equivalence.gateway import HttpUpstream

    assert settings.base_url
    key = settings.api_key.get_secret_value() if settings.api_key else None
    if settings.upstream_api == "responses":
        from equivalence.gateway.responses_endpoint import ResponsesEndpoint

        return ResponsesEndpoint(settings.base_url, key)
    return HttpUpstream(settings.base_url, key)


def new_gateway(settings: Settings, upstream: Upstream, **more: Any) -> Gateway:
    """Return a gateway, not started yet, as the settings want it."""
    return Gateway(
        upstream,
        repair=settings.repair,
        echo_reasoning=settings.echo_reasoning,
        echo_attached=settings.echo_attached,
        timeout=settings.timeout,
        limit_field=settings.max_tokens_field,
        **more,
    )
