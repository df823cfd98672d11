"""The gateway alone: python -m gateway [--upstream URL] [--port N]."""

from __future__ import annotations

import argparse
import contextlib
import sys

from config import load_settings, make_gateway
from usage import UsageError


def main() -> int:
    """Serve until Ctrl-C; return the exit code, 2 for what cannot be served."""
    parser = argparse.ArgumentParser(
        prog="python -m gateway",
        description="A loopback OpenAI-compatible server in front of a model. Without"
        " --upstream and LLM_BASE_URL the offline model stands behind it.",
    )
    parser.add_argument("--upstream", metavar="URL", help="endpoint (LLM_BASE_URL)")
    parser.add_argument("--port", type=int, default=8100, help="default 8100; 0: any")
    parser.add_argument("--raw", action="store_true", help="pass replies unrepaired")
    arguments = parser.parse_args()
    try:
        settings = load_settings(
            base_url=arguments.upstream,
            model="named-by-the-client",
            needs_key=False,  # without one, the client's own is passed on
            repair=False if arguments.raw else None,
        )
        gateway = make_gateway(settings, arguments.port)
    except (UsageError, OSError, OverflowError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{gateway.url()} -> {settings.base_url or 'the offline model'}", flush=True)
    print("Requests are answered until Ctrl-C.", file=sys.stderr)
    with contextlib.suppress(KeyboardInterrupt):
        gateway.serve()
    return 0


sys.exit(main())
