"""Ungrounded arguments: numbers in a call that nobody had said when it was made.

A number is grounded when it stands in the question, in what was said before it, or in
anything that the model had read before it made the call: results, also those that came
in a user message, and its instructions. Only that counts: 38560 is not grounded by
385.6 and 100, because a model that multiplies in its head instead of calling a tool is
worth pointing out too.

Digits are read in any common format. Words are not: where somebody wrote a number as
一百二十 or fifty, nothing is marked from then on, because it may be that number. Never
marked are 0, 1 and 2, the number of results so far (for averages), 100 beside a per
cent, and the digits of a code such as 0700.HK.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from equivalence.runs.record import Run, Step
from equivalence.runs.steps import text_of
from equivalence.runs.words import MADE_UP

MOST = 20
"""So many numbers of one call are marked at most."""

_NUMBER = re.compile(
    r"(?<![\d.])(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
)
_PER_CENT = re.compile(r"\s?(?:%|per ?cent\b)", re.IGNORECASE)
_SCALE = re.compile(
    r"\s?([百千万亿]|(?:k|hundred|thousand|million|billion)\b)", re.IGNORECASE
)
_SCALES = {"百": 1e2, "千": 1e3, "万": 1e4, "亿": 1e8, "k": 1e3}
_SCALES |= {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}

# Beyond 一, 二, 两, one and two, which are never marked. 星期三 is a day, 十分 "very".
_IN_WORDS = re.compile(
    r"(?<![期周拜])[三四五六七八九半]|十(?!分)|[一二两][百千万亿]|[零〇一二两]{2}"
    r"|(?<!\d)(?<!\d )\b(?:hundred|thousand|million|billion)\b"
    r"|\b(?:three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|half|quarter)\b"
    r"|\b(?:thir|four|fif|six|seven|eigh|nine)teen\b"
    r"|\b(?:twen|thir|for|fif|six|seven|eigh|nine)ty\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Number:
    """A number in the arguments of a call."""

    argument: str
    """Name of the argument; of the outermost where it stands deeper."""
    text: str
    """As the model wrote it."""
    values: frozenset[float]
    """What it can mean: 15% is 15 and 0.15."""


class Said:
    """The numbers that have been said so far."""

    def __init__(self, *texts: str) -> None:
        self.values = {0.0, 1.0, 2.0}
        self.results = 0
        self.in_words = False
        """Whether somebody wrote a number in words, which are not read."""
        self._heard: set[str] = set()
        for text in texts:
            self.hear(text)

    def hear(self, text: str) -> None:
        """Add the numbers of something said."""
        if text not in self._heard:
            self._heard.add(text)
            plain = _plain(text)
            self.values.update(_said(plain))
            self.in_words = self.in_words or bool(_IN_WORDS.search(plain))

    def learn(self, result: str) -> None:
        """Add the numbers of a tool's result."""
        self.hear(result)
        self.results += 1

    def read(self, request: Mapping[str, Any], *, own: bool = False) -> None:
        """Add what stands in a request. What the model itself has said counts only
        with `own`: in the answers to earlier questions."""
        for message in request.get("messages") or ():
            if isinstance(message, dict) and (own or message.get("role") in _NOT_OWN):
                self.hear(text_of(message.get("content")))

    def missing(self, arguments: Any) -> list[Number]:
        """Return the numbers of the arguments that nobody has said, in order, at most
        MOST; none where a number was said in words."""
        if self.in_words:
            return []
        known = self.values | {float(self.results)}
        found: dict[Number, None] = {}
        for number in _numbers(arguments):
            if not number.values & known:
                found.setdefault(number)
                if len(found) == MOST:
                    break
        return list(found)


_NOT_OWN = ("system", "developer", "user", "tool", "function")


def said_before(request: Mapping[str, Any]) -> Said:
    """Return what a run begins with: the conversation of its first request."""
    said = Said()
    said.read(request, own=True)
    return said


def mark(run: Run) -> None:
    """Enter the ungrounded numbers in the record: in each step, and as warnings."""
    if not any(any(_numbers(step.arguments)) for step in run.steps):
        for step in run.steps:
            step.ungrounded = []
        return
    requests = [exchange.request for exchange in run.model_calls]
    said = said_before(requests[0] if requests else {})
    for text in (*run.history, run.question):
        said.hear(text)
    turn = 0
    waiting: list[Step] = []
    for step in run.steps:
        if step.turn != turn:
            for earlier in waiting:
                said.learn(earlier.result or "")
            for request in requests[turn : step.turn]:
                said.read(request)
            turn, waiting = step.turn, []
        waiting.append(step)
        step.ungrounded = [
            {"number": number.text, "argument": number.argument}
            for number in said.missing(step.arguments)
        ]
    for step in run.steps:
        if step.ungrounded:
            outcome = _outcome(run, step)
            for found in step.ungrounded:
                found |= outcome
            words = note(*step.ungrounded)
            run.warnings.append(f"turn {step.turn}, {step.tool}: {words}")


def _outcome(run: Run, step: Step) -> dict[str, Any]:
    """What is known of a call with an ungrounded number, see Step.ungrounded."""
    later = [other for other in run.steps if other.turn > step.turn]
    arrived = (
        other.turn
        for other in run.steps
        if other.turn >= step.turn and other is not step and not other.ungrounded
        if other.ok is not False and _NUMBER.search(other.result or "")
    )
    again = (o.turn for o in later if o.tool == step.tool and not o.ungrounded)
    own = None if step.ok is False else _last(step.result or "")
    return {
        "arrived": next(arrived, None),
        "again": next(again, None),
        "result": own,
        "in_answer": own is not None and mentions(run.answer, _value(own)),
    }


def note(found: Mapping[str, Any], *others: Mapping[str, Any]) -> str:
    """Return in one line what is known of an ungrounded number, and of others of the
    same call."""
    numbers = dict.fromkeys(each["number"] for each in (found, *others))
    line = f"{', '.join(numbers)} {'was' if len(numbers) == 1 else 'were'} {MADE_UP}"
    if found.get("arrived"):
        line += f"; other results came in turn {found['arrived']}"
    if found.get("again"):
        turn = found["again"]
        line += f"; in turn {turn} the tool was called again with nothing made up"
    if found.get("result") is not None:
        where = "is" if found.get("in_answer") else "is not"
        line += f"; what came of it, {found['result']}, {where} in the answer"
    return line


def mentions(text: str, number: float) -> bool:
    """Return whether the text holds the number, which has no sign: as it is, rounded by
    at most 1 % to the places it is written with, or scaled (3.856万)."""
    plain = _plain(text)
    if _rounded(number) in set(_said(plain)):
        return True
    for match in _NUMBER.finditer(plain):
        apart = abs(_value(match[0]) - number)
        places = len(match[0].partition(".")[2])
        half = 0.5 * 10.0**-places
        if apart <= number / 100 and apart <= half * (1 + 1e-9) + number * 1e-12:
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
                text = str(leaf)
                value = abs(_value(text))
                yield Number(str(name), text, frozenset({value}))


def _leaves(value: Any) -> Iterator[str | int | float]:
    """The texts and numbers in a JSON value, in order, however deep it is."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            inner = value.values() if isinstance(value, dict) else value
            waiting.extend(reversed(list(inner)))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield value


def _in_text(name: str, text: str) -> Iterator[Number]:
    """The numbers of a text argument, less digits that are part of a code."""
    plain = _plain(text)
    for match in _NUMBER.finditer(plain):
        token, before = match[0], plain[match.start() - 1 : match.start()]
        after = plain[match.end() : match.end() + 2]
        part_of_code = before.isascii() and (before.isalpha() or before == "_")
        if part_of_code or re.match(r"\.[A-Za-z]|_", after):
            continue
        if re.match(r"0\d", token):
            continue
        values = {_value(token)}
        if _PER_CENT.match(plain, match.end()):
            values.add(_rounded(_value(token) / 100))
        yield Number(name, token, frozenset(values))


def _said(plain: str) -> Iterator[float]:
    """All that the numbers of a text can mean."""
    plain = re.sub(r"百分之\s?(\d+(?:\.\d+)?)", r"\1%", plain)
    for match in _NUMBER.finditer(plain):
        value = _value(match[0])
        yield value
        if "," in match[0]:  # 28,154 may be two numbers
            yield from map(_value, match[0].split(","))
        if _PER_CENT.match(plain, match.end()):
            yield _rounded(value / 100)
            yield 100.0
        if scale := _SCALE.match(plain, match.end()):
            yield _rounded(value * _SCALES[scale[1].lower()])


def _last(text: str) -> str | None:
    """The last number of a text, as it is written."""
    return next(reversed(_NUMBER.findall(_plain(text))), None)


def _plain(text: str) -> str:
    """The text in plain digits and signs. A comma of Chinese prose stays apart from the
    digits beside it: 28，154 are two numbers."""
    return unicodedata.normalize("NFKC", re.sub("，(?![０-９])", ", ", text))


def _value(token: str) -> float:
    """The number, infinite where it is beyond all that a double holds: floats, and not
    Decimal or int, because no digits that a model writes make them slow or raise."""
    return _rounded(float(token.replace(",", "")))


def _rounded(number: float) -> float:
    """The number to 12 digits, so that 8.1 / 100 is 0.081."""
    return float(f"{number:.12g}")
