"""self: each implementation against itself."""

from __future__ import annotations

import argparse
import json
import sys

from equivalence.commands.arguments import implementations_of
from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.matrix.itself import against_itself, fit
from equivalence.matrix.player import Player
from equivalence.matrix.scenarios import read_scenarios
from equivalence.runs.output import json_stream
from equivalence.runs.words import short
from equivalence.show import terminal
from equivalence.table import Table


def self_command(arguments: argparse.Namespace, table: Table) -> int:
    """Compare each implementation with itself and print how often it was different;
    return 0 if never, else 1."""
    if arguments.comparisons < 1:
        raise UsageError(_("--comparisons must be at least 1"))
    if arguments.implementation or arguments.commands:
        names, commands = arguments.implementation, arguments.commands
        chosen = implementations_of(table, names, commands)
    else:
        chosen = [*implementations_of(table, None), *table.variants.values()]
    scenarios, tallies = fit(read_scenarios()), []
    total = arguments.comparisons
    with Player() as player:
        for implementation in chosen:
            rows = against_itself(implementation, scenarios, total, player)
            *_earlier, tally = terminal.tracked(rows, implementation.name, total)
            tallies.append(tally)
            out = sys.stderr if arguments.json else sys.stdout
            print(tally, file=out, flush=True)
            for scenario, verdict in tally.different:
                print(f"  {scenario}: {short(str(verdict.divergence))}", file=out)
    if arguments.json:
        print(
            json.dumps([each.to_json() for each in tallies], ensure_ascii=False),
            file=json_stream(),
        )
    return int(any(each.different for each in tallies))
