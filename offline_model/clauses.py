"""Second reading: the question cut into clauses, each with its words and names.

The cuts are at the ends of sentences; and at commas, "and", 和 … where both sides say
by themselves what they want, unlike "Which is warmer, Rome or Oslo?".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import words
from .names import Names, guess
from .numbers import plain

END = words.any_case(r"[?!。;\n:]+|\.(?=\s|$)")
COMMA = words.any_case(r",(?!\d{3})|以及|还有|然后|并且?|\bbut\b|\bthen\b")
LIST = words.any_case(r"、|(?<![暖温平])和|与|跟|及|\band\b|\bor\b|还是|或者?|\bvs\b")
SHARES = words.any_case(
    rf"({words.NUMBER})\s?(?:[股§]|(?:more |(?:of )?(?:its|their) )?shares?\b)"
)
TARGET = words.any_case(
    r"(?:\b(?:in|into|to|as)\b|[少几成为用合按])\s?(?:degrees? )?"
    rf"(?<![A-Za-z]){words.one_of(words.WRITTEN)}|fahrenheit|华氏"
)


@dataclass(frozen=True)
class Clause:
    """One stretch of the question: its words as topics, names and numbers."""

    text: str
    start: int
    topics: dict[str, int]  # with their places in the text
    names: dict[str, list[str]]  # by kind
    shares: list[str]
    unit: str | None  # to convert to
    change: str | None  # "{0} * 2"

    @property
    def several(self) -> bool:
        """Whether it compares or combines several values."""
        return not words.OPERATIONS.isdisjoint(self.topics)

    def degree(self, kind: str) -> str:
        """The word it compares such things with, if it does."""
        if "compare" not in self.topics:
            return ""
        found = words.DEGREE[kind].search(self.text)
        return (found and found.lastgroup) or words.USUAL_DEGREE[kind]

    @property
    def complete(self) -> bool:
        """Whether it says by itself what it wants."""
        named = any(self.names.values()) or "time" in self.topics
        return named and bool(self.topics)


def clauses_of(text: str, names: Names) -> list[Clause]:
    """The clauses of a question, in order."""
    clauses = [_clause(text, 0, len(text), names)]
    for separator in (END, COMMA, LIST):
        clauses = [c for whole in clauses for c in _cut(whole, text, separator, names)]
    return [clause for clause in clauses if clause.text.strip()]


def _cut(
    whole: Clause, question: str, separator: re.Pattern[str], names: Names
) -> list[Clause]:
    """The clause cut where it may be."""
    start, end = whole.start, whole.start + len(whole.text)
    cuts = [match.span() for match in separator.finditer(question, start, end)]
    parts: list[Clause] = []
    for stop, following in [*cuts, (end, end)]:
        part = _clause(question, start, stop, names)
        if parts and separator is not END:
            before = parts[-1]
            listed = separator is LIST and before.several
            if listed or not (before.complete and part.complete):
                parts.pop()
                part = _clause(question, before.start, stop, names)
        parts.append(part)
        start = following
    return parts


def _clause(question: str, start: int, end: int, names: Names) -> Clause:
    text = question[start:end]
    places = {topic: form.search(text) for topic, form in words.TOPICS.items()}
    topics = {topic: found.start() for topic, found in places.items() if found}
    cities, rest = names.find(text, "weather")
    companies, rest = names.find(rest, "price")
    shares = [plain(number) for number in SHARES.findall(rest)]
    if "weather" in topics or ("time" in topics and not cities):
        cities += guess(rest, "weather" if "weather" in topics else "time")
    if ("price" in topics or shares) and words.STOCK.search(text):
        companies += guess(rest, "price")
    target = TARGET.search(text)
    return Clause(
        text=text,
        start=start,
        topics=topics,
        names={
            "weather": sorted(cities, key=text.find),
            "price": sorted(companies, key=text.find),
        },
        shares=shares,
        unit=target and (target.lastgroup or "fahrenheit"),
        change=_change(rest),
    )


def _change(text: str) -> str | None:
    for pattern, template in words.CHANGES.items():
        if found := re.search(pattern, text, re.IGNORECASE):
            number = next(filter(None, found.groups()), "")
            return template.format(n=plain(number))
    return None
