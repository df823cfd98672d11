"""What the pages of README and docs/ include: code by symbol, real output, counts.

The pages hold cog blocks that call these functions. `make docs` fills them in, and
tests/test_docs.py fails where a page says something else than the code does. Output
holds nothing that varies: the window has 88 columns, LLM_… variables are removed.
"""

from blocks.commands import console, probe, python
from blocks.concepts import concepts
from blocks.facts import hints, ladder, meanings, mermaid, rules, settings
from blocks.page import table
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
    "concepts",
    "console",
    "cost",
    "difference",
    "docstring",
    "faults",
    "hints",
    "ladder",
    "library_lines",
    "lines_of_code",
    "link",
    "meanings",
    "mermaid",
    "probe",
    "python",
    "rules",
    "say",
    "settings",
    "stock_case",
    "stock_differences",
    "stock_tally",
    "table",
]
