"""Numbers: read from text, written for people, and worked out "in the head"."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

FIGURE = r"-?\d[\d,]*(?:\.\d+)?"


def last_number(text: str, before: str = "") -> float | None:
    """The last number of the text, or the last that stands before such a pattern."""
    found = re.findall(rf"({FIGURE}(?:[eE][+-]?\d+)?){before}", text)
    number = float(found[-1].replace(",", "")) if found else math.inf
    return number if math.isfinite(number) else None


def plain(number: str) -> str:
    """The number without thousands separators."""
    return number.replace(",", "")


def brief(number: float) -> str:
    """At most twelve digits and no ".0"."""
    return f"{number:.12g}"


def grouped(number: str) -> str:
    """With thousands separators: 38,560."""
    if not re.fullmatch(r"-?\d+(?:\.\d+)?", number):
        return number
    whole, _, fraction = number.partition(".")
    whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", whole)
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".")


def as_number(value: object) -> object:
    """A number without ".0", so that 18, 18.0 and "18" are one; else the value."""
    if not isinstance(value, str | float):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else number


_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def value_of(expression: str) -> float | None:
    """The value of an arithmetic expression; None when there is none."""
    python = re.sub(r"%(?= [-+*/^]|\)|$)", "/100", expression).replace("^", "**")
    try:
        return _value(ast.parse(python, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError("not arithmetic")
