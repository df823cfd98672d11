"""gateway: the gateway alone, for any client."""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys

from equivalence.commands.arguments import run_file
from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.runs.recording import Recorder
from equivalence.runs.upstreams import Upstreams, new_gateway
from equivalence.settings import load_settings
from equivalence.table import Table


def gateway_command(arguments: argparse.Namespace, table: Table) -> int:
    """Serve until Ctrl-C; return the exit code."""
    settings = load_settings(
        base_url=arguments.upstream,
        model="named-by-the-client",
        needs_key=False,  # without one, the client's own is passed on
        repair=False if arguments.raw else None,
    )
    if not settings.base_url and not table.upstream:
        raise UsageError(
            _(
                "there is no endpoint behind it: give --upstream, set LLM_BASE_URL,"
                " or name an upstream in [tool.equivalence]"
            )
        )
    upstream = Upstreams(settings, table.upstream, table.folder)(0)
    with run_file(arguments.record) as file:
        recorder = None
        if file is not None:
            recorder = Recorder(
                file,
                settings,
                name=arguments.name,
                idle=arguments.idle,
                redaction=table.redaction,
            )
        try:
            gateway = new_gateway(
                settings,
                upstream,
                port=arguments.port,
                address=arguments.address,
                on_exchange=recorder.add if recorder else None,
            )
        except (OSError, OverflowError) as error:
            raise UsageError(
                _("port {port}: {error}").format(port=arguments.port, error=error)
            ) from None
        print(f"{gateway.url} -> {upstream}", flush=True)
        print(_("Requests are answered until Ctrl-C."), file=sys.stderr)
        # A conversation that is open is no garbage: with Python's own thresholds a busy
        # gateway looks through all of them several times a second.
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                gateway.serve()
        finally:
            if recorder:
                recorder.end()
    if recorder and recorder.errors:
        raise UsageError("; ".join(dict.fromkeys(recorder.errors)))
    return 0
