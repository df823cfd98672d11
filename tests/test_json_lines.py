"""JSON and values on the report page: whole, foldable, marked where runs differ."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from markupsafe import Markup
from report_records import TOOL

from equivalence.gateway.canonical import ABSENT
from equivalence.runs.words import visible
from equivalence.show.page.values import Fold, contrast, json_html


def plain(found: Markup) -> str:
    """The text of it, less what is not in the JSON."""
    kept = re.sub(r'<span class="l d\d+ absent">.*?\n</span>', "", found)
    return html.unescape(re.sub(r"<[^>]*>", "", kept))


def test_json_with_marks_is_still_the_json() -> None:
    value = {"a": [1, {"b": "x\n\"y'<p>"}, []], "c": {}, "d": None, "é": True}
    marks = ["$.a[1].b", "$.a[1].missing", "$.nowhere[3]"]
    found = json_html(value, marks)
    assert json.loads(plain(found)) == value
    assert re.findall('data-path="(.*?)"', found) == marks
    assert "missing: (absent)" in found


def test_what_stands_elsewhere_is_folded_unless_the_difference_is_there() -> None:
    request = {"messages": [1, 2, 3], "tools": [TOOL]}
    folds = {
        "$.tools": Fold("tools-1", "[ 1 tool ]"),
        "$.messages": Fold("earlier", "… 2 messages", 2),
    }
    found = plain(json_html(request, folds=folds))
    assert "".join(found.split()) == '{"messages":[…2messages,3],"tools":[1tool]}'
    whole = plain(
        json_html(request, ["$.tools[0].function.name", "$.messages[1]"], folds)
    )
    assert json.loads(whole) == request


def test_items_of_a_list_are_one_element_that_a_fold_leads_to() -> None:
    found = json_html({"messages": [1, 2], "x": 3}, anchors={"$.messages": "here"})
    inside = found.partition('<span id="here">')[2]
    assert plain(Markup(inside[: inside.index("]")])).split() == ["1,", "2"]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("Answer briefly.", "Answer briefly. ", ("", "␣")),
        ("1+2\n", "1+2", ("⏎\n", "")),
        ("上海: 28 °C, cloudy", "上海: 8 °C, cloudy", ("2", "")),
        ("aaaa", "aaa", ("a", "")),
        (ABSENT, {"a": 1}, ("", "")),
        ("(absent)", "(absent)!", ("", "!")),
        ("completed", "model call 3", ("", "")),
        (True, 1, ("", "")),
    ],
)
def test_contrast(left: Any, right: Any, expected: tuple[str, str]) -> None:
    parts = contrast(left, right)
    assert tuple(part.differing for part in parts) == expected
    assert [part.absent for part in parts] == [left is ABSENT, False]


def test_contrast_of_long_values_stays_short() -> None:
    parts = contrast(
        "x" * 9000 + " left " + "y" * 9000, "x" * 9000 + " r " + "y" * 9000
    )
    for part in parts:
        assert part.differing
        assert len(part.before + part.differing + part.after) < 400


def test_what_cannot_be_seen_is_made_visible() -> None:
    """On the page and in the terminal, by one rule."""
    assert visible("a\x00\u202e\u200bb\ud800") == r"a\x00\u202e\u200bb\ud800"
    assert visible("\u061c\u2066\x1b\U000e0041") == r"\u061c\u2066\x1b\U000e0041"
    assert visible("soft\u00adhyphen \U000e007f\U000e0000") == (
        "soft\\xadhyphen \\U000e007f\\U000e0000"  # the last is not assigned
    )
    for shown in ("a\u200db", "北\u200d京", "\u200d💻", "👩\u200d", "no\u200cjoin"):
        assert visible(shown) != shown
    family = (
        "👩\u200d👩\u200d👧",
        "👩\U0001f3fd\u200d💻",
        "🏳\ufe0f\u200d🌈",
        "❤\ufe0f\u200d🔥",
    )
    for kept in ("plain", "线 1\n\t2", *family, "می\u200cخواهم", "क्\u200dष"):
        assert visible(kept) == kept
