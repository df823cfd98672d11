"""What `evaluate` computes, what it refuses, and that no text gets anything else."""

from __future__ import annotations

import operator
import re
import sys
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.arithmetic import MAX_LENGTH, CannotEvaluate, evaluate


def refusal(expression: str) -> str:
    with pytest.raises(CannotEvaluate) as caught:
        evaluate(expression)
    return str(caught.value)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        # operators, precedence, signs, brackets
        ("17 * 23", "391"),
        ("128*6", "768"),
        ("(25 + 15) * 8 / 4", "80.0"),
        ("1+2*3", "7"),
        ("(1+2)*3", "9"),
        ("((((7))))", "7"),
        ("7-2-1", "4"),
        ("7//2", "3"),
        ("-7//2", "-4"),
        ("7/2", "3.5"),
        ("2**10", "1024"),
        ("2^10", "1024"),
        ("2^3^2", "512"),
        ("-2^2", "-4"),
        ("2^-1", "0.5"),
        ("2**0.5", "1.4142135623731"),
        ("(-8)**3", "-512"),
        ("-5", "-5"),
        ("+5", "5"),
        ("3--2", "5"),
        ("2*-3", "-6"),
        # numbers
        ("42", "42"),
        ("0", "0"),
        ("3.50", "3.5"),
        (".5+.5", "1.0"),
        ("1e3", "1000.0"),
        ("1.5E-3", "0.0015"),
        ("2e+2", "200.0"),
        # the form of the result
        ("100 * 385.6", "38560.0"),
        ("0.1+0.2", "0.3"),
        ("1/3", "0.333333333333333"),
        ("6/2", "3.0"),
        ("1e22*1", "1e+22"),
        ("-0.0", "0.0"),
        ("0*-1.5", "0.0"),
        ("123456789012 * 987654321098", "121932631136585886175176"),
        # a trailing equals sign
        ("1+1=", "2"),
        ("1+1 = ", "2"),
        ("１＋１＝", "2"),
    ],
)
def test_value(expression: str, result: str) -> None:
    assert evaluate(expression) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("１２＋３", "15"),
        ("（１＋２）＊３", "9"),
        ("６／２", "3.0"),
        ("２＾３", "8"),
        ("２＊＊３", "8"),
        ("１．５－１", "0.5"),
        ("２００＊１５％", "30.0"),
        ("１０％３", "1"),
        ("﹙1﹢2﹚", "3"),  # small forms
        ("6×7", "42"),
        ("12 x 4.5", "54.0"),  # B18
        ("12X4", "48"),
        ("2 x 3 x 4", "24"),
        ("10x10", "100"),
        ("(1 + 2)x(3)", "9"),
        ("15% x 200", "30.0"),
        ("2 x -3", "-6"),
        ("２ｘ３", "6"),
        ("6 × 7", "42"),
        ("6÷2", "3.0"),
        ("6·7", "42"),
        ("6∙7", "42"),
        ("6⋅7", "42"),
        *((f"5{dash}3", "2") for dash in "-\u2010\u2011\u2012\u2013\u2014\u2212\ufe63"),
        ("\u22125", "-5"),
        *((f"1{blank}+{blank}1", "2") for blank in " \t\u00a0\u2009\u202f\u3000"),
        ("\u3000 1+1 \u00a0", "2"),
    ],
)
def test_typography(expression: str, result: str) -> None:
    assert evaluate(expression) == result


@pytest.mark.parametrize(
    "expression",
    ["0x10", "2 x 0xff", "x 3", "3 x", "2 xx 3", "3 × x 4", "x", "2x", "x(3)", "2 x y"],
)
def test_an_x_that_stands_between_no_numbers_is_refused(expression: str) -> None:
    with pytest.raises(CannotEvaluate):
        evaluate(expression)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("change", ["", " * 1", " + 0", " / 1"])
def test_the_largest_number_does_not_become_infinite(sign: str, change: str) -> None:
    """E15: rounding to 15 digits would go beyond it."""
    largest = f"{sign}1.7976931348623157e308"
    assert evaluate(largest + change) == repr(float(largest))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("200*15%", "30.0"),
        ("10%", "0.1"),
        ("100+10%", "100.1"),
        ("100 + 10 %", "100.1"),
        ("10% + 1", "1.1"),
        ("10%*3", "0.3"),
        ("(10%)", "0.1"),
        ("(5+5)%", "0.1"),
        ("-10%", "-0.1"),
        ("4^50%", "2.0"),  # binds tighter than the power
        ("100/50%", "200.0"),
        ("50%^2", "0.25"),
        ("1,000%", "10.0"),
        ("12.5%", "0.125"),
        ("10% - 3", "-2.9"),
        ("10%=", "0.1"),
        ("10%3", "1"),
        ("10 % 3", "1"),
        ("10%(1+2)", "1"),
        ("(10)%(3)", "1"),
        ("-7%3", "2"),
        ("7.5%2", "1.5"),
        ("10%.3*0", "0.0"),
    ],
)
def test_per_cent_and_remainder(expression: str, result: str) -> None:
    assert evaluate(expression) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1,000 + 2,000", "3000"),
        ("1,000*2", "2000"),
        ("1，000*2", "2000"),
        ("1,234,567.5", "1234567.5"),
        ("12,345", "12345"),
        ("123,456", "123456"),
        ("(1,000)", "1000"),
        ("-1,000", "-1000"),
        ("1,000e3", "1000000.0"),
    ],
)
def test_thousands(expression: str, result: str) -> None:
    assert evaluate(expression) == result


@pytest.mark.parametrize(
    "expression",
    [
        "1,2",
        "1,00*2",
        "1,0000",
        "1234,567",
        "1,000,00",
        "1,,000",
        ",000",
        "1,",
        "1, 000",
    ]
    + ["1,000,", "0,001", "0,5", "1.000,5", "1.5,000", "1e1,000", "1e-1,000", "(1,2)"]
    + ["1，2", "1、000", "1 000", "1\u00a0000", "1'000"],
)
def test_other_separators_are_refused(expression: str) -> None:
    refusal(expression)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "expression",
    ["1/0", "5//0", "5%0", "5.0/0", "5.5//0", "5.5%0", "0**-1", "0^-5000", "0.0**-1"]
    + ["1/(2-2)", "1/0%", "6÷0"],
)
def test_division_by_zero(expression: str) -> None:
    assert "division by zero" in refusal(expression)


@pytest.mark.parametrize(
    "expression",
    ["9**9**9", "9**9**9**9", "10**10**10", "10^10^10", "2**100000", "(-2)**100001"]
    + ["2**1024", "-(2**1024)", "2**1023*2", "2.0**5000", "1e308*10", "1e308+1e308"]
    + ["1e999", "-1e999", "1/1e999", "1e999-1e999", "1e308//1e-308", "1e308/10%"]
    + ["9" * 310, "1/" + "9" * 310, "*".join(["9" * 100] * 4)],
)
def test_too_large(expression: str) -> None:
    assert "beyond" in refusal(expression)


def test_the_largest_numbers_still_come_out() -> None:
    assert evaluate("2**1023") == str(2**1023)
    assert evaluate("9" * 308) == "9" * 308
    assert evaluate("1.7e308") == "1.7e+308"
    assert evaluate("1**99999999") == "1"
    assert evaluate("(-1)^99999999") == "-1"
    assert evaluate("0^99999999") == "0"
    assert evaluate("2**-99999999") == "0.0"


def test_length() -> None:
    longest = "1" + "+1" * ((MAX_LENGTH - 1) // 2)
    assert evaluate(longest) == str(len(longest) // 2 + 1)
    assert "longer" in refusal("1" * (MAX_LENGTH + 1))
    assert "longer" in refusal("1+" * 50_000 + "1")
    assert "longer" in refusal("1" * 5000)
    assert "longer" in refusal(" " * 100_000)


def outcome(expression: str) -> str:
    """The value, or "refused: " and why."""
    try:
        return evaluate(expression)
    except CannotEvaluate as error:
        return f"refused: {error}"


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "(" * 249 + "1" + ")" * 249,
        "(" * 499,
        "-" * 499 + "1",
        "(-" * 160 + "1" + ")" * 160,
        "2^" * 249 + "2",
        "(" * 120 + "1" + ")%" * 120,
        "1(" * 160 + "1" + ")" * 160,
    ],
)
def test_depth(expression: str) -> None:
    """Whether so deep a tree is evaluated depends on Python: it must only not crash."""
    assert re.fullmatch(r"-?\d+(\.\d+)?(e-\d+)?|refused: .+", outcome(expression))


def test_a_caller_that_is_deep_already() -> None:
    def deep(levels: int) -> str:
        return deep(levels - 1) if levels else refusal("1" + "+1" * 240)

    used = 0
    frame = sys._getframe()
    while frame.f_back:
        used, frame = used + 1, frame.f_back
    assert "malformed" in deep(sys.getrecursionlimit() - used - 200)


def test_a_low_limit_on_digits_is_no_other_error() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert evaluate("10**307") == "1" + "0" * 307
        refusal("1" * MAX_LENGTH)
    finally:
        sys.set_int_max_str_digits(before)


def test_refusing_takes_no_time() -> None:
    began = time.perf_counter()
    for expression in ("9**9**9**9", "(" * 10_000, "1" * 100_000, "1+" * 249 + "("):
        refusal(expression)
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    "expression",
    ["__import__('os').system('id')", "().__class__.__mro__", "open('x').read()"]
    + ["[1]*9", "'a'*9", "b'a'*9", "lambda: 1", "(x:=1)", "x", "1 if 1 else 2", "True"]
    + ["None", "...", "1 < 2", "1 and 2", "not 1", "~1", "1 | 2", "1 << 99", "1 @ 2"]
    + [
        "f'{1}'",
        "{1}",
        "(1, 2)",
        "x = 1",
        "import os",
        "del x",
        "pass",
        "1j",
        "rand()",
    ],
)
def test_the_tree_is_refused_without_help_from_the_text(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.arithmetic._ARITHMETIC", re.compile(".*"))
    refusal(expression)


@pytest.mark.parametrize("expression", ["(-8)**0.5", "(-8)^(1/3)", "((-1)**0.5)**2"])
def test_complex(expression: str) -> None:
    assert "not a real number" in refusal(expression)


@pytest.mark.parametrize(
    "expression",
    ["__import__('os').system('id')", "().__class__.__mro__", "open('x').read()"]
    + ["[1]*9", "'a'*9", '"a"*9', "b'a'*9", "lambda: 1", "(x:=1)", "x=1", "x", "e", "E"]
    + [
        "1 if 1 else 2",
        "True",
        "None",
        "nan",
        "inf",
        "...",
        "1 < 2",
        "1 == 1",
        "1 != 2",
    ]
    + [
        "1 and 2",
        "not 1",
        "~1",
        "1 | 2",
        "1 & 2",
        "1 << 99",
        "1 >> 1",
        "1 @ 2",
        "1 in 2",
    ]
    + ["f'{1}'", "{1}", "{1:2}", "{1+1}", "[1][0]", "1[100]", "(1)[100]", "*1", "(*1)"]
    + ["1_000", "0x10", "0b1", "0o7", "1j", "1e", "1e5e", "1 e5", "1.e5", "1 .real"]
    + [
        "1#2",
        "# 1",
        "1;2",
        "1\n",
        "1\n+1",
        "1+1\n2",
        "1\r2",
        "1\\\n+1",
        "1\x00",
        "\x00",
    ]
    + [
        "1\x0c+1",
        "yield 1",
        "await 1",
        "print(1)",
        "1\\2",
        "1`2",
        "$1",
        "1!",
        "1?",
        "1:2",
    ],
)
def test_python_beyond_arithmetic(expression: str) -> None:
    refusal(expression)


@pytest.mark.parametrize(
    "expression",
    ["()", "(", ")", "(1", "1)", "1+", "*1", "1 2", "1.2.3", "1..2", ".", "1.", "1+1."]
    + ["2(3)", "(2)(3)", "2(3+4)", "1*/2", "2***3", "2* *3", "2××3", "6÷÷3", "2^^3"]
    + ["%", "%5", "%*3", "(%)", "()%", "2*%", "10%%", "10%%3", "10% % 3", "10% 3 4"]
    + ["007", "2024-01-15", "=", "==", "=1+1", "1+1==", "1+1=2", "1+1=?"],
)
def test_malformed(expression: str) -> None:
    refusal(expression)


@pytest.mark.parametrize(
    "expression",
    [
        '{"expression": "1+1"}',
        'calculate("1+1")',
        "```1+1```",
        "`1+1`",
        '"1+1"',
        "$1+1$",
    ]
    + [
        "128乘以6的结果是768",
        "LCM(2, 5)",
        "sqrt(4)",
        "三加五",
        "what is 2+2?",
        "1+1。",
    ],
)
def test_words_and_wrappers(expression: str) -> None:
    refusal(expression)


@pytest.mark.parametrize(
    "expression",
    ["5²", "2¹⁰", "½", "1½", "2①", "⒈5", "⑴", "₂", "1⁄2", "٣", "४+1", "√4"],
)
def test_digits_that_nfkc_would_run_together(expression: str) -> None:
    refusal(expression)


@pytest.mark.parametrize("expression", ["", " ", "\t", "\u3000\u00a0", "=", " = "])
def test_empty(expression: str) -> None:
    assert "empty" in refusal(expression)


@pytest.mark.parametrize(
    "expression", ["", "x", "1/0", "9**9**9", "(-1)**0.5", "1+", "1" * 1000, "1,2"]
)
def test_messages_are_one_plain_sentence(expression: str) -> None:
    assert re.fullmatch(r"[A-Z][^\n]{10,100}\.", refusal(expression))
    with pytest.raises(CannotEvaluate) as caught:
        evaluate(expression)
    assert isinstance(caught.value, ValueError)
    assert caught.value.__cause__ is None


# ---------------------------------------------------------------- properties

NUMERIC = st.text("0123456789.,eE+-*/%^()= ×÷−（）％，·", max_size=40)
SPLICED = st.lists(
    st.sampled_from(
        [
            "(",
            ")",
            "**",
            "//",
            "%",
            "9",
            "1,000",
            "1e308",
            ".5",
            "[",
            "x",
            "=",
            "²",
            "^",
        ]
    ),
    max_size=60,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(st.text() | st.text(st.characters()) | NUMERIC | SPLICED)
def test_any_text_gives_a_number_or_a_refusal(text: str) -> None:
    number = r"-?\d+(\.\d+)?(e[+-]\d+)?"
    assert re.fullmatch(rf"{number}|refused: .*\.", outcome(text), re.ASCII | re.DOTALL)


Tree = tuple[str, Fraction]
SIGNS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


def _branch(left: Tree, sign: str, right: Tree) -> Tree:
    if sign in ("//", "%") and right[1] == 0:
        sign = "*"
    value = Fraction(SIGNS[sign](left[1], right[1]))
    return f"({left[0]}) {sign} ({right[0]})", value


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.integers(-(10**6), 10**6).map(lambda n: (str(n), Fraction(n))),
        lambda tree: st.builds(_branch, tree, st.sampled_from(sorted(SIGNS)), tree),
        max_leaves=8,
    )
)
def test_trees_of_whole_numbers_are_exact(tree: Tree) -> None:
    text, value = tree
    assert evaluate(text) == str(value.numerator)
    assert value.denominator == 1


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["+", "-", "*", "/", "//", "%", " ** ", " - -", " * -"]),
            st.integers(0, 12).map(str) | st.sampled_from(["0.5", "2.25", "1e2"]),
        ),
        max_size=6,
    )
)
def test_precedence_and_values_are_those_of_python(
    steps: list[tuple[str, str]],
) -> None:
    text = "3" + "".join(sign + number for sign, number in steps)
    if text.count("**") > 1:
        text = text.replace(" ** ", " + ")  # Python itself would not end
    try:
        value = eval(text)  # our own text: digits and signs
    except ZeroDivisionError:
        assert "division by zero" in refusal(text)
        return
    if isinstance(value, int):
        assert evaluate(text) == str(value)
    else:
        assert float(evaluate(text)) == pytest.approx(value, rel=1e-11, abs=0)
