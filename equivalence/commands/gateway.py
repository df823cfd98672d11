"""gateway: the gateway alone, for any client."""

from __future__ import annotations

import argparse
import contextlib
import sys

from equivalence.errors import UsageError
from equivalence.runs.upstreams import new_gateway, upstreams
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
    upstream = upstreams(settings, table.upstream, table.folder)(0)
    try:
        gateway = new_gateway(
            settings, upstream, port=arguments.port, address=arguments.address
        )
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {arguments.port}: {error}") from None
    print(f"{gateway.url} -> {upstream}", flush=True)
    print("Requests are answered until Ctrl-C.", file=sys.stderr)
    with contextlib.suppress(KeyboardInterrupt):
        gateway.serve()
    return 0
