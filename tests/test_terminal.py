"""What is printed fits a narrow window, and can be read without colour."""

from __future__ import annotations

import re
from io import StringIO
from itertools import pairwise

import pytest
from command_lines import python
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from equivalence.runs.hanging import hanging
from equivalence.runs.output import columns

NARROW = Console(file=StringIO(), width=200)
QUESTION = "北京和上海今天哪个更暖和？"
words = st.text("ab  上。，\n(=", max_size=60)


@given(words, st.integers(8, 40))
def test_lines_fit_lose_nothing_and_end_in_no_blank(text: str, width: int) -> None:
    lines = [line.plain for line in hanging(Text(text), NARROW, width)]
    assert all(columns(line) <= width and line == line.rstrip() for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("  → one two three four", ["  → one two three", "    four"]),
        ("one two three fours", ["one two three", "fours"]),
        ("  - 上海更暖和，北京更冷。", ["  - 上海更暖和，北", "    京更冷。"]),
        ("  → " + "a" * 20, ["  → " + "a" * 14, "    " + "a" * 6]),
    ],
)
def test_what_goes_on_is_indented_like_its_beginning(
    text: str, lines: list[str]
) -> None:
    assert [line.plain for line in hanging(Text(text), NARROW, 18)] == lines


def test_a_narrow_window_without_colour() -> None:
    """Three traces that differ do not fit side by side into 60 columns."""
    names = ("stage3", "variants.faults:lost_result", "stage5")
    named = [part for name in names for part in ("--implementation", name)]
    out = python("-m", "equivalence", "run", *named, QUESTION, COLUMNS="60").stdout
    lines = out.splitlines()
    assert "\x1b" not in out
    assert [line for line in lines if line != line.rstrip()] == []
    assert max(map(columns, lines)) <= 60
    assert [line.split()[0] for line in lines if line.endswith("──")][:-1] == [*names]
    ends = [after for line, after in pairwise(lines) if "→" in line]
    assert ends
    assert all(line.startswith("    ") for line in ends)
