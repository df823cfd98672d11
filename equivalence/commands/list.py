"""list: the implementations of the table."""

from __future__ import annotations

import argparse

from equivalence.language import _
from equivalence.table import Table


def list_command(arguments: argparse.Namespace, table: Table) -> int:
    """Print a line for each implementation; return 0."""
    for name, implementation in {**table.implementations, **table.variants}.items():
        print(f"{name:17}" + _(implementation.about))
    return 0
