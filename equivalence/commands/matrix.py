"""matrix: every mechanism scenario in front of implementations."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from rich.console import Console

from equivalence.commands.arguments import implementations_of
from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.matrix.player import Player
from equivalence.matrix.scenarios import Scenario, read_scenarios
from equivalence.matrix.survival import exit_code_of, survival
from equivalence.matrix.table import groups, matrix, tally
from equivalence.matrix.tools import SCENARIO_TOOLS
from equivalence.runs.output import json_stream
from equivalence.runs.watched import load_tools
from equivalence.show import matrix as show
from equivalence.show import terminal
from equivalence.table import Table


def matrix_command(arguments: argparse.Namespace, table: Table) -> int:
    """Play the scenarios and show what came of them; return the exit code."""
    scenarios = read_scenarios(*filter(None, [arguments.scenarios]))
    if arguments.scenario:
        scenarios = [each for each in scenarios if each.name == arguments.scenario]
        if not scenarios:
            raise UsageError(
                _("no scenario is named {scenario!r}").format(
                    scenario=arguments.scenario
                )
            )
    tools = SCENARIO_TOOLS
    if arguments.scenarios:
        name = arguments.tools or table.tools or ""
        tools = {**tools, **{tool.__name__: tool for tool in load_tools(name)}}
    for scenario in scenarios:
        for name in scenario.tools:
            if name not in tools:
                raise UsageError(
                    _("{scenario}: no tool is named {name!r}").format(
                        scenario=scenario.name, name=name
                    )
                )
    out = terminal.console(sys.stderr if arguments.json else sys.stdout)
    with Player(tools) as player:
        if arguments.implementation or arguments.commands:
            return _survival(arguments, table, scenarios, player, out)
        return _matrix(arguments, table, scenarios, player, out)


def _survival(
    arguments: argparse.Namespace,
    table: Table,
    scenarios: Sequence[Scenario],
    player: Player,
    out: Console,
) -> int:
    """Somebody's agents, each against what the scenarios expect."""
    chosen = implementations_of(table, arguments.implementation, arguments.commands)
    rows = survival(scenarios, chosen, player, raw=arguments.raw)
    tracked = terminal.tracked(rows, _("playing"), len(scenarios))
    outcomes = [outcome for row in tracked for outcome in row]
    show.survival(out, outcomes, raw=arguments.raw)
    if arguments.json:
        document = {
            "raw": arguments.raw,
            "scenarios": [outcome.to_json() for outcome in outcomes],
        }
        print(json.dumps(document, ensure_ascii=False), file=json_stream())
    return exit_code_of(outcomes)


def _matrix(
    arguments: argparse.Namespace,
    table: Table,
    scenarios: Sequence[Scenario],
    player: Player,
    out: Console,
) -> int:
    """The implementations of the table, each group against its first."""
    played = groups(table)
    if not played:
        raise UsageError(
            _(
                "nothing to compare: name --implementation module:function"
                " or --command, or list implementations in"
                " [tool.equivalence] of pyproject.toml"
            )
        )
    rows = matrix(scenarios, played, player)
    tracked = terminal.tracked(rows, _("playing"), len(scenarios))
    cells = [cell for row in tracked for cell in row]
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
        print(json.dumps(document, ensure_ascii=False, default=str), file=json_stream())
    aligned = [cell for cell in cells if cell.group == "aligned"]
    return 0 if all(cell.equal for cell in aligned) else 1
