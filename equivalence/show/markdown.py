"""Verdicts as Markdown, for a pull request's comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from equivalence.judge.compare import Verdict, explain, tally
from equivalence.language import _
from equivalence.runs.words import short

MOST_SHOWN = 20
"""So many differences are shown whole; the rest is tally."""


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Return a summary, and what differs with its cause, its place and both values."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    lines = [f"**{tally(dict(counts.most_common()))}**", ""]
    unequal = [v for v in verdicts if v.verdict != "equivalent"]
    for verdict in unequal[:MOST_SHOWN]:
        lines += _one(verdict)
    if len(unequal) > MOST_SHOWN:
        lines.append(_("… and {count} more.").format(count=len(unequal) - MOST_SHOWN))
    return "\n".join(lines).rstrip() + "\n"


def _one(verdict: Verdict) -> list[str]:
    lines = [
        _("- **{left}** vs **{right}**, {question}: {verdict}").format(
            left=_plain(verdict.left),
            right=_plain(verdict.right),
            question=_plain(verdict.question),
            verdict=_(verdict.verdict),
        )
    ]
    if place := verdict.divergence:
        lines[0] += _(", cause `{cause}`, model call {model_call}").format(
            cause=place.cause, model_call=place.model_call
        )
        lines += [f"  - `{place.path}`"]
        lines += [
            f"  - {_plain(name)}: {_plain(value)}"
            for name, value in (
                (verdict.left, short(place.left)),
                (verdict.right, short(place.right)),
            )
        ]
    return [*lines, f"  - {_plain(explain(verdict))}", ""]


def _plain(text: str) -> str:
    """The text with what Markdown would read as more than text made harmless."""
    text = " ".join(text.split())
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"\\{sign}")
    return text


def write_markdown(path: Path | None, verdicts: Sequence[Verdict]) -> None:
    """Write the file, if one is asked for."""
    if path is not None:
        path.write_text(markdown(verdicts), encoding="utf-8")
