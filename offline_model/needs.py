"""What a question may need, and what is remembered from one question to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from .words import KINDS


@dataclass(frozen=True)
class Clock:
    """The time or the date is asked for."""


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
