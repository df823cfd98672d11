"""Cities and companies: those that the tools list, and guesses at those they do not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from .toolbox import LOOKS_UP, Tool
from .words import HAN, KINDS, any_case

Entries = tuple[tuple[str, ...], ...]  # all spellings of a name, for each name


@dataclass(frozen=True)
class Names:
    """The names that the tools say they know, by kind."""

    entries: dict[str, Entries]

    @classmethod
    def of(cls, tools: Mapping[str, Tool]) -> Names:
        """The names that the descriptions of the tools list."""
        texts = {k: tools[t].description for k, t in LOOKS_UP.items() if t in tools}
        return cls({kind: _listed(texts.get(kind, "")) for kind in KINDS})

    def find(self, text: str, *kinds: str) -> tuple[list[str], str]:
        """The names in the text, as the user wrote them, and the text with § in their
        stead. 茅台 stands for 贵州茅台."""
        entries = tuple(entry for kind in kinds for entry in self.entries[kind])
        pattern, whole = _pattern(entries)
        found = [whole.get(match[0], match[0]) for match in pattern.finditer(text)]
        return list(dict.fromkeys(found)), pattern.sub("§", text)

    def same(self, name: str) -> str:
        """The first spelling of the entry that the name belongs to, else the name."""
        wanted = name.strip().removesuffix("市").casefold()
        for entry in (*self.entries["weather"], *self.entries["price"]):
            if wanted in (spelling.casefold() for spelling in entry):
                return entry[0]
        return name

    def is_chinese(self, question: str) -> bool:
        """Whether to answer in Chinese: the words around the names decide."""
        _, rest = self.find(question, "weather", "price")
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
            words = [first, " ".join(others), *last]
        else:
            words = [" ".join([first, *others])]
        entries.append(tuple(filter(None, words)))
    return tuple(entries)


@lru_cache(maxsize=64)
def _pattern(entries: Entries) -> tuple[re.Pattern[str], dict[str, str]]:
    """What finds any of the names, the longest first, and the whole name of halves."""
    names = {spelling for entry in entries for spelling in entry}
    halves = {
        half: name
        for name in sorted(names)
        if re.fullmatch(rf"{HAN}{{4}}", name)
        for half in (name[:2], name[2:])
        if half not in names
    }
    longest_first = sorted(names | set(halves), key=lambda name: (-len(name), name))
    alternatives = [
        re.escape(name) if re.match(HAN, name) else rf"\b{re.escape(name)}\b"
        for name in longest_first
    ]
    return any_case("|".join(alternatives) or r"(?!)"), halves


# ------------------------------------------------------------------- unlisted names

LATIN = r"[A-Z][\w'.&-]*(?: [A-Z][\w'.&-]*){0,3}"
_LOOSE = rf"(?:(?:the )?({LATIN})|([a-z][a-z'-]+))"
_ANY = r"[\u4e00-\u9fffA-Za-z .'-]"
IN_A_LIST = (
    rf"({LATIN}),? (?:and|or) §|§,? (?:and|or) ({LATIN})",
    rf"({HAN}+)[、和与]§|§[、和与]({HAN}{{2,8}}?)(?:[的哪谁股]|天气|气温|$)",
)
PLACES = {  # the form of a sentence that makes a name plain
    "weather": (
        rf"\b(?:in|of|at|for) {_LOOSE}",
        rf"({LATIN})(?:'s)? (?:[a-z]+ )?(?:[Ww]eather|[Tt]emperature)",
        rf"({_ANY}{{2,16}}?)(?:天气|气温|温度|湿度|温差|几度)",
    ),
    "price": (
        rf"(?:(?:[Ss]tock|[Ss]hares?) (?:price )?|[Pp]rice )(?:of|for) {_LOOSE}",
        rf"({LATIN})(?:'s)? (?:[Ss]tock|[Ss]hare)",
        rf"({_ANY}{{2,16}}?)(?:股价|股票|股份)",
        rf"\d ?股({HAN}{{2,6}}?)(?:的|股票|市值|价值|值|$)",
    ),
    "time": (rf"\bin ({LATIN})",),
}
_HEAD = (
    r"请问?|帮我|麻烦|你好|告诉|想|知道|查询?|一下|看看?|现在|今[天日]|目前|当前|此[刻时]"
    r"|那么?|[你我的在是与问给]|如果|持有|买了?|能|可以|还有|平均|最[高低]|最新|今"
)
_TAIL = r"现在|今[天日]|目前|当前|[的市在]|最新|平均|最[高低]|这里|那里|一?股"
_NOT_A_NAME = any_case(
    r"哪|谁|什么|怎么|多少|市值|价值|股票|股价|外面|这里|这边|刚才|刚刚|上面|之前|摄氏|华氏"
    r"|总|共|^(?:the|an?|my|your|this|that|it|its|here|there|today|now|tomorrow"
    r"|yesterday|general|what|which|how|is|are|current|tell|show|give|me|both|each|all"
    r"|total|celsius|fahrenheit|degrees?|weather|stock|share|shares|one|average|mean"
    r"|these|those|them|two|see|and|hi|hello|please|compare|check|get|find|latest|i|if"
    r"|company|city|market)$"
)


def guess(text: str, kind: str) -> list[str]:
    """The name that a text with § for listed names makes plain, if any."""
    for pattern in IN_A_LIST if "§" in text else PLACES[kind]:
        for match in re.finditer(pattern, text):
            if name := bare(next(filter(None, match.groups()), "")):
                return [name]
    return []


def bare(text: str) -> str:
    """The name without the words around it; empty when nothing like a name is left."""
    name = re.sub(rf"^(?:(?:{_HEAD})\s?)+", "", text.strip(" ,.?!。'"))
    name = re.sub(rf"(?:\s?(?:{_TAIL}))+$", "", name).removesuffix("'s").strip()
    return "" if len(name) < 2 or _NOT_A_NAME.search(name) else name
