"""What the offline model understands of a question, in Chinese and English, by rules.

Three readings, each simple enough to follow by eye:

1. What stands on its own is lifted out of the text: the conversion of a stated value
   ("18 °C in Fahrenheit") and an arithmetic expression ("17 * 23", "3 加 4").
2. The rest is cut into clauses at punctuation and at "and", "or", 和, 还是. In each
   clause, words give the topics (time, weather, price …) and names the cities and
   companies. A clause that is nothing but names joins a neighbour that wants them.
3. Each clause becomes needs. What it leaves out comes from the clauses before it, and
   then from the `Memory` of the questions before: 那 200 股呢？, "And Shanghai?".

Nothing is called here: `understand` returns needs, and offline.py plans the calls.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

# ------------------------------------------------------------------- the vocabulary

NUMBER = r"\d{1,15}(?:,\d{3})*(?:\.\d{1,15})?"
UNITS = {
    "km": r"km|kilomet(?:er|re)s?|公里|千米",
    "m": r"m|met(?:er|re)s?|米",
    "mile": r"miles?|mi|英里",
    "foot": r"foot|feet|ft|英尺",
    "kg": r"kgs?|kilograms?|kilos?|公斤|千克",
    "g": r"g|grams?|克",
    "lb": r"lbs?|pounds?|磅",
    "celsius": r"(?:°\s?|degrees? )?(?:celsius|centigrade|C)|摄氏度?",
    "fahrenheit": r"(?:°\s?|degrees? )?(?:fahrenheit|F)|华氏度?",
}
QUANTITIES = ({"km", "m", "mile", "foot"}, {"kg", "g", "lb"}, {"celsius", "fahrenheit"})
CURRENCIES = {
    "HKD": r"港元|港币|HKD|HK dollars?|Hong Kong dollars?",
    "CNY": r"人民币|CNY|RMB|yuan",
    "USD": r"美元|美金|USD|US dollars?|dollars?",
}


def _one_of(words: Mapping[str, str], prefix: str = "") -> str:
    """A pattern with one named group a word, so that `lastgroup` tells which it was."""
    named = "|".join(f"(?P<{prefix}{key}>{value})" for key, value in words.items())
    return f"(?:{named})(?![A-Za-z])"


def _any(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_CURRENCY = _any(rf"(?<![A-Za-z]){_one_of(CURRENCIES)}")
_VALUE = rf"(?P<sign>零下|minus |(?<![\d)])-)?(?P<value>{NUMBER})\s?"
_LINK = r"(?:\b(?:in|into|to|as|is)\b|=|[多少几成为转到合])"
_FROM = _one_of({**UNITS, "degree": r"degrees?|度"}, "from_")
_TO = rf"(?<![A-Za-z]){_one_of(UNITS, 'to_')}"
STATED = (
    _any(rf"{_VALUE}{_FROM}(?P<between>[^\d?;。\n]{{0,25}}?){_TO}"),
    _any(rf"(?:how many|多少|几|in|to|成)\s?{_TO}[^\d?;。\n]{{0,20}}?{_VALUE}{_FROM}"),
)
TARGET = _any(
    rf"(?:\b(?:in|into|to|as)\b|[少几成为用合按])\s?(?:degrees? )?{_TO}"
    r"|(?P<to_f>fahrenheit|华氏)"
)

OPERATORS = {
    r"加上?|plus": "+",
    r"减去?|minus|less": "-",
    r"乘以?|times|multiplied by|x": "*",
    r"除以|divided by|over": "/",
    r"的(?=\d+%)": "*",
    r"to the power of": "^",
}
_LIST = rf"({NUMBER}(?:(?:\s?,\s?and |\s?,\s?|\s?和\s?|、| and ){NUMBER})+)"
REWRITES: tuple[tuple[str, str], ...] = (
    (r"百分之\s?(\d+(?:\.\d+)?)", r"\1%"),
    (r"(\d)\s?(?:percent|per cent)\b", r"\1%"),
    (r"(\d%) of (?=[\d(])", r"\1 * "),
    (rf"(?:square root of|√)\s?({NUMBER})|({NUMBER})\s?的平方根", r"\1\2 ^ 0.5"),
    (r"(\d)\s?(?:的平方(?!根|[公米])|squared)", r"\1 ^ 2"),
    (r"(\d)\s?(?:的立方(?![公米])|cubed)", r"\1 ^ 3"),
    (r"(\d)\s?的\s?(\d+)\s?次方", r"\1 ^ \2"),
    (rf"\badd ({NUMBER}) (?:and|to) ({NUMBER})", r"\1 + \2"),
    (rf"\bsubtract ({NUMBER}) from ({NUMBER})", r"\2 - \1"),
    (rf"\bmultiply ({NUMBER}) (?:by|and|with) ({NUMBER})", r"\1 * \2"),
    (rf"\bdivide ({NUMBER}) by ({NUMBER})", r"\1 / \2"),
    (rf"\b(?:double|twice) ({NUMBER})", r"2 * \1"),
    (rf"\bhalf of ({NUMBER})", r"\1 / 2"),
    *(
        (rf"([\d)%])\s?(?:{words})\s?(?=[-\d(])", rf"\1 {sign} ")
        for words, sign in OPERATORS.items()
    ),
)
LISTED = {  # "the average of 3, 5 and 10", 3 和 5 的平均值
    rf"\b(?:sum|total) (?:of|between) {_LIST}|{_LIST}\s?的(?:总?和|总数)": " + ",
    rf"\bproduct of {_LIST}|{_LIST}\s?的(?:乘?积)": " * ",
    rf"\bdifference (?:of|between) {_LIST}|{_LIST}\s?的差": " - ",
    rf"\b(?:average|mean) (?:of )?{_LIST}|{_LIST}\s?的平均[值数]?": " + /",
}
_OPERATOR = r"(?:\*\*|//|[-+*/^%])"
EXPRESSION = re.compile(
    rf"(?:[-(] ?)*(?<![\w.]){NUMBER} ?%?(?: ?\))*"
    rf"(?: ?{_OPERATOR} ?(?:[-(] ?)*{NUMBER} ?%?(?![\w.]\d)(?: ?\))*)+"
)
ASKS_FOR_A_NUMBER = _any(
    r"comput|calculat|what|equal|=|evaluate|how much|算|等于|多少|几"
)
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{4}")

TOPICS = {
    "time": _any(
        r"几点|什么时间|[前在]的?时间|时间是|星期几|周几|礼拜几|几号|日期|什么时候了"
        r"|what time|(?:current|local|the) (?:local )?time\b|time is it|time now"
        r"|^ ?(?:time\b|时间)|(?:what|which) (?:week)?day\b|\bdate\b"
        r"|day is (?:it|today)"
    ),
    "weather": _any(
        r"天气|气温|温度|温差|多少度|几度|[冷热暖凉]|湿度|刮风|风速|下[雨雪]|雨伞|带伞"
        r"|weather|temperature|\b(?:warm|cold|hot|cool|humid|wind|rain|snow|sunn)"
        r"|umbrella|how many degrees"
    ),
    "price": _any(
        r"股价|股票|多少钱|价格|价差|报价|市价|市值|价值|值多少|贵(?!州)|便宜"
        r"|\b(?:stock|share|price|quote|worth|value|how much|expensive|cheap)"
        r"|trading at"
    ),
    "difference": _any(
        r"温差|相差|差多少|价差|差价|差距|之差|[高低贵热冷暖]多少|[高低]几度"
        r"|\bdifference|by how much"
        r"|how much (?:warmer|colder|hotter|cooler|more|higher|lower|cheaper)"
    ),
    "sum": _any(r"加起来|之和|总和|加在一起|\bsum of|add(?:ed)? up"),
    "average": _any(r"平均|\baverage|\bmean (?:temp|price)"),
    "compare": _any(
        r"更|最|比|[哪谁].{0,4}[冷热暖凉高低贵]|对比|\bthan\b|compare"
        r"|\b(?:warm|cold|hott|cool|cheap|high|low)(?:er|est)|\b(?:more|most) exp"
    ),
    "intro": _any(
        r"介绍一?下?(?:你|自己)|自我介绍|你是谁|你是什么|你能做|你会[做什]|你可以做"
        r"|who are you|what are you\b|introduce yourself|about yourself|what can you do"
        r"|are you (?:a |an )?(?:real|human|language|ai|bot|robot|model|llm)"
    ),
}
FAMILIES = ("weather", "price")
OPERATIONS = ("difference", "average", "sum", "compare")
LOWER = _any(r"[冷凉]|低|便宜|cold|cool|low|cheap")
STOCK = _any(r"股|\bstock|\bshare")
PRONOUN = _any(r"[它他这那]|刚才|刚刚|\b(?:it|its|they|them|their|that|this|those)\b")

MENTIONED = _any(
    r"刚才|刚刚|之前|\bmentioned|\bearlier|\bprevious|\byou (?:just )?said"
)

_N = rf"({NUMBER}%?)"
CHANGES = (  # what is done to a value that is looked up or was mentioned
    (rf"{_N} ?(?:\*|\btimes\b|乘以?) ?(?!\d)", "{n} * {{0}}"),
    (rf"(?:涨|rises?|increases?|\bup)(?:了| by)? ?({NUMBER}%)", "{{0}} * (1 + {n})"),
    (rf"(?:跌|falls?|drops?|\bdown)(?:了| by)? ?({NUMBER}%)", "{{0}} * (1 - {n})"),
    (rf"(?:乘以?|\*|\btimes\b|multipl\w+ (?:\w+ )?by) ?{_N}", "{{0}} * {n}"),
    (rf"(?:除以|(?<!\d)/|divided? (?:\w+ )?by) ?{_N}", "{{0}} / {n}"),
    (rf"(?:加上?|\+|\bplus\b|\badd) ?{_N}", "{{0}} + {n}"),
    (rf"(?:减去?|(?<![\d)])-|\bminus\b|\bsubtract) ?{_N}", "{{0}} - {n}"),
    (rf"({NUMBER}%) of\b", "{n} * {{0}}"),
    (rf"的 ?({NUMBER}%)", "{{0}} * {n}"),
    (rf"({NUMBER}) ?倍", "{{0}} * {n}"),
    (r"\bdouble|\btwice|两倍|翻[倍番]()", "{{0}} * 2"),
    (r"\btriple|三倍()", "{{0}} * 3"),
    (r"\bhalf (?:of|the|that|it)|\bhalve|一半()", "{{0}} / 2"),
)

_LISTING = r"、|(?<![暖温平])和|与|跟|及|\band\b|\bor\b|还是|或者?|\bvs\b"
SEPARATOR = _any(
    rf"(?P<stop>[?!。;\n:]+\s?|(?:,(?!\d{{3}})|\.(?=\s|$))\s?(?:(?:and|or|then)\b|和)?"
    rf"|以及|还有|然后|并且?|\bthen\b|\bplus\b(?! ?\d)|\bbut\b)|(?P<list>{_LISTING})"
)
SHARES = _any(rf"({NUMBER})\s?(?:[股§]|(?:more |(?:of )?(?:its|their) )?shares?\b)")
_LATIN = r"[A-Z][\w'.&-]*(?: [A-Z][\w'.&-]*){0,3}"
_LOOSE = rf"(?:(?:the )?({_LATIN})|([a-z][a-z'-]+))"
_HAN = r"[\u4e00-\u9fff]"
_ANY = r"[\u4e00-\u9fffA-Za-z .'-]"
UNKNOWN_CITY = (
    rf"\b(?:in|of|at|for) {_LOOSE}",
    rf"({_LATIN})(?:'s)? (?:[a-z]+ )?(?:[Ww]eather|[Tt]emperature)",
    rf"({_ANY}{{2,16}}?)(?:天气|气温|温度|湿度|温差|几度)",
    rf"^({_HAN}{{2,12}}?)(?:[哪谁更最]|比)",
)
UNKNOWN_COMPANY = (
    rf"(?:(?:[Ss]tock|[Ss]hares?) (?:price )?(?:of|for)|[Pp]rice (?:of|for)) {_LOOSE}",
    rf"({_LATIN})(?:'s)? (?:[Ss]tock|[Ss]hare)",
    rf"({_ANY}{{2,16}}?)(?:股价|股票|股份)",
    rf"\d ?股({_HAN}{{2,6}}?)(?:的|股票|市值|价值|值|$)",
)
_HEAD = (
    r"请问?|帮我|麻烦|你好|告诉|想|知道|查询?|一下|看看?|现在|今[天日]|目前|当前|此[刻时]|那么?"
    r"|[你我的在是与问给]|如果|持有|买了?|能|可以|还有|平均|最[高低]|最新|今"
)
_TAIL = r"现在|今[天日]|目前|当前|[的市在]|最新|平均|最[高低]|这里|那里|一?股"
NOT_A_NAME = _any(
    r"哪|谁|什么|怎么|多少|市值|价值|股票|股价|外面|这里|这边|刚才|刚刚|上面|之前|摄氏|华氏"
    r"|总|共|^(?:the|an?|my|your|this|that|it|its|here|there|today|now|tomorrow|yesterday|general|what|which"
    r"|how|is|are|current|tell|show|give|me|both|each|all|total|celsius|fahrenheit"
    r"|degrees?|weather|stock|share|shares|one|average|mean|these|those|them|two|see"
    r"|and|hi|hello|please|compare|check|get|find|latest|i|if|company|city|market)$"
)
FILLER = _any(
    r"\b(?:and|how about|what about|what|about|for|in|of|the|then|also|too|it|or|with"
    r"|instead|same|now|please|city|at)\b|[那么呢换成和的如果是再看也还有]|怎么样|[\s,.?!。;:、']"
)
RELATES = _any(r"比|更|差|\bthan\b|difference|\w+er\b")
VALUE = _any(_VALUE + _one_of(UNITS, "from_"))
RESULT = _any(rf"(=?) ?(-?{NUMBER})(?: ?(°[CF]|HKD|CNY|USD|港元|人民币|美元))?")
SMALL_TALK = {
    "hello": _any(
        r"^\W*(?:你好|您好|早上好|晚上好|嗨)"
        r"|^\W*(?:hello|hi|hey|good (?:morning|evening))\b"
    ),
    "thanks": _any(r"谢谢|多谢|感谢|\bthank|再见|\bbye"),
}
MARKED = _any(r"^(?:and|how about|what about)\b|呢[?。!\s]*$")

# --------------------------------------------------------------- what comes out


@dataclass(frozen=True)
class Clock:
    """The time or the date is asked for."""


@dataclass(frozen=True)
class Lookup:
    """The weather of cities or the price of companies, and what is made of them."""

    kind: Literal["weather", "price"]
    names: tuple[str, ...]
    operation: str = "each"  # or highest, lowest, difference, average, sum
    unit: str | None = None  # the unit wanted instead of °C
    change: str | None = None  # "{0} * 2"
    fresh: bool = True  # named in this question, so looked up now

    @property
    def plain(self) -> bool:
        """Whether the values themselves are asked for, not what is made of them."""
        return self.operation == "each" and not self.unit and not self.change


@dataclass(frozen=True)
class Holding:
    """What so many shares are worth, one part a company."""

    parts: tuple[tuple[str, str], ...]  # (number of shares, company)
    change: str | None = None


@dataclass(frozen=True)
class Arithmetic:
    """An expression of known numbers; the unit is that of a number mentioned before."""

    expression: str
    unit: str = ""


@dataclass(frozen=True)
class Conversion:
    """A known value in another unit."""

    value: str
    from_unit: str
    to_unit: str


@dataclass(frozen=True)
class Talk:
    """Nothing to call: intro, hello, thanks, which city, which company, other."""

    about: str


Need = Clock | Lookup | Holding | Arithmetic | Conversion | Talk


@dataclass(frozen=True)
class Names:
    """The cities and companies that the tools say they know, all spellings of each."""

    cities: tuple[tuple[str, ...], ...] = ()
    companies: tuple[tuple[str, ...], ...] = ()

    def same(self, name: str) -> str:
        """The first spelling of the entry that `name` belongs to, else the name."""
        wanted = name.strip().removesuffix("市").casefold()
        for entry in (*self.cities, *self.companies):
            if wanted in (spelling.casefold() for spelling in entry):
                return entry[0]
        return name


@dataclass
class Memory:
    """What a follow-up may lean on: the names and the form of the questions before."""

    cities: list[str] = field(default_factory=list)
    companies: list[str] = field(default_factory=list)
    kind: str = ""
    unit: str | None = None
    shares: str | None = None


@dataclass(eq=False)
class _Clause:
    """One stretch of the question: its words as topics, names and numbers."""

    text: str
    start: int
    follows: bool  # a list word (和, and, or) stands before it
    listed: bool  # and one after it
    topics: set[str]
    cities: list[str] = field(default_factory=list)
    companies: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)  # of the names, in the text
    shares: list[str] = field(default_factory=list)
    unit: str | None = None
    change: str | None = None

    @property
    def meant(self) -> bool:
        """Whether the clause says anything beyond names."""
        return bool(self.topics or self.shares or self.unit or self.change)

    def names(self, kind: str) -> list[str]:
        return self.cities if kind == "weather" else self.companies

    def wants(self, kind: str) -> bool:
        """Whether names of this kind, weather or price, belong into this clause."""
        if self.topics & set(FAMILIES) or self.shares:
            return kind in self.topics or (kind == "price" and bool(self.shares))
        return bool(self.topics & set(OPERATIONS) or self.unit or self.change)

    def takes(self, other: _Clause) -> bool:
        """Whether the names of the other clause belong into this one."""
        kinds = [kind for kind in FAMILIES if other.names(kind)]
        return self.meant and any(map(self.wants, kinds))

    def continues(self, before: _Clause) -> bool:
        """Whether this clause only goes on with the names of the one before: "Which is
        cheaper, Apple or Tesla stock?", "Weather in Rome and Paris in Fahrenheit"."""
        own = bool(self.shares or self.change or self.topics & set(OPERATIONS))
        if own or not before.takes(self):
            return False
        compares = before.topics & set(OPERATIONS) and (
            self.follows or not before.places
        )
        return bool(compares or (self.follows and self.unit and not self.topics))

    def absorb(self, other: _Clause) -> None:
        """Take over the names, in the order of the text."""
        self.places |= other.places
        self.topics |= other.topics
        self.unit = self.unit or other.unit
        self.cities = sorted({*self.cities, *other.cities}, key=self.places.__getitem__)
        companies = {*self.companies, *other.companies}
        self.companies = sorted(companies, key=self.places.__getitem__)


# ------------------------------------------------------------- 1. what is lifted out


def understand(
    question: str, names: Names, memory: Memory, said: Sequence[str] = ()
) -> tuple[list[Need], Memory]:
    """Return what the question needs, in its order, and the memory for the next one.
    `said` holds the texts of the conversation that numbers may come from, newest first.
    """
    text, lifted = _lift(tidy(question))
    clauses = _clauses(text, names)
    _join(clauses)
    if not lifted and not any(c.topics or c.shares or c.unit for c in clauses):
        _follow_up(text, clauses, memory)
    return _Reader(text, clauses, memory, said).read(lifted, question)


def tidy(question: str) -> str:
    """Full-width signs as ASCII, numbers in Chinese characters as digits."""
    text = question[:2000].translate({0xB2: "^2", 0xB3: "^3", 0xBA: "°"})
    text = unicodedata.normalize("NFKC", text)
    text = text.translate(str.maketrans("×÷−–’‘“”", "*/--''  "))
    text = re.sub(r"[^\S\n]+", " ", text).strip()
    han = "一二两三四五六七八九十"
    after = r"\s?(?:万?股|公里|千米|米|英里|英尺|公斤|千克|克|磅|摄氏|华氏|[加减乘除])"
    number = rf"[{han}][{han}百千]*"
    number = rf"(?!一\s?股){number}?(?={after})|(?<=[加减乘以去])\s?{number}"
    text = re.sub(number, _digits, text)
    return re.sub(rf"({NUMBER})\s?万(?=股|港|美|人民|元)", _ten_thousands, text)


def _digits(match: re.Match[str]) -> str:
    total, digit = 0, 0
    for sign in match[0].strip():
        if sign in "十百千":
            total += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[sign]
            digit = 0
        else:
            digit = "零一二三四五六七八九".find(sign.replace("两", "二"))
    return str(total + digit)


def _ten_thousands(match: re.Match[str]) -> str:
    return f"{float(match[1].replace(',', '')) * 10000:.12g}"


def _lift(text: str) -> tuple[str, list[tuple[int, Need]]]:
    """Cut conversions and expressions out; return the rest and them with their places.
    Blanks of the same length stay behind, so that places in the text stay right."""
    found: list[tuple[int, Need]] = []

    def cut(
        pattern: re.Pattern[str], read: Callable[[re.Match[str]], Need | None]
    ) -> None:
        nonlocal text
        for match in pattern.finditer(text):
            if (need := read(match)) is not None:
                found.append((match.start(), need))
                start, end = match.span()
                text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"

    for pattern in STATED:
        cut(pattern, _conversion)
    for words, sign in LISTED.items():
        cut(_any(words), lambda match, sign=sign: _listed(match, sign))  # type: ignore[misc]
    for words, operators in REWRITES:
        text = re.sub(words, operators, text, flags=re.IGNORECASE)
    whole = text.rstrip("?=。. ").strip()
    cut(EXPRESSION, lambda match: _arithmetic(match[0], whole))
    return text, found


def _conversion(match: re.Match[str]) -> Need | None:
    groups = {
        key: value for key, value in match.groupdict().items() if value is not None
    }
    source = next(key[5:] for key in groups if key.startswith("from_"))
    target = next(key[3:] for key in groups if key.startswith("to_"))
    if source == "degree":
        source = "celsius" if target == "fahrenheit" else "fahrenheit"
    linked = re.search(rf"{_LINK}\s?$", groups.get("between", "="), re.IGNORECASE)
    if source == target or not (linked or _one_quantity(source, target)):
        return None
    sign = "-" if "sign" in groups else ""
    return Conversion(sign + plain(groups["value"]), source, target)


def _one_quantity(one: str, other: str) -> bool:
    return any(one in units and other in units for units in QUANTITIES)


def plain(number: str) -> str:
    """The number without thousands separators."""
    return number.replace(",", "")


def _listed(match: re.Match[str], sign: str) -> Need:
    numbers = re.findall(NUMBER, next(group for group in match.groups() if group))
    joined = sign.removesuffix("/").join(map(plain, numbers))
    return Arithmetic(f"({joined}) / {len(numbers)}" if "/" in sign else joined)


def _arithmetic(text: str, whole: str) -> Need | None:
    """The expression in the spelling of `calculate`, or None for dates and ranges."""
    text = text.strip()
    while text.count("(") > text.count(")") and text.startswith("("):
        text = text[1:].strip()
    while text.count(")") > text.count("(") and text.endswith(")"):
        text = text[:-1].strip()
    doubtful = re.fullmatch(r"\d+(?:[-/]\d+)+", text)
    asked = text == whole or ASKS_FOR_A_NUMBER.search(whole)
    if DATE.fullmatch(text) or (doubtful and not asked):
        return None
    return Arithmetic(_spaced(text)) if text.count("(") == text.count(")") else None


def _spaced(expression: str) -> str:
    """One blank around each operator with two sides, none elsewhere."""
    parts = re.findall(rf"{NUMBER}|\*\*|//|[-+*/^%()]", expression)
    out = ""
    for index, part in enumerate(parts):
        after = parts[index + 1] if index + 1 < len(parts) else ")"
        operand_before = out[-1:].isdigit() or out[-1:] in (")", "%")
        two_sided = part in ("**", "//") or part in "-+*/^%"
        if part == "%" and not (after[0].isdigit() or after == "("):
            out += part
        elif two_sided and operand_before:
            out += f" {part.replace('**', '^')} "
        else:
            out += plain(part)
    return out


# ------------------------------------------------------------------- 2. the clauses


def _clauses(text: str, names: Names) -> list[_Clause]:
    clauses: list[_Clause] = []
    start, follows = 0, False
    for match in (*SEPARATOR.finditer(text), None):
        end = match.start() if match else len(text)
        listed = match is not None and match["list"] is not None
        if text[start:end].strip():
            clauses.append(_clause(text[start:end], start, (follows, listed), names))
        start, follows = match.end() if match else end, listed
    return clauses


def _clause(text: str, start: int, lists: tuple[bool, bool], names: Names) -> _Clause:
    topics = {topic for topic, words in TOPICS.items() if words.search(text)}
    clause = _Clause(text.strip(), start, *lists, topics)
    clause.cities, rest = _known(text, names.cities)
    clause.companies, rest = _known(rest, names.companies)
    clause.shares = [plain(number) for number in SHARES.findall(rest)]
    if (target := TARGET.search(text)) is not None:
        key = next(key for key, value in target.groupdict().items() if value)
        clause.unit = "fahrenheit" if key == "to_f" else key[3:]
    for words, template in CHANGES:
        if not clause.change and (change := re.search(words, rest, re.IGNORECASE)):
            clause.change = template.format(n=plain(change[1] or ""))
    if "weather" in topics and not clause.cities:
        clause.cities = _unknown(text, UNKNOWN_CITY)
    if ("price" in topics or clause.shares) and STOCK.search(text):
        clause.companies = clause.companies or _unknown(text, UNKNOWN_COMPANY)
    for name in (*clause.cities, *clause.companies):
        clause.places[name] = start + max(text.find(name), 0)
    return clause


def _known(text: str, entries: tuple[tuple[str, ...], ...]) -> tuple[list[str], str]:
    """The known names in the text as the user wrote them, and the text with § for each.
    Half of a four-character name stands for the whole: 茅台 is 贵州茅台."""
    pattern, whole = _pattern(entries)
    found = [match[0] for match in pattern.finditer(text)]
    names = dict.fromkeys(whole.get(name, name) for name in found)
    return list(names), pattern.sub("§", text)


@lru_cache(maxsize=64)
def _pattern(
    entries: tuple[tuple[str, ...], ...],
) -> tuple[re.Pattern[str], dict[str, str]]:
    """What finds any of the names, the longest first, and the whole name of halves."""
    names = {spelling for entry in entries for spelling in entry}
    halves = {
        half: name
        for name in sorted(names)
        if re.fullmatch(rf"{_HAN}{{4}}", name)
        for half in (name[:2], name[2:])
        if half not in names
    }
    longest_first = sorted(names | set(halves), key=lambda name: (-len(name), name))
    alternatives = [
        re.escape(name) if re.match(_HAN, name) else rf"\b{re.escape(name)}\b"
        for name in longest_first
    ]
    return _any("|".join(alternatives) or r"(?!)"), halves


def _unknown(text: str, patterns: Iterable[str]) -> list[str]:
    """The name that the form of the sentence makes plain although no tool lists it."""
    for pattern in patterns:
        for match in re.finditer(pattern, text):
            name = _bare(next(filter(None, match.groups()), ""))
            if name:
                return [name]
    return []


def _bare(text: str) -> str:
    """The name without the words around it; empty when nothing like a name is left."""
    name = text.strip(" ,.?!。'")
    name = re.sub(rf"^(?:(?:{_HEAD})\s?)+", "", name)
    name = re.sub(rf"(?:\s?(?:{_TAIL}))+$", "", name).removesuffix("'s").strip()
    return "" if len(name) < 2 or NOT_A_NAME.search(name) else name


def _join(clauses: list[_Clause]) -> None:
    """Give the names of clauses that say nothing else to one that wants them: the next
    when a list word leads there, else the one before, else any that follows."""
    for index in reversed(range(len(clauses) - 1)):  # 北京和上海哪个更暖和
        clause, following = clauses[index : index + 2]
        if clause.listed and not clause.meant:
            _guess_name(clause, following, rf"{_HAN}{{2,12}}|{_LATIN}")
            if following.takes(clause):
                following.absorb(clause)
                del clauses[index]
    for clause in [
        c for c in clauses if not c.meant
    ]:  # "Which is warmer, Rome or Oslo"
        index = clauses.index(clause)
        around = [*reversed(clauses[:index]), *clauses[index + 1 :]]
        if around and (clause.follows or clause.listed):
            _guess_name(clause, around[0], _LATIN)
        home = next((other for other in around if other.takes(clause)), None)
        if home is not None:
            home.absorb(clause)
            clauses.remove(clause)
    for index in reversed(range(1, len(clauses))):  # "Which is cheaper, A or B stock"
        before, clause = clauses[index - 1 : index + 1]
        if clause.continues(before):
            before.absorb(clause)
            del clauses[index]


def _guess_name(clause: _Clause, home: _Clause, form: str) -> None:
    """A list may hold a name that no tool knows: "Oslo and Beijing"."""
    if clause.places or not home.meant or not re.fullmatch(form, clause.text):
        return
    if name := _bare(clause.text):
        if home.wants("weather"):
            clause.cities, clause.places = [name], {name: clause.start}
        elif home.wants("price") and STOCK.search(home.text):
            clause.companies, clause.places = [name], {name: clause.start}


def _follow_up(text: str, clauses: list[_Clause], memory: Memory) -> None:
    """那上海呢？, "And Alibaba?": the last question, asked of a new name."""
    if not clauses:
        return
    first, rest = clauses[0], text
    cities = [name for clause in clauses for name in clause.cities]
    companies = [name for clause in clauses for name in clause.companies]
    for name in (*cities, *companies):
        rest = rest.replace(name, "")
    if not (cities or companies) and memory.kind and MARKED.search(text):
        last = re.sub(r"(?i)^(?:how|what) about |^and ", "", clauses[-1].text)
        name = _bare(last.removesuffix("呢"))
        found = [name] if name and len(name) < 20 else []
        cities, companies = (found, []) if memory.kind == "weather" else ([], found)
    elif FILLER.sub("", rest):
        return
    first.cities, first.companies = cities, companies
    if cities:
        first.topics, first.unit = {"weather"}, memory.unit
    elif companies:
        first.topics, first.shares = {"price"}, [memory.shares] if memory.shares else []
    del clauses[1:]


# -------------------------------------------------------------------- 3. the needs


class _Reader:
    """Turns clauses into needs and fills in what they leave out."""

    def __init__(
        self, text: str, clauses: list[_Clause], memory: Memory, said: Sequence[str]
    ) -> None:
        self.text, self.clauses, self.said = text, clauses, said
        self.memory = replace(memory)
        self.here: dict[str, list[str]] = {"weather": [], "price": []}
        self.found: list[tuple[int, Need]] = []

    def read(
        self, lifted: list[tuple[int, Need]], question: str
    ) -> tuple[list[Need], Memory]:
        """Return the needs in the order of the question, and the new memory."""
        self.found = list(lifted)
        for clause in self.clauses:
            for kind in FAMILIES:
                names = self.here[kind] + clause.names(kind)
                self.here[kind] = list(dict.fromkeys(names))
            needs = list(self._needs(clause))
            self.found += [(clause.start, need) for need in needs]
        self.found.sort(key=lambda pair: pair[0])
        needs = _merged([need for _, need in self.found])
        self._remember(needs)
        return needs or [Talk(_small_talk(question))], self.memory

    def _needs(self, clause: _Clause) -> Iterable[Need]:
        if "intro" in clause.topics:
            yield Talk("intro")
        if "time" in clause.topics:
            yield Clock()
        if clause.shares:
            yield from self._holding(clause)
        elif (kind := self._family(clause)) is not None:
            yield from self._lookup(clause, kind)
        elif clause.unit:
            yield from self._conversion(clause.unit)
        elif clause.change:
            yield from self._change(clause.change)

    def _family(self, clause: _Clause) -> Literal["weather", "price"] | None:
        """What the clause looks up, or None."""
        modified = clause.topics & set(OPERATIONS) or clause.unit or clause.change
        if "weather" in clause.topics or (clause.cities and modified):
            no_place = not (clause.cities or self.here["weather"])
            return (
                None
                if clause.unit and no_place and self._said(clause.unit)
                else "weather"
            )
        if "price" in clause.topics or (clause.companies and modified):
            named = clause.companies or self.here["price"] or STOCK.search(clause.text)
            if named or PRONOUN.search(clause.text):
                return "price"
        if clause.topics & set(OPERATIONS):
            kinds: tuple[Literal["weather", "price"], ...] = ("weather", "price")
            here = [kind for kind in kinds if self.here[kind]]
            return (
                here[-1]
                if here
                else next((kind for kind in kinds if kind == self.memory.kind), None)
            )
        return None

    def _lookup(
        self, clause: _Clause, kind: Literal["weather", "price"]
    ) -> Iterable[Need]:
        names, fresh = self._names(clause, kind)
        if not names:
            if not self._later(clause, kind):
                yield Talk("which city" if kind == "weather" else "which company")
            return
        if kind == "price" and not clause.companies and self._covered(clause):
            return
        yield Lookup(
            kind=kind,
            names=tuple(names),
            operation=_operation(clause, len(names)),
            unit=clause.unit if clause.unit == "fahrenheit" else None,
            change=clause.change,
            fresh=fresh,
        )

    def _names(self, clause: _Clause, kind: str) -> tuple[list[str], bool]:
        """The names the clause is about, and whether this question names them."""
        own, here = clause.names(kind), self.here[kind]
        known = self.memory.cities if kind == "weather" else self.memory.companies
        several = clause.topics & set(OPERATIONS)
        if several and (not own or (len(own) == 1 and RELATES.search(clause.text))):
            own = here if len(here) > 1 else [*known[-2 + len(here) :], *here]
            return list(dict.fromkeys(own)), bool(here)
        if own or here:
            return own or here, not MENTIONED.search(clause.text)
        return known[-1:], False

    def _later(self, clause: _Clause, kind: str) -> bool:
        return any(c.names(kind) for c in self.clauses if c.start > clause.start)

    def _covered(self, clause: _Clause) -> bool:
        """A "how much is it worth?" only repeats what a holding before it answers."""
        return not clause.change and any(isinstance(n, Holding) for _, n in self.found)

    def _company(self, clause: _Clause) -> list[str]:
        later = [name for c in self.clauses for name in c.companies]
        known = self.here["price"][-1:] or later[:1] or self.memory.companies[-1:]
        return clause.companies or known

    def _holding(self, clause: _Clause) -> Iterable[Need]:
        companies, shares = self._company(clause), clause.shares
        if not companies:
            yield Talk("which company")
            return
        if len(shares) != len(companies):
            shares = shares[:1] * len(companies)
        parts = tuple(zip(shares, companies, strict=True))
        yield Holding(parts, clause.change)

    def _conversion(self, unit: str) -> Iterable[Need]:
        cities = self.here["weather"]
        if cities and unit in ("celsius", "fahrenheit"):
            yield Lookup("weather", tuple(cities), unit=unit)
        elif (said := self._said(unit)) is not None:
            yield said

    def _said(self, unit: str) -> Conversion | None:
        """The value of that quantity that the conversation mentioned last."""
        for text in self.said:
            for match in VALUE.finditer(text):
                source = next(
                    k[5:] for k, v in match.groupdict().items() if v and "_" in k
                )
                if source != unit and _one_quantity(source, unit):
                    sign = "-" if match["sign"] else ""
                    return Conversion(sign + plain(match["value"]), source, unit)
        return None

    def _change(self, change: str) -> Iterable[Need]:
        """Something done to the value before: of this question, else mentioned last."""
        last = self.found[-1][1] if self.found else None
        if isinstance(last, Arithmetic):
            yield Arithmetic(change.format(f"({last.expression})"))
        elif isinstance(last, Lookup | Holding):
            yield replace(last, change=change)
        elif (number := _last_number(self.said)) is not None:
            yield Arithmetic(change.format(number[0]), number[1])

    def _remember(self, needs: Sequence[Need]) -> None:
        memory = self.memory
        memory.cities = _latest(memory.cities, self.here["weather"])
        memory.companies = _latest(memory.companies, self.here["price"])
        for need in needs:
            if isinstance(need, Lookup):
                memory.kind, memory.shares = need.kind, None
                memory.unit = need.unit
            elif isinstance(need, Holding):
                memory.kind, memory.shares = "price", need.parts[-1][0]


def _operation(clause: _Clause, count: int) -> str:
    if count < 2:
        return "each"
    for operation in ("difference", "average", "sum"):
        if operation in clause.topics:
            return operation
    if "compare" in clause.topics:
        return "lowest" if LOWER.search(clause.text) else "highest"
    return "each"


def _merged(needs: list[Need]) -> list[Need]:
    """Neighbouring holdings of different companies are one sum; repetitions go."""
    merged: list[Need] = []
    for need in needs:
        match merged[-1:], need:
            case [Holding(parts=held) as last], Holding(parts=more) if not (
                {company for _, company in held} & {company for _, company in more}
            ):
                merged[-1] = replace(last, parts=held + more)
            case _ if need not in merged:
                merged.append(need)
    return merged


def _latest(known: list[str], new: list[str]) -> list[str]:
    return [name for name in known if name not in new] + new


def _last_number(said: Sequence[str]) -> tuple[str, str] | None:
    """The last result in the newest text that has a number, and its unit."""
    for text in said:
        numbers = list(RESULT.finditer(text))
        results = [m for m in numbers if m[1] or (m[3] and m[3][0] != "°")]
        degrees = [m for m in numbers if m[3]][:1]
        for match in (results or degrees or numbers)[-1:]:
            money = _CURRENCY.search(match[3] or "")
            return plain(match[2]), str(money.lastgroup) if money else match[3] or ""
    return None


def _small_talk(question: str) -> str:
    for about, words in SMALL_TALK.items():
        if words.search(question):
            return about
    return "other"


@lru_cache(maxsize=64)
def known_names(description: str, what: str) -> tuple[tuple[str, ...], ...]:
    """The names behind "Known cities:" in a tool's description, spelling by spelling:
    腾讯 Tencent 0700.HK has three, 旧金山 San Francisco two."""
    listed = re.search(
        rf"Known {what}:\s*(.+?)\.(?:\s|$)", description + " ", re.DOTALL
    )
    entries = []
    for entry in listed[1].split(",") if listed else ():
        words = entry.split()
        if len(words) > 1 and re.match(_HAN, words[0]):
            ticker = len(words) > 2 and not words[-1].istitle()
            last = words[-1:] if ticker else []
            words = [words[0], " ".join(words[1 : len(words) - len(last)]), *last]
        else:
            words = [" ".join(words)]
        entries.append(tuple(filter(None, words)))
    return tuple(entries)


def is_chinese(question: str, names: Names) -> bool:
    """Whether to answer in Chinese: the words around the names decide."""
    _, rest = _known(question, names.cities + names.companies)
    han = len(re.findall(_HAN, rest))
    words = len(re.findall(r"[A-Za-z]{2,}", rest))
    if han + words == 0:
        return re.search(_HAN, question) is not None
    return han >= 2 * words
