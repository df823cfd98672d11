"""The question read once: from its text to tokens, each with what it means.

Names are those that the tools list. A run of words without a meaning stays as it is: it
may be the name of a city or a company that no tool lists.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from .view import LOOKS_UP, Tool
from .words import HAN, KINDS, MEANINGS, MEANS_NOTHING, UNITS

Entries = tuple[tuple[str, ...], ...]  # all spellings of a name, for each name

_FIGURES = r"\d{1,15}(?:,\d{3})*(?:\.\d{1,15})?"
_NUMERAL = "[一两二三四五六七八九十][零一两二三四五六七八九十百千万]"
_UNITS = "|".join(unit.read_chinese for unit in UNITS.values())
_COUNTED = rf"(?= ?(?:[万亿]?股|{_UNITS}|[加减乘除]))"
_WORDS = "two three four five six seven eight nine ten eleven twelve"
ENGLISH_NUMBERS = _WORDS.split()
_NUMBER = (
    rf"{_FIGURES}(?: ?[万亿]| (?:dozen|hundred|thousand|million|billion)\b)?"
    r"(?: ?%(?! ?[\d(]))?"
    rf"|{_NUMERAL}+|(?!一 ?股)[一两二三四五六七八九十]{_COUNTED}"
    rf"|(?<=[加减乘以去]) ?[一两二三四五六七八九十](?!{HAN}?[上下])"
    rf"|(?<![A-Za-z])(?:{'|'.join(ENGLISH_NUMBERS)}|hundred|dozen)(?![A-Za-z])"
)
_SCALE = {"万": 1e4, "亿": 1e8, "dozen": 12, "hundred": 100}
_SCALE |= {"thousand": 1e3, "million": 1e6, "billion": 1e9}


@dataclass(eq=False)
class Token:
    """A stretch of the question; `value` is the number, the unit or the name in it."""

    marks: tuple[str, ...]
    text: str
    start: int
    value: str = ""
    used: bool = False  # whether the plan has it

    def means(self, *marks: str) -> bool:
        return any(mark in self.marks for mark in marks)

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tidy(question: str) -> str:
    """Full-width signs as ASCII, other signs as those of `calculate`."""
    text = question[:1000].translate({0xB2: "^2", 0xB3: "^3", 0xBA: "°"})
    text = unicodedata.normalize("NFKC", text)
    text = text.translate(str.maketrans("×÷−–’‘“”", "*/--''  "))
    text = re.sub(r"[^\S\n]+", " ", text).strip()
    text = re.sub(r"百分之 ?(\d+(?:\.\d+)?)", r"\1%", text)
    return re.sub(r"(\d) ?(?:percent|per cent)\b", r"\1%", text, flags=re.IGNORECASE)


def plain(number: str) -> str:
    """The number without thousands separators."""
    return number.replace(",", "")


@dataclass(frozen=True)
class Names:
    """The names that the tools say they know, by kind."""

    entries: tuple[Entries, ...]

    @classmethod
    def of(cls, tools: Mapping[str, Tool]) -> Names:
        """The names that the descriptions of the tools list."""
        texts = {k: tools[t].description for k, t in LOOKS_UP.items() if t in tools}
        return cls(tuple(_listed(texts.get(kind, "")) for kind in KINDS))

    def same(self, name: str) -> str:
        """The first spelling of the entry that the name belongs to, else the name."""
        wanted = name.strip().removesuffix("市").casefold()
        for entry in (entry for kind in self.entries for entry in kind):
            if wanted in (spelling.casefold() for spelling in entry):
                return entry[0]
        return name

    def is_chinese(self, question: str) -> bool:
        """Whether to answer in Chinese: the words around the names decide."""
        rest = _scanner(self.entries)[1].sub("", question)
        han = len(re.findall(HAN, rest))
        words = len(re.findall(r"[A-Za-z]{2,}", rest))
        if han + words == 0:
            return re.search(HAN, question) is not None
        return han >= 2 * words


@lru_cache(maxsize=64)
def _listed(description: str) -> Entries:
    """The names behind "Known cities:" in a tool's description, spelling by spelling:
    腾讯 Tencent 0700.HK has three, 旧金山 San Francisco two."""
    listed = re.search(r"Known \w+:\s*(.+?)\.(?:\s|$)", description, re.DOTALL)
    entries = []
    for entry in listed[1].split(",") if listed else ():
        first, *others = entry.split() or [""]
        if others and re.match(HAN, first):
            ticker = others[1:] and not others[-1].istitle()
            last = [others.pop()] if ticker else []
            spellings = [first, " ".join(others), *last]
        else:
            spellings = [" ".join([first, *others])]
        entries.append(tuple(filter(None, spellings)))
    return tuple(entries)


@lru_cache(maxsize=64)
def _scanner(
    kinds: tuple[Entries, ...],
) -> tuple[re.Pattern[str], re.Pattern[str], dict[str, str]]:
    """What finds the next token; what finds a name; the whole names of halves: 茅台
    stands for 贵州茅台."""
    halves, by_kind = {}, []
    for entries in kinds:
        names = {spelling for entry in entries for spelling in entry}
        for name in sorted(n for n in names if re.fullmatch(rf"{HAN}{{4}}", n)):
            halves.update(dict.fromkeys((name[:2], name[2:]), name))
        names |= {half for half, name in halves.items() if name in names}
        by_kind.append("|".join(map(_word, sorted(names, key=len, reverse=True))))
    named = [
        f"(?P<{k}>{names})" for k, names in zip(KINDS, by_kind, strict=True) if names
    ]
    meanings = [
        f"(?P<m{i}>{chinese or '(?!)'}|{_word(english or '(?!)', False)})"
        for i, (_, chinese, english) in enumerate(MEANINGS)
    ]
    chinese, english = MEANS_NOTHING
    rest = [
        f"(?P<nothing>{chinese}|{_word(english, False)})",
        rf"(?P<word>[A-Za-z][\w.&-]*|{HAN})",
    ]
    parts = [*named, *meanings[:2], f"(?P<number>{_NUMBER})", *meanings[2:], *rest]
    return (
        re.compile("|".join(parts), re.IGNORECASE),
        re.compile("|".join(named) or "(?!)", re.IGNORECASE),
        halves,
    )


def _word(pattern: str, literal: bool = True) -> str:
    if literal:
        pattern = re.escape(pattern)
        if re.match(rf"\\?{HAN}", pattern):
            return pattern
    return f"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])"


def scan(text: str, names: Names) -> list[Token]:
    """The tokens of a tidy question, in order."""
    pattern, _, halves = _scanner(names.entries)
    tokens: list[Token] = []
    for match in pattern.finditer(text):
        group, found = match.lastgroup or "", match[0]
        if group in KINDS:
            token = Token(
                ("name", group), found, match.start(), halves.get(found, found)
            )
        elif group == "number":
            token = Token(("number",), found, match.start(), _value(found))
        elif group == "nothing":
            continue
        elif group == "word":
            token = Token(("word",), found.rstrip("."), match.start())
            if (
                tokens
                and tokens[-1].means("word")
                and _one_name(text, tokens[-1], token)
            ):
                start = tokens.pop().start
                token = Token(("word",), text[start : token.end], start)
            token.value = token.text
            if re.search(r"\b(?:in|of|at|for)(?: the)? $", text[: token.start]):
                token.marks = ("word", "placed")
        else:
            marks = MEANINGS[int(group[1:])][0].split(" ")
            token = Token(tuple(marks), found, match.start(), marks[-1])
        tokens.append(token)
    return tokens


def _one_name(text: str, first: Token, second: Token) -> bool:
    """Whether two words without a meaning stand together: 火星, New Delhi."""
    between = text[first.end : second.start]
    if re.match(HAN, second.text):
        return between == ""
    return between == " " and first.text[0].isupper() and second.text[0].isupper()


def _value(text: str) -> str:
    """A number in the spelling of `calculate`."""
    text = text.strip().lower()
    if text in (*ENGLISH_NUMBERS, "hundred", "dozen"):
        return {"hundred": "100", "dozen": "12"}.get(text) or str(
            ENGLISH_NUMBERS.index(text) + 2
        )
    if re.match(HAN, text):
        return str(_chinese(text))
    figures = re.match(_FIGURES, text)
    number = plain(figures[0]) if figures else "0"
    for word, scale in _SCALE.items():
        if word in text:
            number = f"{float(number) * scale:.15g}"
    return number + "%" * text.endswith("%")


def _chinese(text: str) -> int:
    total = digit = 0
    for sign in text:
        if sign == "万":
            total, digit = (total + digit) * 10_000, 0
        elif sign in "十百千":
            total += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[sign]
            digit = 0
        else:
            digit = "零一二三四五六七八九".find(sign.replace("两", "二"))
    return total + digit
