"""Third reading: what the question needs. What it leaves out comes from its clauses
before, then from the questions before: 那 200 股呢？, "And Shanghai?".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

from . import words
from .clauses import Clause, clauses_of
from .lift import Found, lift, tidy
from .names import Names, bare
from .needs import Arithmetic, Clock, Conversion, Lookup, Memory, Need, Talk
from .numbers import plain

FILLER = words.any_case(
    r"\b(?:and|how about|what about|what|about|for|in|of|the|then|also|too|it|or|with"
    r"|instead|same|now|please|city|at)\b|[那么呢换成和的如果是再看也还有]|怎么样|[\s,.?!。;:、']"
)
MARKED = words.any_case(r"^(?:and|how about|what about)\b|呢[?。!\s]*$")
RELATES = words.any_case(r"比|更|差|\bthan\b|difference|\w+er\b")
VALUE = words.any_case(words.SIGNED + words.one_of(words.WRITTEN))
RESULT = words.any_case(
    rf"(=?) ?(-?{words.NUMBER})(?: ?(?:港元（|美元（)?(°[CF]|HKD|CNY|USD))?"
)


def understand(
    question: str, names: Names, memory: Memory, said: Sequence[str] = ()
) -> tuple[list[Need], Memory]:
    """Return what the question needs, in its order, and the memory for the next one.
    `said` holds the texts of the conversation that numbers may come from, newest first.
    """
    text, lifted = lift(tidy(question))
    clauses = clauses_of(text, names)
    if not lifted and not any(c.topics or c.shares or c.unit for c in clauses):
        clauses = [_follow_up(text, clause, memory) for clause in clauses[:1]]
    reader = _Reader(clauses, deepcopy(memory), said, lifted)
    return reader.needs() or [Talk(_small_talk(question))], reader.memory


def _follow_up(text: str, clause: Clause, memory: Memory) -> Clause:
    """那上海呢？, "And Alibaba?": the last question, asked of a new name."""
    found, rest = clause.names, text
    for name in (*found["weather"], *found["price"]):
        rest = rest.replace(name, "")
    if not any(found.values()) and memory.kind and MARKED.search(text):
        last = re.sub(r"(?i)^(?:how|what) about |^and ", "", clause.text.strip())
        name = bare(last.removesuffix("呢"))
        found[memory.kind] = [name] if name and len(name) < 20 else []
    elif FILLER.sub("", rest):
        return clause
    if found["weather"]:
        unit = "fahrenheit" if memory.fahrenheit else None
        return replace(clause, topics={"weather": 0}, unit=unit)
    if found["price"]:
        return replace(clause, topics={"price": 0}, shares=memory.shares)
    return clause


class _Reader:
    """Turns clauses into needs and fills in what they leave out."""

    def __init__(
        self, clauses: list[Clause], memory: Memory, said: Sequence[str], lifted: Found
    ) -> None:
        self.clauses, self.memory, self.said = clauses, memory, said
        self.found = lifted
        self.here: dict[str, list[str]] = {kind: [] for kind in words.KINDS}

    def needs(self) -> list[Need]:
        """The needs in the order of the question. The memory takes them in."""
        for clause in self.clauses:
            for kind, names in self.here.items():
                names += [n for n in clause.names[kind] if n not in names]
            self.found += [(clause.start + place, n) for place, n in self._read(clause)]
        self.found.sort(key=lambda pair: pair[0])
        degree = next((d for c in self.clauses if (d := c.degree("price"))), "")
        needs = _merged([need for _, need in self.found], degree)
        memory = self.memory
        for kind, new in self.here.items():
            old = [name for name in memory.names[kind] if name not in new]
            memory.names[kind] = old + new
        for need in needs:
            if isinstance(need, Lookup):
                memory.kind, memory.fahrenheit = need.kind, need.fahrenheit
                memory.shares = list(need.shares[-1:])
        return needs

    def _read(self, clause: Clause) -> Iterator[tuple[int, Need]]:
        """What one clause needs, with its places."""
        topics, kinds = clause.topics, self._kinds(clause)
        if "intro" in topics:
            yield topics["intro"], Talk("intro")
        if "time" in topics:
            elsewhere = clause.names["weather"] and "weather" not in topics
            about = "elsewhere" if elsewhere else ""
            about = "other day" if words.OTHER_DAY.search(clause.text) else about
            yield topics["time"], Talk(about) if about else Clock()
        for kind in kinds:
            if wanted := self._lookup(clause, kind):
                yield topics.get(kind, 0), wanted
        need = self._conversion(clause.unit) or self._change(clause.change)
        if need and not kinds:
            yield 0, need

    def _kinds(self, clause: Clause) -> list[str]:
        """What the clause looks up: what it names, else what its words are about."""
        modified = bool(clause.several or clause.unit or clause.change)
        kinds = [
            kind
            for kind in words.KINDS
            if clause.names[kind] and (kind in clause.topics or modified)
        ]
        if clause.shares:
            return [*(k for k in kinds if k != "price"), "price"]
        if kinds:
            return kinds
        here = [kind for kind, names in self.here.items() if names]
        if "weather" in clause.topics:
            said = "weather" not in here and self._conversion(clause.unit)
            return [] if said else ["weather"]
        clues = words.STOCK.search(clause.text) or words.PRONOUN.search(clause.text)
        if "price" in clause.topics and ("price" in here or clues):
            return ["price"]
        recent = [*filter(None, [self.memory.kind]), *here][-1:]
        return recent if clause.several else []

    def _lookup(self, clause: Clause, kind: str) -> Need | None:
        shares = clause.shares if kind == "price" else []
        names, fresh = self._names(clause, kind)
        later = [
            n for c in self.clauses if c.start > clause.start for n in c.names[kind]
        ]
        if shares and not clause.names[kind]:
            names = self.here[kind][-1:] or later[:1] or names
        repeats = kind == "price" and not clause.names[kind] and not clause.change
        if repeats and not shares and any(c.shares for c in self.clauses):
            return None  # "How much are they worth?" after "100 Tencent shares."
        if not names:
            return None if later else Talk(f"which {kind}")
        if shares and len(shares) != len(names):
            shares = shares[:1] * len(names)
        several = len(names) > 1 and not shares
        operations = [o for o in ("difference", "average", "sum") if o in clause.topics]
        return Lookup(
            kind=kind,
            names=tuple(names),
            shares=tuple(shares),
            operation="".join(operations[:several]),
            degree=clause.degree(kind) if len(names) > 1 else "",
            fahrenheit=clause.unit == "fahrenheit" and kind == "weather",
            change=clause.change,
            fresh=fresh,
        )

    def _names(self, clause: Clause, kind: str) -> tuple[list[str], bool]:
        """The names the clause is about, and whether this question names them."""
        own, here = clause.names[kind], self.here[kind]
        known = self.memory.names[kind]
        relates = len(own) == 1 and RELATES.search(clause.text)
        if clause.several and (not own or relates) and not clause.shares:
            both = here if len(here) > 1 else [*known[-2 + len(here) :], *here]
            return list(dict.fromkeys(both)), bool(here)
        if own or here:
            return own or here, not words.MENTIONED.search(clause.text)
        return known[-1:], False

    def _conversion(self, unit: str | None) -> Need | None:
        """The temperature of the cities of this question, or else the last value of
        that quantity that the conversation mentioned, in another unit."""
        if unit == "fahrenheit" and self.here["weather"]:
            return Lookup("weather", tuple(self.here["weather"]), fahrenheit=True)
        for match in (m for text in self.said for m in VALUE.finditer(text)):
            source = match.lastgroup or ""
            if unit and source != unit and words.same_quantity(source, unit):
                sign = "-" if match["sign"] else ""
                return Conversion(sign + plain(match["value"]), source, unit)
        return None

    def _change(self, change: str | None) -> Need | None:
        """Something done to the value before: of this question, else mentioned last."""
        last = self.found[-1][1] if self.found else None
        if change is None:
            return None
        if isinstance(last, Lookup):
            return replace(last, change=change)
        if isinstance(last, Arithmetic):
            return Arithmetic(change.format(f"({last.expression})"))
        number = _last_result(self.said)
        return Arithmetic(change.format(number[0]), number[1]) if number else None


def _merged(needs: list[Need], degree: str) -> list[Need]:
    """Neighbouring shares of different companies are one need; repetitions go."""
    merged: list[Need] = []
    for need in needs:
        match merged[-1:], need:
            case [Lookup(shares=[_, *_]) as last], Lookup(shares=[_, *_]) if set(
                last.names
            ).isdisjoint(need.names):
                names, shares = last.names + need.names, last.shares + need.shares
                merged[-1] = replace(last, names=names, shares=shares, degree=degree)
            case _ if need not in merged:
                merged.append(need)
    return merged


def _last_result(said: Sequence[str]) -> tuple[str, str] | None:
    """The last result in the newest text that has a number, and its unit."""
    for text in said:
        numbers = list(RESULT.finditer(text))
        results = [m for m in numbers if m[1] or (m[3] and m[3][0] != "°")]
        degrees = [m for m in numbers if m[3]][:1]
        for match in (results or degrees or numbers)[-1:]:
            return plain(match[2]), match[3] or ""
    return None


def _small_talk(question: str) -> str:
    about = (about for about, form in words.SMALL_TALK.items() if form.search(question))
    return next(about, "other")
