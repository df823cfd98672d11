"""cost: what each implementation costs, beside loops by hand."""

from __future__ import annotations

import argparse
import json
import os
import platform
from datetime import UTC, datetime

from equivalence.commands.arguments import implementations_of
from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.runs.output import json_stream
from equivalence.show import terminal
from equivalence.table import Table


def cost_command(arguments: argparse.Namespace, table: Table) -> int:
    """Measure and print; return 0, or 3 if one could not be measured."""
    if min(arguments.rounds, arguments.longest) < 1:
        raise UsageError(_("--rounds and --longest must be at least 1"))
    if arguments.peers and not arguments.peers.is_dir():
        from equivalence.cost.peers import PACKAGES

        raise UsageError(
            _(
                "{folder} is no environment. Make it: python -m venv {folder} &&"
                " {folder}/bin/pip install {packages}"
            ).format(folder=arguments.peers, packages=PACKAGES)
        )
    from equivalence.cost.measuring import Measurement, Plan

    chosen = implementations_of(table, arguments.implementation)
    known = [*table.implementations.values(), *table.variants.values()]
    plan = Plan(arguments.rounds, arguments.seconds, arguments.longest)
    measurement = Measurement(chosen, known, table.folder, plan, arguments.peers)
    for _done in terminal.tracked(
        measurement.works(), _("measuring"), measurement.total
    ):
        pass
    costs = [*measurement.costs.values()]
    if arguments.svg:
        from equivalence.show.plot import growth

        arguments.svg.write_text(growth(costs), encoding="utf-8")
    if arguments.json:
        document = {
            "measured": f"{datetime.now(UTC):%Y-%m-%d}",
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
            "costs": [cost.to_json() for cost in costs],
        }
        print(json.dumps(document, ensure_ascii=False), file=json_stream())
    else:
        from equivalence.show.cost import table as draw

        draw(terminal.console(), costs)
    return 3 if any(cost.error or cost.left_out for cost in costs) else 0
