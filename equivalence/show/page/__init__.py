"""Run records as one self-contained page: `python -m equivalence report`.

The page needs no server, no network and no script to be read. All that comes from a run
is text in it: the template escapes whatever it prints, and the page's own policy allows
nothing but its one style and its one script.

The files in the order in which a page comes about, each knowing only earlier ones:

- values, tool_lists, json_lines: how JSON is shown
- reading: files of runs, one group a question
- partings, calls, changes, source: what stands in a cell
- cells, question, page: the cells, the table of one question, the whole page
- draw: the page as HTML, with web/ for template, style and script
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from equivalence.errors import UsageError
from equivalence.show.page.draw import html
from equivalence.show.page.page import Page
from equivalence.show.page.reading import groups
from equivalence.show.page.values import visible


def write_report(paths: Sequence[Path], out: Path) -> str:
    """Write the page about the runs of the files; return one line about it. ValueError
    and OSError say what is wrong with the files."""
    if any(out.resolve() == path.resolve() for path in paths):
        raise UsageError(f"{out} is one of the files to read")
    try:
        page = Page(list(groups(paths)))
        drawn = html(page).encode("utf-8", "backslashreplace")
    except RecursionError:
        raise UsageError("a record is nested too deeply to be shown") from None
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        draft.write_bytes(drawn)
        os.replace(draft, out)
    finally:
        draft.unlink(missing_ok=True)
    return visible(f"{out}: {page.headline} ({page.scope})")
