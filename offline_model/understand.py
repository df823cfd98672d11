"""What the question needs: from its tokens to needs, and which tokens are left out.

First what stands on its own: conversions and arithmetic of stated numbers. Then clause
by clause what is to be looked up; what a clause leaves out comes from the clauses
before it, then from the questions before: 那 200 股呢？, "And Shanghai?".

The tokens are read by their shape: a letter each (see SHAPE), so that "100 Tencent
shares" and "50 shares of Apple" are found by a pattern over letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from .scan import Names, Token, plain, scan, tidy
from .words import HELLO, KINDS, THANKS, UNITS, USUAL_DEGREE, same_quantity

# ---------------------------------------------------------------------------- needs


@dataclass(frozen=True)
class Clock:
    """The time or the date is asked for, of a place perhaps that no tool knows."""

    place: str = ""


@dataclass(frozen=True)
class Lookup:
    """The weather of cities or the price of companies, and what is made of them."""

    kind: str
    names: tuple[str, ...]
    shares: tuple[str, ...] = ()  # how many are held, to tell what they are worth
    operation: str = ""  # difference, average or sum
    degree: str = ""  # the word of words.DEGREES to compare with, if any
    fahrenheit: bool = False
    change: str | None = None  # "{0} * 2"
    fresh: bool = True  # named in this question, so looked up now


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
    change: str | None = None  # "{0} + 2", done to what comes out


@dataclass(frozen=True)
class Talk:
    """Nothing to call; answer.TALK has the words."""

    about: str


Need = Clock | Lookup | Arithmetic | Conversion | Talk


@dataclass
class Memory:
    """What a follow-up may lean on: the names and the form of the questions before."""

    names: dict[str, list[str]] = field(default_factory=lambda: {k: [] for k in KINDS})
    kind: str = ""
    fahrenheit: bool = False
    shares: list[str] = field(default_factory=list)


# --------------------------------------------------------------------------- shapes

SHAPE = {
    "number": "N", "unit": "U", "share": "H", "weather": "C", "price": "S", "word": "w",
    "link": "l", "list": "A", "comma": ",", "end": ".", "before": "b", "(": "(",
    ")": ")", "add": "a", "subtract": "s", "multiply": "m", "divide": "v",
    "square": "q", "power": "p", "fold": "f", "double": "d", "half": "h", "rise": "r",
    "fall": "k", "average": "g", "sum": "G",
}  # fmt: skip
SIGNS = {"**": "^", "//": "|"}
VERBS = {"a": "+", "s": "-", "m": "*", "v": "/"}


def _letter(token: Token) -> str:
    if token.used:
        return " "
    first = token.marks[0]
    if first == "sign":
        return SIGNS.get(token.value, token.value)
    if first == "name":
        return SHAPE[token.marks[1]]
    if first == "number" and token.value.endswith("%"):
        return "P"
    return "x" if first in KINDS else SHAPE.get(first, "x")


def _use(tokens: Sequence[Token], used: bool = True) -> None:
    """Mark the tokens as part of the plan. A pattern may pass over words that are not:
    the 明天 in "Beijing * 明天 31"."""
    for token in tokens:
        token.used = used and _letter(token) != "x"


def shape(tokens: Sequence[Token]) -> str:
    """Return a letter for each token, by which patterns find what stands together."""
    return "".join(map(_letter, tokens))


_REVERSED = re.compile(r"l(?P<to>U)[lbx]*(?P<sign>-?)(?P<value>N)(?P<from>U)")
_FORWARD = re.compile(
    r"(?P<sign>-?)(?P<value>N)(?P<from>U)(?P<between>[lbx]*)(?P<to>U)"
)
_SERIES = re.compile(r"([gG]),?(N(?:[,A]+N)+)(?![HUSC])|(N(?:[,A]+N)+)([gG])")
_VERB = re.compile(r"([asmv])([NP])[Al]?([NP])(?![HUSC])")
_TERM = r"[(-]*(?:NNp|[NP]q?)\)*"
_SUM = re.compile(
    r"(?<![-+*/^%|(asmv])(?!(?<=[xSCbUH])-)"  # neither the rest of one nor "price - 3"
    rf"(?:{_TERM}(?:(?:[-+*/^%|]|(?=P)|(?<=P)){_TERM})+|[NP]q|NNp)"
    r"(?![-+*/^%|HUSCqp)])"
)
_HOLDING = re.compile(r"NH?SH?|Sx*NH|NH")
_CHANGES = {  # what is done to a value {x} with a number {n}
    "rise": (r"[r+a]P", "{x} * (1 + {n})"),
    "fall": (r"[-ks]P", "{x} * (1 - {n})"),
    "times": (r"[NP]\*(?![bxl]*[NP])", "{n} * {x}"),
    "by": (r"[*m][bxl]*[NP]", "{x} * {n}"),
    "over": (r"[/v][bxl]*[NP]", "{x} / {n}"),
    "plus": (r"[+a][bxl]*[NP](?![*/]x*S)", "{x} + {n}"),
    "minus": (r"[-s][bxl]*[NP](?![*/]x*S)", "{x} - {n}"),
    "of": (r"P(?=[bSC])", "{n} * {x}"),
    "part": (r"P|Nf", "{x} * {n}"),
    "double": (r"d", "{x} * 2"),
    "half": (r"h", "{x} / 2"),
}
_FORMS = "|".join(f"(?P<{key}>{form})" for key, (form, _) in _CHANGES.items())
_CHANGE = re.compile(rf"(?:{_FORMS})(?![HU])")
VALUE = re.compile(
    r"(?P<sign>-?)(?P<value>\d[\d,]*(?:\.\d+)?) ?(?:"
    + "|".join(
        f"(?P<{key}>{re.escape(unit.many)}|{re.escape(unit.one)}|{unit.chinese})"
        for key, unit in UNITS.items()
    )
    + r")(?![A-Za-z])"
)
RESULT = re.compile(
    r"(=?) ?(-?\d[\d,]*(?:\.\d+)?)(?: ?(?:港元（|美元（)?(°[CF]|HKD|CNY|USD))?"
)


# ------------------------------------------------------------------ the understanding


@dataclass
class Understanding:
    """What a question needs, in its order; what the plan does not use of it; and the
    memory for the next question."""

    needs: list[Need]
    left_out: list[Token]
    memory: Memory


def understand(
    question: str, names: Names, memory: Memory, said: Sequence[str] = ()
) -> Understanding:
    """Return what the question needs. `said` holds the texts of the conversation that
    numbers may come from, newest first."""
    tokens = scan(tidy(question), names)
    found = list(_alone(tokens))
    reader = _Reader(tokens, memory, said, found)
    needs = reader.needs()
    if not needs:
        about = "hello" if HELLO.search(question) else "other"
        needs = [Talk("thanks" if THANKS.search(question) else about)]
    talk = all(isinstance(need, Talk) and "which" not in need.about for need in needs)
    left_out = [] if talk else _left_out(tokens, needs)
    return Understanding(needs, left_out, reader.memory)


def _alone(tokens: list[Token]) -> Iterator[tuple[int, Need]]:
    """The conversions and the arithmetic of stated numbers, with their places."""
    for pattern, read in (
        (_REVERSED, _conversion),
        (_FORWARD, _conversion),
        (_SERIES, _series),
        (_VERB, _verb),
        (_SUM, _arithmetic),
    ):
        for match in pattern.finditer(shape(tokens)):
            if need := read(match, tokens):
                _use(tokens[match.start() : match.end()])
                yield tokens[match.start()].start, need


def _conversion(match: re.Match[str], tokens: list[Token]) -> Need | None:
    value, source, target = (
        tokens[match.start(group)].value for group in ("value", "from", "to")
    )
    if source == "degree":
        source = "celsius" if target == "fahrenheit" else "fahrenheit"
    linked = "l" in match.groupdict().get("between", "l")
    if "degree" in target or source == target:
        return None
    if not linked and not same_quantity(source, target):
        return None
    return Conversion(match["sign"] + value, source, target)


def _series(match: re.Match[str], tokens: list[Token]) -> Need:
    listed = tokens[match.start() : match.end()]
    numbers = [token.value for token in listed if token.means("number")]
    total = " + ".join(numbers)
    return Arithmetic(f"({total}) / {len(numbers)}" if "g" in match[0] else total)


def _verb(match: re.Match[str], tokens: list[Token]) -> Need:
    one, other = (tokens[match.start(group)].value for group in (2, 3))
    if match[1] == "s":  # subtract 3 from 10
        one, other = other, one
    return Arithmetic(f"{one} {VERBS[match[1]]} {other}")


def _arithmetic(match: re.Match[str], tokens: list[Token]) -> Need | None:
    """The expression in the spelling of `calculate`, or None where brackets lack."""
    words: list[str] = []
    letters = match[0]
    for i, letter in enumerate(letters):
        value = tokens[match.start() + i].value
        if letter in "NP":
            if i and letters[i - 1] in "NP":
                words.append(" ^ " if letters[i + 1 : i + 2] == "p" else " * ")
            words.append(value)
        elif letter in "()":
            words.append(letter)
        elif letter == "q":
            words.append(" ^ 2")
        elif letter == "-" and (i == 0 or letters[i - 1] in "(-+*/^%|"):
            words.append("-")
        elif letter != "p":
            words.append(f" {'//' if letter == '|' else letter} ")
    text = "".join(words)
    if text.startswith("(") and text.count("(") > text.count(")"):
        text = text[1:]
    if text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1]
    return Arithmetic(text) if text.count("(") == text.count(")") else None


# ---------------------------------------------------------------------------- clauses


class _Clause:
    """One stretch of the question."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.names: dict[str, list[str]] = {kind: [] for kind in KINDS}
        self.holdings: list[tuple[str, str | None]] = []  # shares, and of whom
        self.held: list[Token] = []  # the tokens that say so
        self._guess()
        for token in tokens:
            for kind in KINDS:
                if token.means("name") and token.means(kind):
                    self.names[kind].append(token.value)

    def _guess(self) -> None:
        """Take unknown words for a name where the words around them make that plain."""
        weather, stock = self.has("weather", "time"), self.has("stock")
        if not (weather or stock):
            return
        places = range(len(self.tokens))
        for i in [*places, *reversed(places)]:  # 深圳和拉萨的天气: the last one first
            token, letters = self.tokens[i], shape(self.tokens)
            if not token.means("word") or len(token.text) < 2:
                continue
            if token.text[0].isascii():
                named = token.text[0].isupper() or token.means("placed")
            else:
                beside = self.tokens[i + 1 : i + 2]
                topic = any(t.means("weather", "stock", "time") for t in beside)
                listed = re.search("[CS]", letters[max(i - 2, 0) : i + 3])
                named = topic or bool(listed) or letters[i - 1 : i] in {"H", "N"}
            if named:
                token.marks = ("name", "price" if stock else "weather")

    def has(self, *marks: str) -> bool:
        return any(
            token.means(*marks) for token in self.tokens if not token.means("name")
        )

    @property
    def compares(self) -> bool:
        return self.has("compare") or (self.has("which") and self.has("degree"))

    @property
    def several(self) -> bool:
        """Whether it compares or combines several values."""
        return self.compares or self.has("difference", "average", "sum")

    @property
    def complete(self) -> bool:
        """Whether it says by itself what it wants."""
        if self.has("time"):
            return True
        asks = self.has("weather", "price", "intro", "degree") or self.several
        return asks and any(self.names.values())

    def degree(self, kind: str) -> str:
        """The word it compares such things with, if it does."""
        if not self.compares:
            return ""
        for token in self.tokens:
            if token.means("degree") and token.marks[0] in (kind, "-"):
                return token.value
        return USUAL_DEGREE[kind]

    def unit(self) -> Token | None:
        """The unit to convert to."""
        units = [t for t in self.tokens if t.means("unit") and t.value != "degree"]
        return units[-1] if units else None

    def place(self, *marks: str) -> int:
        starts = [t.start for t in self.tokens if t.means(*marks)]
        return min(starts, default=self.tokens[0].start)


def _clauses(tokens: list[Token]) -> list[_Clause]:
    """The clauses: cut at the ends of sentences; and at commas, "and", 和 … where both
    sides say by themselves what they want, unlike "Which is warmer, Rome or Oslo?"."""
    parts = [tokens]
    for separator in ("end", "comma", "list"):
        parts = [p for whole in parts for p in _cut(whole, separator)]
    return [_Clause(part) for part in parts]


def _cut(tokens: list[Token], separator: str) -> list[list[Token]]:
    parts: list[list[Token]] = []
    piece: list[Token] = []
    joint: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and not token.means(separator):
            piece.append(token)
            continue
        if piece:
            before = _Clause(parts[-1]) if parts else None
            listed = before and separator == "list" and before.several
            apart = before and before.complete and _Clause(piece).complete
            if before and separator != "end" and (listed or not apart):
                parts[-1] = [*parts[-1], *joint, *piece]
            else:
                parts.append(piece)
        piece, joint = [], [token] if token else []
    return parts


# ------------------------------------------------------------------------- the reader


class _Reader:
    """Turns clauses into needs and fills in what they leave out."""

    def __init__(
        self,
        tokens: list[Token],
        memory: Memory,
        said: Sequence[str],
        found: list[tuple[int, Need]],
    ) -> None:
        self.said, self.found, self.held = said, found, False
        self.memory = replace(memory, names={k: [*v] for k, v in memory.names.items()})
        self.clauses = _clauses([token for token in tokens if not token.used])
        self.here: dict[str, list[str]] = {kind: [] for kind in KINDS}
        asked = ("weather", "price", "time", "intro", "degree", "share", "unit")
        if not found and not any(c.has(*asked) or c.several for c in self.clauses):
            self._follow_up()

    def _follow_up(self) -> None:
        """那上海呢？, "And Alibaba?": the last question, asked of a new name."""
        memory = self.memory
        for clause in self.clauses[:1]:
            words = [t for t in clause.tokens if t.means("word")]
            if clause.has("again") and len(words) == 1 and memory.kind:
                words[0].marks = ("name", memory.kind)
                clause.names[memory.kind].append(words[0].value)
            elif words:
                return
            kind = next((k for k, names in clause.names.items() if names), "")
            if not kind or clause.has("number"):
                return
            start = clause.tokens[0].start
            if kind == "price" and memory.shares:
                clause.holdings = [(memory.shares[-1], None)]
            elif kind == "weather" and memory.fahrenheit:
                clause.tokens.append(
                    Token(("unit", "fahrenheit"), "", start, "fahrenheit", used=True)
                )
            clause.tokens.append(Token((kind, "topic"), "", start, used=True))

    def needs(self) -> list[Need]:
        """The needs in the order of the question. The memory takes them in."""
        for clause in self.clauses:
            self._hold(clause)
        self.held = any(clause.holdings for clause in self.clauses)
        for clause in self.clauses:
            for kind, names in self.here.items():
                names += [n for n in clause.names[kind] if n not in names]
            self.found += self._read(clause)
        self.found.sort(key=lambda pair: pair[0])
        degree = next((d for c in self.clauses if (d := c.degree("price"))), "")
        needs = _merged([need for _, need in self.found], degree)
        memory = self.memory
        for kind, new in self.here.items():
            memory.names[kind] = [n for n in memory.names[kind] if n not in new] + new
        for need in needs:
            if isinstance(need, Lookup):
                memory.kind, memory.fahrenheit = need.kind, need.fahrenheit
                memory.shares = list(need.shares[-1:])
        return needs

    def _hold(self, clause: _Clause) -> None:
        """Which numbers are shares, and of which company."""
        if not any(c.has("share", "price") for c in self.clauses):
            return
        for match in _HOLDING.finditer(shape(clause.tokens)):
            held = clause.tokens[match.start() : match.end()]
            number = next(token.value for token in held if token.means("number"))
            name = next((token.value for token in held if token.means("name")), None)
            clause.holdings.append((number, name))
            _use(held)
            clause.held += held

    def _read(self, clause: _Clause) -> Iterator[tuple[int, Need]]:
        """What one clause needs, with its places."""
        kinds = self._kinds(clause)
        if clause.has("intro"):
            yield clause.place("intro"), Talk("intro")
        if clause.has("time"):
            places = [] if clause.has("weather") else clause.names["weather"]
            yield clause.place("time"), Clock("".join(places[:1]))
        change, said_so = self._changed(clause)
        needs = [
            (clause.place(kind), need)
            for kind in kinds
            if (need := self._lookup(clause, kind, change))
        ]
        need = None if kinds else self._conversion(clause) or self._change(change)
        if need:
            needs.append((clause.tokens[0].start, need))
        if not any(_changes(each) for _, each in needs):
            _use(said_so, False)
        yield from needs

    def _kinds(self, clause: _Clause) -> list[str]:
        """What the clause looks up: what it names, else what its words are about."""
        changed = _CHANGE.search(shape(clause.tokens))
        modified = clause.several or clause.unit() or changed
        kinds = [
            kind
            for kind in KINDS
            if clause.names[kind] and (clause.has(kind) or modified)
        ]
        if clause.holdings:
            return [*(k for k in kinds if k != "price"), "price"]
        if kinds:
            return kinds
        here = [kind for kind, names in self.here.items() if names]
        if clause.has("weather"):
            said = "weather" not in here and self._conversion(clause, use=False)
            return [] if said else ["weather"]
        if clause.has("price") and ("price" in here or clause.has("stock", "before")):
            return ["price"]
        recent = [*filter(None, [self.memory.kind]), *here][-1:]
        return recent if clause.several else []

    def _lookup(self, clause: _Clause, kind: str, change: str | None) -> Need | None:
        names, fresh = self._names(clause, kind)
        after = self.clauses[self.clauses.index(clause) + 1 :]
        later = [name for other in after for name in other.names[kind]]
        shares: list[str] = []
        if kind == "price" and clause.holdings:
            if not clause.names[kind]:
                names = self.here[kind][-1:] or later[:1] or names
            shares = self._shares(clause, names)
            _use(clause.held, bool(shares))
        elif kind == "price" and not (clause.names[kind] or change) and self.held:
            return None  # "How much are they worth?" after "100 Tencent shares."
        if not names:
            return None if later else Talk(f"which {kind}")
        operations = [o for o in ("difference", "average", "sum") if clause.has(o)]
        unit = clause.unit() if kind == "weather" else None
        if fahrenheit := unit is not None and unit.value == "fahrenheit":
            _use([unit])
        return Lookup(
            kind=kind,
            names=tuple(names),
            shares=tuple(shares),
            operation="".join(operations[: len(names) > 1 and not shares]),
            degree=clause.degree(kind) if len(names) > 1 else "",
            fahrenheit=fahrenheit,
            change=change,
            fresh=fresh,
        )

    def _shares(self, clause: _Clause, names: list[str]) -> list[str]:
        """How many of each: as said, or the one number for all of them; one of what is
        compared with a number of something else: dearer than three Apple shares."""
        holdings = clause.holdings
        said = {name: number for number, name in holdings}
        than = clause.has("compare") and not clause.has("which")
        if set(names) == said.keys() or (than and None not in said):
            return [said.get(name, "1") for name in names]
        return [holdings[0][0]] * len(names) if len(holdings) == 1 else []

    def _names(self, clause: _Clause, kind: str) -> tuple[list[str], bool]:
        """The names the clause is about, and whether this question names them."""
        own, here = list(dict.fromkeys(clause.names[kind])), self.here[kind]
        known = self.memory.names[kind]
        relates = len(own) == 1 and clause.has("compare", "difference")
        if clause.several and (not own or relates) and not clause.holdings:
            both = here if len(here) > 1 else [*known[-2 + len(here) :], *here]
            return list(dict.fromkeys(both)), bool(here)
        if own or here:
            return own or here, not clause.has("before")
        return known[-1:], False

    def _conversion(self, clause: _Clause, use: bool = True) -> Need | None:
        """The temperature of the cities of this question, or else the last value of
        that quantity that the conversation mentioned, in another unit."""
        unit = clause.unit()
        if unit is None:
            return None
        need: Need | None = None
        values = [m for text in self.said for m in VALUE.finditer(text)]
        for match in reversed(values):
            source = match.lastgroup or ""
            if source != unit.value and same_quantity(source, unit.value):
                value = match["sign"] + plain(match["value"])
                need = Conversion(value, source, unit.value)
        if unit.value == "fahrenheit" and self.here["weather"]:
            need = Lookup("weather", tuple(self.here["weather"]), fahrenheit=True)
        unit.used = unit.used or (use and need is not None)
        return need

    def _changed(self, clause: _Clause) -> tuple[str | None, list[Token]]:
        """What is done to a value, one thing after the other, "{0} * 2 / 3", and the
        tokens that say so."""
        change, said_so, end = None, [], 0
        letters = shape(clause.tokens)
        for match in _CHANGE.finditer(letters):
            start = match.start()
            if start and start != end and letters[start - 1] in "NP(":
                continue  # the + of (3 + 4) * …
            end = match.end()
            tokens = clause.tokens[start:end]
            number = next((t.value for t in tokens if t.means("number")), "")
            form, x = _CHANGES[match.lastgroup or ""][1], change or "{0}"
            product = " * " in form or " / " in form
            if product and tokens[0].text.isalpha() and re.search(r" [-+] [^)]*$", x):
                x = f"({x})"  # 加 3 再乘以 2
            change = form.replace("{n}", number).replace("{x}", x)
            said_so += tokens
        _use(said_so)
        return change, said_so

    def _change(self, change: str | None) -> Need | None:
        """Something done to the value before: of this question, else mentioned last."""
        last = self.found[-1][1] if self.found else None
        if change is None:
            return None
        if isinstance(last, Lookup | Conversion):
            return replace(last, change=change)
        if isinstance(last, Arithmetic):
            return Arithmetic(change.replace("{0}", f"({last.expression})"))
        number = None if last else _last_result(self.said)
        return number and Arithmetic(change.replace("{0}", number[0]), number[1])


def _changes(need: Need) -> bool:
    """Whether something is done to a value: then the plan has the words for it."""
    if isinstance(need, Conversion):
        return need.change is not None
    return not isinstance(need, Talk)


def _merged(needs: list[Need], degree: str) -> list[Need]:
    """Neighbouring shares of different companies are one need, compared by the word of
    any clause; repetitions go."""
    merged: list[Need] = []
    for need in needs:
        match merged[-1:], need:
            case [Lookup(shares=[_, *_]) as last], Lookup(shares=[_, *_]) if not (
                {*last.names} & {*need.names}
            ):
                names, shares = last.names + need.names, last.shares + need.shares
                need = replace(last, names=names, shares=shares)
                merged.pop()
        if isinstance(need, Lookup) and need.shares[1:]:
            need = replace(need, degree=degree)
        if need not in merged:
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


# ------------------------------------------------------------------ what is left out

MATTERS = (
    "number", "unit", "sign", "add", "subtract", "multiply", "divide", "square",
    "power", "fold", "double", "half", "rise", "fall", "difference", "average", "sum",
    "compare", "not-now", "no-tool", "money", "name", "topic", "time", "word",
    "elsewhere",
)  # fmt: skip


def _left_out(tokens: list[Token], needs: list[Need]) -> list[Token]:
    """The one check: each number, unit, operation, name and time word of the question
    is in the needs, or it is returned here."""
    numbers = {*re.findall(r"[\d.]+", repr(needs))}
    has: set[str] = set()
    names: set[str] = set()
    worked_out = False
    for need in needs:
        match need:
            case Clock():
                has |= {"time"}
            case Talk(about):
                has |= {about.removeprefix("which ")}
            case Conversion():
                has |= {"weather"}
            case Lookup():
                names |= {*need.names}
                has |= {need.kind, need.operation}
                has |= {"degree"} if need.kind == "weather" else {"rise", "fall"}
                has |= {"celsius"} if need.kind == "weather" else set()
                has |= {"compare"} if need.degree or need.operation else set()
                has |= {"sum", "+"} if need.shares else set()
                made = need.operation or need.degree or need.change
                worked_out = worked_out or bool(need.kind == "weather" and made)

    def used(token: Token) -> bool:
        if token.means("name"):
            return token.value in names
        if token.means("detail") and worked_out:
            return False  # the temperatures were compared
        if token.means("number") and token.value.rstrip("%") not in numbers:
            return False
        return token.used or any(mark in has for mark in token.marks)

    return [
        token
        for token in tokens
        if token.means(*MATTERS) and not used(token)
        if len(token.text) > 1 or not token.means("word")
    ]
