"""What the implementations cost, as it was measured on one day on one machine."""

from __future__ import annotations

import json
from typing import Any

import cog

from blocks.page import ROOT, importable, said, table
from blocks.pictures import show


def costs(alt: str) -> None:
    """Write the table and the plot of docs/examples/cost.json, which
    `python -m equivalence cost --json` wrote."""
    importable()
    from equivalence.cost.measuring import Cost
    from equivalence.show.plot import growth

    path = ROOT / "docs" / "examples" / "cost.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    found = [Cost.from_json(each) for each in document["costs"]]
    head = (
        "",
        "ms a call",
        "times openai",
        "first, ms",
        "second, ms",
        "import, ms",
        "memory, MB",
        "lines",
        "depth",
    )
    rows = [
        (
            cost.name,
            _number(cost.ms_per_call, 2),
            _number(cost.ratio, 2),
            _number(cost.first_ms),
            _number(cost.later_ms),
            _number(cost.import_ms),
            _number(cost.memory_bytes and cost.memory_bytes / 1e6),
            _number(cost.lines),
            _number(cost.depth),
        )
        for cost in found
    ]
    table(tuple(map(said, head)), rows)
    lengths = sorted({calls for cost in found for calls in cost.growth})
    words = said("ms a call in a run of {calls}")
    names = [words.format(calls=calls) for calls in lengths]
    cog.outl("")
    table(
        ("", *names),
        [
            (cost.name, *(_number(cost.growth.get(calls), 2) for calls in lengths))
            for cost in found
        ],
    )
    cog.outl("")
    show("cost.svg", alt, growth(found))
    cog.outl("")
    measured = said("Measured on {day}: {system}, {cores} cores, Python {python}.")
    where = {key: document[key] for key in ("system", "cores", "python")}
    cog.outl(measured.format(day=document["measured"], **where))


def _number(value: Any, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
