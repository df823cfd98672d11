"""JSON in the report, line by line, foldable, marked where runs part."""

from __future__ import annotations

import json
from typing import Any

import pytest
from report_records import TOOL

from equivalence.show.page.json_lines import blocks
from equivalence.show.page.values import contrast, visible


def test_json_in_blocks_is_still_the_json() -> None:
    value = {"a": [1, {"b": "x\n\"y'"}, []], "c": {}, "d": None, "é": True}
    text = "\n".join(
        line.key + line.text
        for block in blocks(value, ["$.a[1].b", "$.a[1].missing", "$.nowhere[3]"])
        for line in block.lines
        if not line.absent
    )
    assert json.loads(text) == value


def test_tools_are_folded_unless_the_difference_is_there() -> None:
    request = {"model": "m", "tools": [TOOL]}
    (folded,) = blocks(request)
    assert [line.tools for line in folded.lines if line.tools] == [(TOOL,)]
    opened = blocks(request, ["$.tools[0].function.name"])
    assert not any(line.tools for block in opened for line in block.lines)
    assert [block.path for block in opened if block.path] == [
        "$.tools[0].function.name"
    ]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("Answer briefly.", "Answer briefly. ", ("", "␣")),
        ("上海: 28 °C, cloudy", "上海: 8 °C, cloudy", ("2", "")),
        ("aaaa", "aaa", ("a", "")),
        ("(absent)", {"a": 1}, ("", "")),
        ("completed", "model call 3", ("", "")),
        (True, 1, ("", "")),
    ],
)
def test_contrast(left: Any, right: Any, expected: tuple[str, str]) -> None:
    parts = contrast(left, right)
    assert tuple(part.differing for part in parts) == expected
    assert [part.absent for part in parts] == [left == "(absent)", False]


def test_contrast_of_long_values_stays_short() -> None:
    parts = contrast(
        "x" * 9000 + " left " + "y" * 9000, "x" * 9000 + " r " + "y" * 9000
    )
    for part in parts:
        assert part.differing
        assert len(part.before + part.differing + part.after) < 400


def test_what_cannot_be_seen_is_made_visible() -> None:
    assert visible("a\x00\u202e\u200bb\ud800") == "a\\u0000\\u202e\\u200bb\\ud800"
    for kept in ("plain", "线 1\n\t2", "👩\u200d💻"):
        assert visible(kept) == kept
