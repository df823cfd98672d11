"""The report page: what is in it."""

from __future__ import annotations

import copy
import hashlib
import re
import unicodedata
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_records import (
    DIVERGENCES,
    HOSTILE,
    QUESTION,
    ROOT,
    Record,
    another_result,
    changed,
    failed_reply,
    hostile,
    invented,
    lost_result,
    no_tools,
    one_key_more,
    record,
    write,
)

from equivalence.cli import main
from equivalence.show.page.values import visible

SHARES = {
    "zh": "持有 100 股腾讯，市值多少港元？",
    "en": "What are 100 shares of Tencent worth?",
}


class Tree(HTMLParser):
    """What a page consists of; marks and texts are kept by the cell they stand in."""

    VOID = frozenset({"meta", "input", "br", "img", "link"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.marks: list[tuple[str, str]] = []
        self.texts: dict[str, str] = {}
        self.style = self.script = self.text = ""
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in self.VOID:
            self.open.append((tag, found))
        if tag == "mark":
            self.marks.append((self._cell(), found["data-path"] or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1][0] if self.open else ""
        if inside in ("style", "script"):
            setattr(self, inside, getattr(self, inside) + data)
        else:
            self.text += data
            self.texts[self._cell()] = self.texts.get(self._cell(), "") + data

    def _cell(self) -> str:
        ids = [a.get("id") for tag, a in self.open if tag == "td" and a.get("id")]
        return ids[-1] or "" if ids else ""

    def all(self, attribute: str) -> list[str]:
        return [a[attribute] or "" for _, a in self.tags if attribute in a]


def page(folder: Path, *records: Record) -> str:
    runs, out = write(folder / "runs.jsonl", *records), folder / "report.html"
    assert main(["report", str(runs), "-o", str(out)]) == 0
    return out.read_text(encoding="utf-8")


def test_a_column_an_implementation_and_a_row_a_turn(tmp_path: Path) -> None:
    names = ["stage1", "stage2", "stage3"]
    questions = [QUESTION, "Compute 1 + 1"]
    tree = Tree(page(tmp_path, *(record(n, q) for q in questions for n in names)))
    tables = Counter(a.get("class") for tag, a in tree.tags if tag == "table")
    assert tables == {"summary": 1, "compare": 2}
    for number in (1, 2):
        cells = {i for i in tree.all("id") if re.fullmatch(rf"q{number}-c\d-r\d", i)}
        rows = (1, 2, 0)  # two turns and the end
        assert cells == {f"q{number}-c{c}-r{r}" for c in range(3) for r in rows}
    assert not tree.marks
    assert "All 4 comparisons are equivalent" in tree.text
    assert 'get_weather(city="北京")' in tree.texts["q1-c0-r1"]
    assert "上海更暖和。" in tree.texts["q1-c2-r0"]


@pytest.mark.parametrize("change", DIVERGENCES, ids=lambda change: change.__name__)
def test_each_divergence_is_marked_once_on_both_sides(
    tmp_path: Path, change: Callable[[Record], None]
) -> None:
    cause, row, path = DIVERGENCES[change]
    tree = Tree(page(tmp_path, record("stage2"), changed("other", change)))
    assert Counter(cell for cell, _ in tree.marks) == {
        f"q1-c0-r{row}": 1,
        f"q1-c1-r{row}": 1,
    }
    assert {found for _, found in tree.marks} == {path} or change is failed_reply
    asides = [a for tag, a in tree.tags if tag == "aside"]
    assert [a["class"] for a in asides] == [f"parting cause-{cause}"]
    assert "parts from this here" in tree.texts[f"q1-c0-r{row}"]


def test_ids_are_unique_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    runs = [changed(change.__name__, change) for change in DIVERGENCES]
    tree = Tree(page(tmp_path, record("stage3"), *runs))
    ids = Counter(tree.all("id"))
    assert max(ids.values()) == 1
    for link in tree.all("href"):
        assert link.startswith("#"), link
        assert link[1:] in ids, link
    for labels in tree.all("aria-labelledby"):
        assert labels in ids


def test_nothing_is_loaded_and_the_policy_fits_the_page(tmp_path: Path) -> None:
    tree = Tree(page(tmp_path, record("stage3"), changed("other", lost_result)))
    policy = next(a["content"] for _, a in tree.tags if "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none'; ")
    for kind, content in (("style", tree.style), ("script", tree.script)):
        digest = hashlib.sha256(content.encode()).digest()
        assert f"{kind}-src 'sha256-{b64encode(digest).decode()}'" in policy
    assert "unsafe" not in policy
    assert "url(" not in tree.style
    assert "@import" not in tree.style
    assert not tree.all("src") + tree.all("style")
    assert not [name for _, a in tree.tags for name in a if name.startswith("on")]


def test_hostile_content_stays_text(tmp_path: Path) -> None:
    plain = Tree(page(tmp_path, record("stage3"), changed("other", lost_result)))
    tree = Tree(page(tmp_path, *hostile()))
    more = {tag for tag, _ in tree.tags} - {tag for tag, _ in plain.tags}
    assert more <= {"details", "pre", "summary", "i", "b"}
    counts = Counter(tag for tag, _ in tree.tags)
    assert (counts["script"], counts["style"], counts["title"]) == (1, 1, 1)
    assert not [name for _, a in tree.tags for name in a if name.startswith("on")]
    assert tree.script == plain.script
    assert visible(HOSTILE) in tree.text
    assert "\u202e" not in tree.text
    assert "49" not in tree.text


def test_the_same_records_give_the_same_page(tmp_path: Path) -> None:
    runs = [record("stage3"), changed("other", another_result)]
    assert page(tmp_path, *runs) == page(tmp_path, *runs)


def test_each_layer_shows_what_it_added(tmp_path: Path) -> None:
    tree = Tree(page(tmp_path, record("stage3"), changed("other", one_key_more)))
    first, second = tree.texts["q1-c1-r1"], tree.texts["q1-c1-r2"]
    squeezed = " ".join(first.split())
    assert "+ system Be careful." in squeezed
    assert f"+ the question {QUESTION}" in squeezed
    assert "≠ $.top_p was − absentis + 1" in squeezed
    assert "+ tool 北京: 25 °C" in " ".join(second.split())
    assert "The same request as stage3's." in second


def test_the_source_of_a_stage_stands_beside_its_turns(tmp_path: Path) -> None:
    tree = Tree(page(tmp_path, record("stage3"), record("my.module:agent")))
    code = (ROOT / "stage3_pure_loop" / "agent.py").read_text(encoding="utf-8")
    assert "def run_tools(" in tree.texts["q1-c0-r1"]
    assert "def run_tools(" not in tree.texts["q1-c0-r2"]  # this turn called no tool
    assert "def call_model(" in tree.texts["q1-c0-r2"]
    assert "def run_agent(" in tree.texts["q1-c0-r0"]
    assert "def " not in tree.texts["q1-c1-r1"]
    assert all(line in tree.text for line in code.splitlines())


def test_repairs_warnings_attempts_and_errors_are_shown(tmp_path: Path) -> None:
    run = record("stage3", warnings=["model call 2: the gateway repaired x"])
    run["exchanges"][1] |= {
        "repairs": ["text_tool_call"],
        "raw_reply": {"raw": 1},
        "attempt": 1,
    }
    failed = {**copy.deepcopy(run["exchanges"][1]), "status": 503, "attempt": 0}
    run["exchanges"].insert(1, failed)
    run |= {"status": "model_error", "error": "the endpoint answered 401: no key"}
    text = Tree(page(tmp_path, run)).text
    for words in (
        "repaired: text_tool_call",
        "Reply before repair",
        "1 failed before it",
        "model call 2: the gateway repaired x",
        "the endpoint answered 401: no key",
        "Check LLM_API_KEY.",
        "langgraph",
    ):
        assert words in text


UNGROUNDED = re.compile('<span class="ungrounded">(.*?)</span>')


@pytest.mark.parametrize("language", SHARES)
@pytest.mark.parametrize(
    ("expression", "marked"),
    [
        ("300 * 100", ["300"]),
        ("100 * 300 + 3000 / 300.5", ["300", "3000", "300.5"]),
        ("３００ * 100", ["３００"]),
        ("300*100 + 300", ["300", "300"]),
        ("100 * 1", []),
    ],
)
def test_a_number_that_nobody_said_is_marked_in_its_argument(
    tmp_path: Path, language: str, expression: str, marked: list[str]
) -> None:
    html = page(tmp_path, invented(SHARES[language], expression))
    assert UNGROUNDED.findall(html) == marked
    shown = " ".join(Tree(html).texts["q1-c0-r1"].split())
    assert f'calculate(expression="{expression}")' in shown
    notes = [f"⚠ expression: {n} is in neither the question" for n in marked]
    for note in notes:
        assert shown.count(unicodedata.normalize("NFKC", note)) == 1
    assert shown.count("⚠") == len(set(notes))


def test_the_mark_says_what_became_of_the_number(tmp_path: Path) -> None:
    run = invented(SHARES["zh"], "300 * 100")
    note = "the real value, 385.6, came in turn 1; the answer corrected it"
    assert note in Tree(page(tmp_path, run)).texts["q1-c0-r1"]
    run["steps"][1] |= {"arguments": "300 *", "arguments_text": "300 *"}
    run["steps"][1]["ungrounded"][0] |= {"argument": "", "real": None, "arrived": None}
    html = page(tmp_path, run)
    assert UNGROUNDED.findall(html) == ["300"]
    assert "⚠ 300 is in neither" in Tree(html).texts["q1-c0-r1"]
    run["steps"][1]["ungrounded"][0]["number"] = "7"  # not in the text as it stands
    assert UNGROUNDED.findall(page(tmp_path, run)) == ["300 *"]


def test_what_was_grounded_on_one_side_only_is_not_the_same(tmp_path: Path) -> None:
    runs = [invented(SHARES["en"], "300 * 100", name) for name in ("a", "b")]
    assert "= same as a" in Tree(page(tmp_path, *runs)).texts["q1-c1-r1"]
    runs[1]["steps"][1]["ungrounded"][0]["answer"] = "used"
    assert "= same as a" not in Tree(page(tmp_path, *runs)).texts["q1-c1-r1"]


def test_the_invented_price_of_the_offline_model_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_SEED", "7")
    runs, out = tmp_path / "runs.jsonl", tmp_path / "report.html"
    question = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
    names = [part for n in ("stage3", "stage4") for part in ("--implementation", n)]
    asked = ["run", "--temperature", "0.7", *names, "--out", str(runs), question]
    assert main(asked) == 0
    assert main(["report", str(runs), "-o", str(out)]) == 0
    html = out.read_text(encoding="utf-8")
    assert UNGROUNDED.findall(html) == ["300", "300"]
    assert "the real value, 385.6, came in turn 1" in Tree(html).texts["q1-c1-r1"]


def test_the_language_of_chinese_text_is_told(tmp_path: Path) -> None:
    tree = Tree(page(tmp_path, record("stage3")))
    languages = Counter(tree.all("lang"))
    assert languages["zh"] >= 4
    assert tree.tags[0] == ("html", {"lang": "en"})


def test_a_name_in_two_files_is_told_apart_by_the_file(tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", record("stage3"))
    after = write(
        tmp_path / "after.jsonl", record("stage3"), changed("a.b:c", no_tools)
    )
    out = tmp_path / "page.html"
    assert main(["report", str(before), str(after), "-o", str(out)]) == 0
    text = Tree(out.read_text(encoding="utf-8")).text
    assert "3 implementations, measured against stage3 in before.jsonl" in text
    assert "stage3 in after.jsonl" in text


def test_of_runs_recorded_twice_the_later_counts(tmp_path: Path) -> None:
    tree = Tree(
        page(tmp_path, record("a"), changed("b", no_tools), record("a"), record("b"))
    )
    assert "The comparison is equivalent" in tree.text
