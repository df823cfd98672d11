"""Arithmetic for a language model: one expression in, one number as text out.

The expression is untrusted. Three whitelists make it harmless: its text may spell only
numbers, operators and brackets; its syntax tree may hold only those; and no number on
the way may leave the range of a float, so neither time nor memory can grow.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

from simpleeval import InvalidExpression, SimpleEval

MAX_LENGTH = 500  # characters, which bounds the depth of the syntax tree as well


class CannotEvaluate(ValueError):
    """Why there is no result: one short sentence for the model to read."""


def evaluate(expression: str) -> str:
    """Return the value of `expression` as text; CannotEvaluate says why there is none.

    Whole numbers come out exact ("391"). Whatever a decimal, a division by / or a per
    cent took part in comes out with up to 15 significant digits ("0.3", "3.0").
    """
    try:
        value = _EVALUATOR.eval(_to_python(expression))
    except ZeroDivisionError:
        raise CannotEvaluate("The expression has a division by zero.") from None
    except OverflowError:
        raise CannotEvaluate("A number on the way is beyond 1.7e308.") from None
    except (SyntaxError, InvalidExpression, RecursionError, MemoryError):
        raise CannotEvaluate(
            "The expression is incomplete or malformed, check operators and brackets."
        ) from None
    if isinstance(value, int):
        return str(value)
    rounded = float(f"{value:.15g}") + 0.0  # adding 0.0 turns -0.0 into 0.0
    return repr(value if math.isinf(rounded) else rounded)


# ---------------------------------------------------------------- from text to Python

_NUMBER = r"(?:(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_ARITHMETIC = re.compile(rf"(?:{_NUMBER}(?![\w.,])|[-+*/%^() ])+", re.ASCII)
_PER_CENT = re.compile(r"% *(?=[-+*/^)]|$)")
_TIMES = re.compile(r"(?<=[\d.)%]) *[xX] *(?=[\d.(+-])")  # 12 x 4.5
_HEXADECIMAL = re.compile(r"(?<![\d.,])0[xX][0-9a-fA-F]")
_SYNONYMS = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),  # dashes, minus
    **dict.fromkeys("×·∙⋅", " * "),  # the blanks keep ×× from becoming a power
    "÷": " / ",
    "\t": " ",
}


def _to_python(expression: str) -> str:
    """Return `expression` in Python's spelling, with [100] as the sign for per cent: a
    subscript binds like a postfix operator, and no other can get in."""
    if len(expression) > MAX_LENGTH:
        raise CannotEvaluate(f"The expression is longer than {MAX_LENGTH} characters.")
    text = "".join(map(_plain, expression)).strip(" ").removesuffix("=").strip(" ")
    if not text:
        raise CannotEvaluate("The expression is empty.")
    if not _HEXADECIMAL.search(text):
        text = _TIMES.sub(" * ", text)
    if not _ARITHMETIC.fullmatch(text):
        raise CannotEvaluate(
            "Only numbers such as 1,234.5 or 1e6, brackets and + - * / // % ^ are"
            " allowed."
        )
    return _PER_CENT.sub("[100]", text.replace(",", "")).replace("^", "**")


def _plain(character: str) -> str:
    """NFKC for full-width forms only, as it would turn 5² into 52 and 1½ into 11/2."""
    if unicodedata.category(character) == "Zs":
        return " "
    if unicodedata.decomposition(character).startswith(("<wide>", "<small>")):
        return unicodedata.normalize("NFKC", character)
    return _SYNONYMS.get(character, character)


# ---------------------------------------------------------------- the evaluator


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let only real numbers within the range of a float come out of `function`."""

    def checked(*operands: Any) -> Any:
        value = function(*operands)
        if type(value) not in (int, float):  # a root of -1 is complex, True is an int
            raise CannotEvaluate("The result or a part of it is not a real number.")
        if not abs(value) <= sys.float_info.max:  # written so that nan fails too
            raise OverflowError
        return value

    return checked


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        least_bits = max(base.bit_length() - 1, 0) * exponent
        if least_bits > sys.float_info.max_exp:
            raise OverflowError  # before the work, which for 9**9**9 has no end
    return base**exponent


def _per_cent(node: ast.Subscript) -> Any:
    return _EVALUATOR.eval("", node.value) / 100


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
# One for all threads: it keeps nothing between calls but a text for its own messages.
_EVALUATOR = SimpleEval(
    operators={sign: _bounded(function) for sign, function in _OPERATORS.items()},
    functions={},
    names={},
)
_EVALUATOR.nodes = {
    **{kind: _EVALUATOR.nodes[kind] for kind in (ast.Expr, ast.UnaryOp, ast.BinOp)},
    ast.Constant: _bounded(operator.attrgetter("value")),
    ast.Subscript: _bounded(_per_cent),
}
