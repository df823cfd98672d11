"""matrix: every mechanism scenario in front of every implementation."""

from __future__ import annotations

import argparse
import json
import sys

from equivalence.errors import UsageError
from equivalence.matrix.scenarios import read_scenarios
from equivalence.matrix.table import groups, matrix, tally
from equivalence.show import matrix as show
from equivalence.show import terminal
from equivalence.table import Table


def matrix_command(arguments: argparse.Namespace, table: Table) -> int:
    """Play the scenarios and show what came of them; return the exit code."""
    scenarios = read_scenarios()
    if arguments.scenario:
        scenarios = [each for each in scenarios if each.name == arguments.scenario]
        if not scenarios:
            raise UsageError(f"no scenario is named {arguments.scenario!r}")
    played = groups(table)
    rows = terminal.tracked(matrix(scenarios, played), "playing", len(scenarios))
    cells = [cell for row in rows for cell in row]
    out = terminal.console(sys.stderr if arguments.json else sys.stdout)
    if arguments.scenario:
        show.scenario_in_full(out, scenarios[0], cells)
    else:
        for group in played:
            show.matrix_table(out, cells, group.name)
    counts = tally(cells)
    show.matrix_tally(out, counts)
    if arguments.json:
        pairs = [
            {"group": group, "implementation": name, "equal": equal, "total": total}
            for (group, name), (equal, total) in counts.items()
        ]
        document = {"cells": [cell.to_json() for cell in cells], "pairs": pairs}
        print(json.dumps(document, ensure_ascii=False, default=str))
    aligned = [cell for cell in cells if cell.group == "aligned"]
    return 0 if all(cell.equal for cell in aligned) else 1
