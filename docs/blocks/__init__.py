"""What the pages of README and docs/ include: code by symbol, real output, counts.

The pages hold cog blocks that call these functions. `make docs` fills them in, and
tests/test_docs.py fails where a page says something else than the code does. Output
holds nothing that varies: the window has 88 columns, LLM_… variables are removed.
"""

from blocks.commands import comparison, console, probe, python
from blocks.facts import (
    exercises,
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
    RACES,
    cannot_be_equal,
    faults,
    stock_case,
    stock_differences,
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
    "RACES",
    "cannot_be_equal",
    "code",
    "comparison",
    "console",
    "cost",
    "difference",
    "docstring",
    "exercises",
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
    "rules",
    "say",
    "settings",
    "side_by_side",
    "stock_case",
    "stock_differences",
    "stock_tally",
    "table",
]
