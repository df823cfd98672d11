"""All figures beside their goals: python -m benchmarks [PART …] [--long]."""

from __future__ import annotations

import argparse
import os
import platform
from datetime import datetime
from importlib import import_module

from benchmarks.figures import Figure, table

PARTS = ("comparison", "gateway", "replay", "stages", "startup")
LONG = ("diff",)


def main() -> None:
    """Measure what is named, else all but what takes long; print one table."""
    parser = argparse.ArgumentParser(
        description="Figures beside their goals; no pass or fail."
    )
    parser.add_argument(
        "part",
        nargs="*",
        metavar="PART",
        help=f"{', '.join((*PARTS, *LONG))}; default: all but {', '.join(LONG)}",
    )
    parser.add_argument(
        "--long", action="store_true", help=f"{', '.join(LONG)} too, some minutes"
    )
    arguments = parser.parse_args()
    for part in arguments.part:
        if part not in (*PARTS, *LONG):
            parser.error(f"no part is named {part!r}")
    figures: list[Figure] = []
    for part in arguments.part or (*PARTS, *(LONG if arguments.long else ())):
        print(f"== {part}", flush=True)
        figures += import_module(f"benchmarks.{part}").measure()
    python, cores = platform.python_version(), len(os.sched_getaffinity(0))
    print(
        f"\n{datetime.now():%Y-%m-%d}, Python {python} on {platform.system()},"
        f" {cores} cores, load {os.getloadavg()[0]:.1f}\n"
    )
    print(table(figures))


if __name__ == "__main__":
    main()
