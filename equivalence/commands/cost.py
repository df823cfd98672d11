"""cost: what each implementation costs, beside loops by hand."""

from __future__ import annotations

import argparse
import json

from equivalence.commands.arguments import implementations_of
from equivalence.cost.measuring import measure
from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.show import terminal
from equivalence.table import Table


def cost_command(arguments: argparse.Namespace, table: Table) -> int:
    """Measure and print; return 0, or 3 if one could not be measured."""
    if arguments.rounds < 1:
        raise UsageError(_("--rounds must be at least 1"))
    chosen = implementations_of(table, arguments.implementation)
    known = [*table.implementations.values(), *table.variants.values()]
    costs = []
    for costs in measure(chosen, known, table.folder, arguments.rounds):  # noqa: B007
        pass
    if arguments.json:
        print(json.dumps([cost.to_json() for cost in costs], ensure_ascii=False))
    else:
        from equivalence.show.cost import table as draw

        draw(terminal.console(), costs)
    return 3 if any(cost.error for cost in costs) else 0
