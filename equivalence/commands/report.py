"""report: recorded runs as one self-contained page."""

from __future__ import annotations

import argparse

from equivalence.commands.arguments import judge_of
from equivalence.show.page import write_report
from equivalence.table import Table


def report_command(arguments: argparse.Namespace, table: Table) -> int:
    """Write the page and say in one line what is on it; return 0."""
    judge, whole = judge_of(arguments), arguments.all
    print(write_report(arguments.files, arguments.out, table, judge, whole=whole))
    return 0
