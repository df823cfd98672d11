"""Ungrounded arguments: numbers in a call that nobody had said when it was made.

A number is grounded when it stands, whatever its format, in the question, in what was
said before it, or in a result of an earlier turn. Only that counts: 38560 is not
grounded by 385.6 and 100, because a model that multiplies in its head instead of
calling a tool is worth pointing out too. Not pointed out are 0, 1 and 2, the number of
results so far (for averages), 100 beside a per cent, and the digits of a code such as
0700.HK.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from equivalence.runs.record import Run, Step
from equivalence.runs.steps import text_of
from toolkit.policy import ToolError
from tools import calculate, unit_convert

PURE = {tool.__name__: tool for tool in (calculate, unit_convert)}
"""Tools that can be called again, to see what the right number would have given."""

_NUMBER = re.compile(
    r"(?<![\d.])(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
)
_PER_CENT = re.compile(r"\s?(?:%|per ?cent\b)", re.IGNORECASE)
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?|UTC[+-]\d+")
_SCALE = re.compile(r"\s?([百千万亿]|(?:k|hundred|thousand|million|billion)\b)", re.I)
_SCALES = {"百": 10**2, "千": 10**3, "万": 10**4, "亿": 10**8, "k": 10**3}
_SCALES |= {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9}

_HAN_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")}
_HAN_DIGITS |= {"〇": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 10**2, "千": 10**3}
_HAN = re.compile("[零〇一二两三四五六七八九十百千万亿]+")

_TEENS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen"
    " fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ENGLISH = {word: value for value, word in enumerate(_TEENS.split())}
_ENGLISH |= {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
_ENGLISH |= {"a": 1, "dozen": 12}


@dataclass(frozen=True)
class Number:
    """A number in the arguments of a call."""

    argument: str
    """Name of the argument; of the outermost where it stands deeper."""
    text: str
    """As the model wrote it."""
    values: frozenset[Decimal]
    """What it can mean: 15% is 15 and 0.15."""


class Said:
    """The numbers that have been said so far."""

    def __init__(self, *texts: str) -> None:
        self.values = {Decimal(0), Decimal(1), Decimal(2)}
        self.results = 0
        for text in texts:
            self.hear(text)

    def hear(self, text: str) -> None:
        """Add the numbers of something said."""
        self.values |= set(_said(text))

    def learn(self, result: str) -> None:
        """Add the numbers of a tool's result."""
        self.hear(result)
        self.results += 1

    def missing(self, arguments: Any) -> list[Number]:
        """Return the numbers of the arguments that nobody has said, in order."""
        known = self.values | {Decimal(self.results)}
        return [n for n in _numbers(arguments) if not n.values & known]


def said_before(request: Mapping[str, Any]) -> Said:
    """Return what a run begins with: the conversation of its first request, less the
    system message."""
    return Said(
        *(
            text_of(message.get("content"))
            for message in request.get("messages") or ()
            if isinstance(message, dict) and message.get("role") != "system"
        )
    )


def mark(run: Run) -> None:
    """Enter the ungrounded numbers in the record: in each step, and as warnings."""
    first = run.exchanges[0].request if run.exchanges else {}
    said = said_before(first)
    for text in (*run.history, run.question):
        said.hear(text)
    turn = 0
    waiting: list[Step] = []
    for step in run.steps:
        if step.turn != turn:
            for earlier in waiting:
                said.learn(earlier.result or "")
            turn, waiting = step.turn, []
        waiting.append(step)
        step.ungrounded = [
            {"number": number.text, "argument": number.argument}
            for number in said.missing(step.arguments)
        ]
    for step in run.steps:
        alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for found in step.ungrounded:
            outcome = _outcome(run, step, found)
            found |= outcome
            alike.setdefault(tuple(outcome.values()), []).append(found)
        for together in alike.values():
            run.warnings.append(f"turn {step.turn}, {step.tool}: {note(*together)}")


def mentions(text: str, number: Decimal) -> bool:
    """Return whether the text holds the number, which has no sign: as it is, rounded by
    at most 1 % to the places it is written with, scaled (3.856万) or in words."""
    return number in set(_said(text)) or _mentions(text, number)


def note(found: Mapping[str, Any], *others: Mapping[str, Any]) -> str:
    """Return in one line what is known of an ungrounded number, and of others of the
    same call of which the same is known."""
    numbers = dict.fromkeys(each["number"] for each in (found, *others))
    line = f"{', '.join(numbers)} {'is' if len(numbers) == 1 else 'are'}"
    line += " in neither the question nor an earlier result"
    if found["real"]:
        line += f"; the real value, {found['real']}, came in turn {found['arrived']}"
    elif found["arrived"]:
        line += f"; results to take it from came in turn {found['arrived']}"
    return f"{line}; {_ANSWERS[found['answer']]}"


_ANSWERS = {
    "corrected": "the answer corrected it",
    "used": "the answer uses what came of it",
    "unused": "the answer does not use what came of it",
    "none": "no answer came",
}


def _outcome(run: Run, step: Step, found: Mapping[str, Any]) -> dict[str, Any]:
    """The real value where a result of the same turn or a later one holds it, its turn,
    and what the answer made of it. It is the real value when, in place of the invented
    one, it leads to a number of the answer or of a later result of the same tool."""
    arrived = None
    own = _last(step.result) if step.ok else None
    later = [s for s in run.steps if s.tool == step.tool and s.turn > step.turn]
    for other in run.steps:
        if other.turn < step.turn or other is step or other.ungrounded:
            continue
        for text in _tokens(_CLOCK.sub(" ", other.result or "")):
            arrived = arrived or other.turn
            right = _last(_again(step, found, text))
            if right is None or right == own:  # it would have changed nothing
                continue
            corrected = _mentions(run.answer, right)
            if corrected or any(_mentions(s.result or "", right) for s in later):
                answer = "corrected" if corrected else _use(run.answer, own)
                return {"real": text, "arrived": other.turn, "answer": answer}
    return {"real": None, "arrived": arrived, "answer": _use(run.answer, own)}


def _use(answer: str, own: Decimal | None) -> str:
    if not answer.strip():
        return "none"
    return "used" if own is not None and _mentions(answer, own) else "unused"


def _again(step: Step, found: Mapping[str, Any], real: str) -> str | None:
    """What the tool gives back with the real value in place of the invented one."""
    tool = PURE.get(step.tool)
    if tool is None or not isinstance(step.arguments, dict):
        return None
    arguments = dict(step.arguments)
    old = arguments.get(found["argument"])
    if isinstance(old, str):
        arguments[found["argument"]] = old.replace(found["number"], real, 1)
    else:
        arguments[found["argument"]] = float(real.replace(",", ""))
    try:
        result = tool(**arguments)
    except (TypeError, ValueError, KeyError):
        return None
    return None if isinstance(result, ToolError) else result


def _last(result: str | None) -> Decimal | None:
    tokens = _tokens(result or "")
    return abs(_decimal(tokens[-1])) if tokens else None


def _mentions(text: str, number: Decimal) -> bool:
    """Whether the text holds the number, as it is or rounded."""
    for token in _tokens(text):
        value = _decimal(token)
        exponent = value.as_tuple().exponent
        places = -exponent if isinstance(exponent, int) and exponent < 0 else 0
        apart = abs(value - number)
        if apart <= number / 100 and apart <= Decimal(5).scaleb(-places - 1):
            return True
    return False


# -------------------------------------------------------------------------- numbers


def _numbers(arguments: Any) -> Iterator[Number]:
    """The numbers in the arguments of a call."""
    named = arguments if isinstance(arguments, dict) else {"": arguments}
    for name, value in named.items():
        for leaf in _leaves(value):
            if isinstance(leaf, str):
                yield from _in_text(str(name), leaf)
            else:
                number = abs(Decimal(repr(leaf)))
                yield Number(str(name), f"{leaf}", frozenset({number}))


def _leaves(value: Any) -> Iterator[str | int | float]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def _in_text(name: str, text: str) -> Iterator[Number]:
    """The numbers of a text argument, less digits that are part of a code."""
    plain = _plain(text)
    for match in _NUMBER.finditer(plain):
        token, before = match[0], plain[: match.start()][-1:]
        after = plain[match.end() : match.end() + 2]
        part_of_code = before.isascii() and (before.isalpha() or before == "_")
        if part_of_code or re.match(r"\.[A-Za-z]|_", after):
            continue
        if re.match(r"0\d", token):
            continue
        values = {_decimal(token)}
        if _PER_CENT.match(plain, match.end()):
            values.add(_decimal(token) / 100)
        yield Number(name, token, frozenset(values))


def _said(text: str) -> Iterator[Decimal]:
    """All that the numbers of a text can mean, written in digits or in words."""
    plain = _plain(text)
    plain = re.sub(r"百分之\s?(\d+(?:\.\d+)?)", r"\1%", plain)
    for match in _NUMBER.finditer(plain):
        value = _decimal(match[0])
        yield value
        yield from map(_decimal, match[0].split(",") if "," in match[0] else ())
        if _PER_CENT.match(plain, match.end()):
            yield value / 100
            yield Decimal(100)
        if scale := _SCALE.match(plain, match.end()):
            yield value * _SCALES[scale[1].lower()]
    for match in _HAN.finditer(plain):
        yield Decimal(_han(match[0]))
    yield from map(Decimal, _english(plain.lower()))


def _tokens(text: str) -> list[str]:
    return _NUMBER.findall(_plain(text))


def _plain(text: str) -> str:
    """The text in plain digits and signs. A comma of Chinese prose stays apart from the
    digits beside it: 28，154 are two numbers."""
    return unicodedata.normalize("NFKC", re.sub("，(?![０-９])", ", ", text))


def _decimal(token: str) -> Decimal:
    return Decimal(token.replace(",", ""))


def _han(signs: str) -> int:
    """一百二十 is 120, 三万五千 35000, 二五 25."""
    if not set(signs) - set(_HAN_DIGITS):
        return int("".join(str(_HAN_DIGITS[sign]) for sign in signs))
    total = section = digit = 0
    for sign in signs:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        elif sign in _HAN_UNITS:
            section += (digit or 1) * _HAN_UNITS[sign]
            digit = 0
        else:
            total = (total + (section + digit or 1)) * _SCALES[sign]
            section = digit = 0
    return total + section + digit


def _english(text: str) -> Iterator[int]:
    """The numbers written in words, whole and in parts: one hundred and twenty."""
    total: int | None = None
    for word in [*re.findall(r"[a-z]+", text), ""]:
        if word in _ENGLISH:
            total = (total or 0) + _ENGLISH[word]
        elif word in _SCALES and total is not None:
            total *= _SCALES[word]
        elif total is not None and not (word == "and" and total >= 100):
            yield total
            total = None
        if word in _ENGLISH:
            yield _ENGLISH[word]
