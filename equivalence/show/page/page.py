"""The whole page: its questions, and what they came to."""

from __future__ import annotations

from collections.abc import Sequence

from equivalence.judge.compare import Judge, counted
from equivalence.show.page.question import Column, Question
from equivalence.show.page.reading import Group
from equivalence.show.page.tool_lists import ToolLists

VERDICT_SIGNS = {
    "equivalent": "=",
    "different": "≠",
    "inconclusive": "?",
    "indistinguishable": "≈",
}


class Page:
    """All that the page says, in its order."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.tool_lists = ToolLists()
        judge = Judge()
        self.questions = [
            Question(number, group, self.tool_lists, judge)
            for number, group in enumerate(groups, 1)
        ]
        self.names = list(dict.fromkeys(name for g in groups for name in g.runs))
        found = [
            c.verdict.verdict
            for q in self.questions
            for c in q.columns[1:]
            if c.verdict
        ]
        self.counts = {name: found.count(name) for name in VERDICT_SIGNS}
        self.headline = _headline(self.counts)
        measures = dict.fromkeys(q.measure for q in self.questions)
        asked = {(*q.history, q.text) for q in self.questions}
        tries = len({q.repeat for q in self.questions})
        self.scope = (
            f"{counted(len(asked), 'question')}"
            f"{f', {tries} tries' if tries > 1 else ''},"
            f" {counted(len(self.names), 'implementation')},"
            f" measured against {', '.join(measures)}"
        )
        used = dict.fromkeys(
            c.source for q in self.questions for c in q.columns if c.source
        )
        self.sources = list(used)
        self.partings = [
            column for q in self.questions for column in q.columns if column.parting
        ]

    def after(self, column: Column) -> Column | None:
        """Return the next column that parts from its measure."""
        index = self.partings.index(column) + 1
        return self.partings[index] if index < len(self.partings) else None


def _headline(counts: dict[str, int]) -> str:
    """The verdicts on all comparisons in one sentence."""
    total, equal = sum(counts.values()), counts["equivalent"]
    if not total:
        return "One implementation, nothing to compare it with"
    if equal == total == 1:
        return "The comparison is equivalent"
    if equal == total:
        return f"All {total} comparisons are equivalent"
    others = [
        f"{count} {name}"
        for name, count in counts.items()
        if count and name != "equivalent"
    ]
    return f"Of {total} comparisons {equal} equivalent, {', '.join(others)}"
