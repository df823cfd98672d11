"""First reading: what stands on its own is lifted out of the question.

That is the conversion of a stated value ("18 °C in Fahrenheit") and an arithmetic
expression ("17 * 23", "3 加 4", "the average of 3, 5 and 10").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import partial

from . import words
from .needs import Arithmetic, Conversion, Need
from .numbers import brief, plain

Found = list[tuple[int, Need]]  # needs with their places in the text

_FROM = words.one_of({**words.WRITTEN, "degree": r"degrees?|度"}, "from_")
_TO = rf"(?<![A-Za-z]){words.one_of(words.WRITTEN, 'to_')}"
STATED = (
    words.any_case(rf"{words.SIGNED}{_FROM}(?P<between>[^\d?;。\n]{{0,25}}?){_TO}"),
    words.any_case(
        rf"(?:how many|多少|几|in|to|成)\s?{_TO}"
        rf"[^\d?;。\n]{{0,20}}?{words.SIGNED}{_FROM}"
    ),
)
LINKED = words.any_case(r"(?:\b(?:in|into|to|as|is)\b|=|[多少几成为转到合])\s?$")

_AND = r"(?:\s?,\s?and |\s?,\s?|\s?和\s?|、| and )"
_LIST = rf"({words.NUMBER}(?:{_AND}{words.NUMBER})+)"
SUM = words.any_case(rf"\b(?:sum|total) of {_LIST}|{_LIST}\s?的(?:总?和|总数)")
AVERAGE = words.any_case(rf"\b(?:average|mean) (?:of )?{_LIST}|{_LIST}\s?的平均[值数]?")
REWRITES = {
    r"百分之\s?(\d+(?:\.\d+)?)": r"\1%",
    r"(\d)\s?(?:percent|per cent)\b": r"\1%",
    r"(\d%) of (?=[\d(])": r"\1 * ",
    r"(\d)\s?(?:的平方(?!根|[公米])|squared)": r"\1 ^ 2",
    r"(\d)\s?的\s?(\d+)\s?次方": r"\1 ^ \2",
    rf"\badd ({words.NUMBER}) (?:and|to) ({words.NUMBER})": r"\1 + \2",
    rf"\bsubtract ({words.NUMBER}) from ({words.NUMBER})": r"\2 - \1",
    rf"\bmultiply ({words.NUMBER}) (?:by|and|with) ({words.NUMBER})": r"\1 * \2",
    rf"\bdivide ({words.NUMBER}) by ({words.NUMBER})": r"\1 / \2",
}
SIGNS = {
    "+": r"加上?|plus",
    "-": r"减去?|minus|less",
    "*": r"乘以?|times|multiplied by|x|的(?=\d+%)",
    "/": r"除以|divided by|over",
    "^": r"to the power of",
}
for _sign, _form in SIGNS.items():
    REWRITES[rf"([\d)%])\s?(?:{_form})\s?(?=[-\d(])"] = rf"\1 {_sign} "
_OPERATOR = r"(?:\*\*|//|[-+*/^%])"
EXPRESSION = re.compile(
    rf"(?:[-(] ?)*(?<![\w.]){words.NUMBER} ?%?(?: ?\))*"
    rf"(?: ?{_OPERATOR} ?(?:[-(] ?)*{words.NUMBER} ?%?(?![\w.]\d)(?: ?\))*)+"
)
ASKED = words.any_case(
    r"comput|calculat|what|equal|=|evaluate|how much|算|等于|多少|几"
)


def tidy(question: str) -> str:
    """Full-width signs as ASCII, numbers in Chinese characters as digits."""
    text = question[:1000].translate({0xB2: "^2", 0xB3: "^3", 0xBA: "°"})
    text = unicodedata.normalize("NFKC", text)
    text = text.translate(str.maketrans("×÷−–’‘“”", "*/--''  "))
    text = re.sub(r"[^\S\n]+", " ", text).strip()
    number = r"[一二两三四五六七八九十][一二两三四五六七八九十百千]*"
    after = r"\s?(?:万?股|公里|千米|米|英里|英尺|公斤|千克|克|磅|摄氏|华氏|[加减乘除])"
    number = rf"(?!一\s?股){number}(?={after})|(?<=[加减乘以去])\s?{number}"
    text = re.sub(number, lambda match: str(_digits(match[0])), text)
    return re.sub(
        rf"({words.NUMBER})\s?万(?=股|港|美|人民|元)",
        lambda match: brief(float(plain(match[1])) * 10000),
        text,
    )


def _digits(number: str) -> int:
    total, digit = 0, 0
    for sign in number.strip():
        if sign in "十百千":
            total += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[sign]
            digit = 0
        else:
            digit = "零一二三四五六七八九".find(sign.replace("两", "二"))
    return total + digit


def lift(text: str) -> tuple[str, Found]:
    """Cut conversions and expressions out; return the rest and them with their places.
    Blanks of the same length stay behind, so that places in the text stay right."""
    found: Found = []

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
    cut(SUM, partial(_listed, form="{0}"))
    cut(AVERAGE, partial(_listed, form="({0}) / {1}"))
    for form, signs in REWRITES.items():
        text = re.sub(form, signs, text, flags=re.IGNORECASE)
    whole = text.rstrip("?=。. ").strip()
    cut(EXPRESSION, partial(_arithmetic, whole=whole))
    return text, found


def _conversion(match: re.Match[str]) -> Need | None:
    groups = {key: value for key, value in match.groupdict("").items() if value}
    source = next(key[5:] for key in groups if key.startswith("from_"))
    target = next(key[3:] for key in groups if key.startswith("to_"))
    if source == "degree":
        source = "celsius" if target == "fahrenheit" else "fahrenheit"
    linked = "between" not in match.groupdict() or LINKED.search(match["between"])
    if source == target or not (linked or words.same_quantity(source, target)):
        return None
    sign = "-" if "sign" in groups else ""
    return Conversion(sign + plain(groups["value"]), source, target)


def _listed(match: re.Match[str], form: str) -> Need:
    numbers = re.findall(words.NUMBER, match[1] or match[2])
    return Arithmetic(form.format(" + ".join(map(plain, numbers)), len(numbers)))


def _arithmetic(match: re.Match[str], whole: str) -> Need | None:
    """The expression in the spelling of `calculate`, or None for dates and ranges."""
    text = match[0].strip()
    while text.count("(") > text.count(")") and text.startswith("("):
        text = text[1:].strip()
    while text.count(")") > text.count("(") and text.endswith(")"):
        text = text[:-1].strip()
    asked = text == whole or ASKED.search(whole)
    doubtful = re.fullmatch(r"\d+(?:[-/]\d+)+", text) and not asked
    if doubtful or re.fullmatch(words.DATE, text) or text.count("(") != text.count(")"):
        return None
    two_sided = r"(?<=[\d)%])(\*\*|//|[-+*/^]|%(?=[\d(]))"
    spaced = re.sub(two_sided, r" \1 ", plain(text).replace(" ", ""))
    return Arithmetic(spaced.replace("**", "^"))
