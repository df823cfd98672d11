"""What the pages of README and docs/ include: code by symbol, real output, counts.

The pages hold cog blocks that call these functions. `make docs` fills them in, and
tests/test_docs.py fails where a page says something else than the code does. Output
holds nothing that varies: the window has 88 columns, LLM_… variables are removed.
"""

from blocks.commands import comparison, console, probe, python
from blocks.costs import costs
from blocks.facts import (
    exercises,
    exit_codes,
    hints,
    ladder,
    meanings,
    mermaid,
    rules,
    settings,
)
from blocks.page import table
from blocks.pictures import plot, side_by_side
from blocks.scenarios import (
    cannot_be_equal,
    faults,
    races,
    stock_case,
    stock_differences,
    stock_kinds,
    stock_tally,
)
from blocks.source import (
    code,
    cost,
    difference,
    docstring,
    library_lines,
    lines_of_code,
    link,
    say,
)

__all__ = [
    "cannot_be_equal",
    "code",
    "comparison",
    "console",
    "cost",
    "costs",
    "difference",
    "docstring",
    "exercises",
    "exit_codes",
    "faults",
    "hints",
    "ladder",
    "library_lines",
    "lines_of_code",
    "link",
    "meanings",
    "mermaid",
    "plot",
    "probe",
    "python",
    "races",
    "rules",
    "say",
    "settings",
    "side_by_side",
    "stock_case",
    "stock_differences",
    "stock_kinds",
    "stock_tally",
    "table",
]
