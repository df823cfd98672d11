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
    another_prompt,
    another_reply,
    another_result,
    changed,
    exchange,
    failed_reply,
    hostile,
    invented,
    lost_result,
    no_tools,
    one_key_more,
    record,
    reply,
    stopped_early,
    text_protocol,
    write,
)

from equivalence.cli import main
from equivalence.runs.words import visible

SHARES = {
    "zh": "持有 100 股腾讯，市值多少港元？",
    "en": "What are 100 shares of Tencent worth?",
}


class Tree(HTMLParser):
    """What a page consists of; marks and texts are kept by the card they stand in."""

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
            self.marks.append((self._card(), found["data-path"] or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1][0] if self.open else ""
        if inside in ("style", "script"):
            setattr(self, inside, getattr(self, inside) + data)
        else:
            self.text += data
            self.texts[self._card()] = self.texts.get(self._card(), "") + data

    def _card(self) -> str:
        ids = [a.get("id") for tag, a in self.open if tag == "article"]
        return ids[-1] or "" if ids else ""

    def all(self, attribute: str) -> list[str]:
        return [a[attribute] or "" for _, a in self.tags if attribute in a]


def page(folder: Path, *records: Record) -> str:
    runs, out = write(folder / "runs.jsonl", *records), folder / "report.html"
    assert main(["report", str(runs), "-o", str(out)]) == 0
    return out.read_text(encoding="utf-8")


CARD = re.compile(r"q\d+-t\d+-c\d+")


def test_runs_that_did_the_same_in_a_turn_share_a_card(tmp_path: Path) -> None:
    names = ["stage1", "stage2", "stage3"]
    questions = [QUESTION, "Compute 1 + 1"]
    tree = Tree(page(tmp_path, *(record(n, q) for q in questions for n in names)))
    cards = [i for i in tree.all("id") if CARD.fullmatch(i)]
    rows = (1, 2, 0)  # two turns and the end
    assert cards == [f"q{number}-t{row}-c0" for number in (1, 2) for row in rows]
    assert not tree.marks
    assert "All 4 comparisons are equivalent" in tree.text
    assert 'get_weather(city="北京")' in tree.texts["q1-t1-c0"]
    assert "上海更暖和。" in tree.texts["q1-t0-c0"]
    assert tree.text.count("stage1 = stage2 = stage3") == 8  # and the settings of each


def test_from_the_difference_on_each_has_a_card_of_its_own(tmp_path: Path) -> None:
    tree = Tree(
        page(tmp_path, record("a"), record("b"), changed("other", stopped_early))
    )
    cards = [i for i in tree.all("id") if CARD.fullmatch(i)]
    assert cards == [
        f"q1-t{place}" for place in ("1-c0", "2-c0", "2-c2", "0-c0", "0-c2")
    ]
    assert "a = b = other" in tree.texts["q1-t1-c0"]
    assert "no model call 2: the run had ended, step_limit" in tree.texts["q1-t2-c2"]


def test_the_difference_comes_first_and_the_legend_is_folded(tmp_path: Path) -> None:
    runs = [record(n, q) for q in ("one", "two") for n in ("a", "b")]
    runs[3]["exchanges"][0]["request"]["top_p"] = 1
    html = page(tmp_path, *runs)
    places = [html.index(f'id="{i}"') for i in ("q2", "q2-t1-c0", "q1", "reading")]
    assert places == sorted(places)
    assert places[0] < html.index("<aside") < places[1]
    assert '<details id="reading"' in html
    assert "Ignored in the comparison" in html


@pytest.mark.parametrize("change", DIVERGENCES, ids=lambda change: change.__name__)
def test_each_divergence_is_marked_once_on_both_sides(
    tmp_path: Path, change: Callable[[Record], None]
) -> None:
    cause, row, path = DIVERGENCES[change]
    tree = Tree(page(tmp_path, record("stage2"), changed("other", change)))
    assert Counter(cell for cell, _ in tree.marks) == {
        f"q1-t{row}-c0": 1,
        f"q1-t{row}-c1": 1,
    }
    assert {found for _, found in tree.marks} == {path} or change is failed_reply
    asides = [a for tag, a in tree.tags if tag == "aside"]
    assert [a["class"] for a in asides] == [f"parting cause-{cause}"]
    assert "First difference of other" in tree.texts[f"q1-t{row}-c0"]
    assert "First difference from stage2" in tree.texts[f"q1-t{row}-c1"]


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
    assert more <= {"ul", "li", "pre", "i", "b"}
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
    first, second = tree.texts["q1-t1-c1"], tree.texts["q1-t2-c0"]
    squeezed = " ".join(first.split())
    assert "+ system Be careful." in squeezed
    assert f"+ the question {QUESTION}" in squeezed
    assert "≠ $.top_p was − absentis + 1" in squeezed
    assert "+ tool 北京: 25 °C" in " ".join(second.split())
    assert "stage3 = other" in second


def test_the_files_of_the_table_are_on_the_page_and_no_other(tmp_path: Path) -> None:
    tree = Tree(page(tmp_path, record("stage3"), record("os:getcwd")))
    code = (ROOT / "stage3_pure_loop" / "agent.py").read_text(encoding="utf-8")
    assert all(line in tree.text for line in code.splitlines())
    assert "a for-loop over a list" in tree.text
    assert Counter(a.get("class") for _, a in tree.tags)["source"] == 1


def test_prompts_are_text_with_their_line_breaks(tmp_path: Path) -> None:
    run = record("a")
    for each in run["exchanges"]:
        each["request"]["messages"][0]["content"] = "Be brief.\n\n- Use the tools."
    html = page(tmp_path, run)
    assert '<span class="prompt">Be brief.\n\n- Use the tools.</span>' in html


def test_a_request_shows_what_it_adds_to_the_one_before(tmp_path: Path) -> None:
    tree = Tree(page(tmp_path, record("a")))
    assert "… 2 messages as in model call 1" in tree.texts["q1-t2-c0"]
    assert {"#tools-1", "#q1-t1-c0-messages"} <= set(tree.all("href"))


def test_a_request_that_changes_an_old_message_is_shown_whole(tmp_path: Path) -> None:
    run = record("a")
    run["exchanges"][1]["request"]["messages"][0]["content"] = "Be bold."
    tree = Tree(page(tmp_path, run))
    assert "as in model call" not in tree.text
    assert tree.texts["q1-t2-c0"].count("Be bold.") == 2  # what it added, request


def test_where_two_texts_differ_is_told_to_the_character(tmp_path: Path) -> None:
    text = Tree(page(tmp_path, record("a"), changed("b", another_prompt))).text
    assert "The two texts differ from character 27 on." in text
    assert "They differ in blanks alone." in text
    other = Tree(page(tmp_path, record("a"), changed("b", another_result))).text
    assert "from character 4 on" in other
    assert "blanks alone" not in other


def test_a_follow_up_differs_since_the_question_where_it_began(tmp_path: Path) -> None:
    runs = [record(name, "first") for name in ("a", "b")]
    another_reply(runs[1])
    for name, told in (("a", "上海更暖和。"), ("b", "上海。")):
        run = record(name, "second", history=["first"])
        earlier = [{"role": "user", "content": "first"}, reply(told)]
        earlier[1] = earlier[1]["choices"][0]["message"]
        for each in run["exchanges"]:
            each["request"]["messages"][1:1] = copy.deepcopy(earlier)
        runs.append(run)
    tree = Tree(page(tmp_path, *runs))
    assert "At the earlier question 'first': The same request got" in tree.text
    assert ("q2-t1-c0", "$.messages[2].content") in tree.marks


def test_calls_under_way_together_are_marked_where_they_stand(tmp_path: Path) -> None:
    runs = []
    for name, cities in (("a", ("北京", "上海")), ("b", ("上海", "北京"))):
        run = record(name, answer="done", steps=[])
        asked = [[{"role": "user", "content": city}] for city in cities]
        run["exchanges"] = [
            exchange(messages, reply(f"{messages[0]['content']} {name}"[:2]))
            | {"began": float(began), "ms": 9.0}
            for began, messages in enumerate(asked)
        ]
        runs.append(run)
    runs[1]["exchanges"][1]["reply"] = reply("other")  # 北京 is the second call of b
    tree = Tree(page(tmp_path, *runs))
    assert "model call 1 (2 there)" in tree.text
    assert {cell for cell, _ in tree.marks} == {"q1-t1-c0", "q1-t2-c1"}


def test_repairs_warnings_attempts_and_errors_are_shown(tmp_path: Path) -> None:
    run = record("stage3", warnings=["model call 2: the gateway repaired x"])
    run["exchanges"][1] |= {
        "repairs": ["text_tool_call"],
        "raw_reply": {"raw": 1},
        "raw_status": 200,
        "attempt": 1,
        "began": 2.0,
    }
    before = {"status": 503, "attempt": 0, "began": 1.0}
    failed = {**copy.deepcopy(run["exchanges"][1]), **before}
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
    shown = " ".join(Tree(html).texts["q1-t1-c0"].split())
    assert f'calculate(expression="{expression}")' in shown
    notes = [f"⚠ expression: {n} was made up: in no question" for n in marked]
    for note in notes:
        assert shown.count(unicodedata.normalize("NFKC", note)) == 1
    assert shown.count("⚠") == len(set(notes))


def test_the_mark_says_what_became_of_the_number(tmp_path: Path) -> None:
    run = invented(SHARES["zh"], "300 * 100")
    note = "came in turn 1; what came of it, 30000, is not in the answer"
    assert note in Tree(page(tmp_path, run)).texts["q1-t1-c0"]
    run["steps"][1] |= {"arguments": "300 *", "arguments_text": "300 *"}
    run["steps"][1]["ungrounded"][0] |= {"argument": "", "arrived": None}
    html = page(tmp_path, run)
    assert UNGROUNDED.findall(html) == ["300"]
    assert "⚠ 300 was made up" in Tree(html).texts["q1-t1-c0"]
    run["steps"][1]["ungrounded"][0]["number"] = "7"  # not in the text as it stands
    assert UNGROUNDED.findall(page(tmp_path, run)) == ["300 *"]


def test_what_was_grounded_on_one_side_only_is_not_the_same(tmp_path: Path) -> None:
    runs = [invented(SHARES["en"], "300 * 100", name) for name in ("a", "b")]
    assert "a = b" in Tree(page(tmp_path, *runs)).texts["q1-t1-c0"]
    runs[1]["steps"][1]["ungrounded"][0]["in_answer"] = True
    assert "a = b" not in Tree(page(tmp_path, *runs)).texts["q1-t1-c0"]


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
    assert UNGROUNDED.findall(html) == ["300"]
    shown = Tree(html).texts["q1-t1-c0"]
    assert "stage3 = stage4" in shown
    assert "300 was made up: in no question and no earlier result" in shown


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
    assert "3 implementations, baseline stage3 in before.jsonl" in text
    assert "stage3 in after.jsonl" in text


def test_shards_are_joined_by_naming_them(tmp_path: Path) -> None:
    shards = [
        write(tmp_path / f"{q}.jsonl", record("a", q), record("b", q))
        for q in ("one", "two")
    ]
    out = tmp_path / "page.html"
    assert main(["report", *map(str, shards), "-o", str(out)]) == 0
    text = Tree(out.read_text(encoding="utf-8")).text
    assert "2 questions, 2 implementations, baseline a" in text


def test_of_many_questions_those_that_are_equal_are_one_line(tmp_path: Path) -> None:
    runs = [record(n, f"question {i}") for i in range(30) for n in ("a", "b")]
    one_key_more(runs[15])  # b at question 7
    html = page(tmp_path, *runs)
    drawn = {i.partition("-")[0] for i in Tree(html).all("id") if CARD.fullmatch(i)}
    assert drawn == {"q8"}
    assert html.count('<p class="one"') == 29
    assert "29 questions are one line each" in html
    out = tmp_path / "report.html"
    words = ["report", str(tmp_path / "runs.jsonl"), "-o", str(out), "--all"]
    assert main(words) == 0
    tree = Tree(out.read_text(encoding="utf-8"))
    drawn = {i.partition("-")[0] for i in tree.all("id") if CARD.fullmatch(i)}
    assert len(drawn) == 30


def test_of_runs_recorded_twice_the_later_counts(tmp_path: Path) -> None:
    tree = Tree(
        page(tmp_path, record("a"), changed("b", no_tools), record("a"), record("b"))
    )
    assert "The comparison is equivalent" in tree.text


def test_what_the_judge_passes_over_shares_a_card(tmp_path: Path) -> None:
    runs = write(tmp_path / "runs.jsonl", record("a"), changed("b", one_key_more))
    out = tmp_path / "page.html"
    words = ["report", str(runs), "-o", str(out)]
    assert main([*words, "--ignore", "$.top_p"]) == 0
    tree = Tree(out.read_text(encoding="utf-8"))
    assert "The comparison is equivalent" in tree.text
    assert "a = b" in tree.texts["q1-t1-c0"]


def test_accepted_differences_are_shown_with_their_reason(tmp_path: Path) -> None:
    runs = write(tmp_path / "runs.jsonl", record("a"), changed("b", one_key_more))
    accept, out = tmp_path / "accept.toml", tmp_path / "page.html"
    entry = '[[accepted]]\npath = "$.top_p"\nreason = "the upgrade adds it"\n'
    accept.write_text(entry, encoding="utf-8")
    words = ["report", str(runs), "-o", str(out), "--accept", str(accept)]
    assert main(words) == 0
    tree = Tree(out.read_text(encoding="utf-8"))
    assert "1 of 1 comparisons is accepted" in tree.text
    assert "a and b: the upgrade adds it" in tree.text
    assert ("q1-t1-c1", "$.top_p") in tree.marks


def test_compared_by_steps_the_difference_is_a_step(tmp_path: Path) -> None:
    left, right = record("a"), changed("b", text_protocol)
    right["protocol"] = left["protocol"] = "tool_calls"
    another_prompt(right)
    runs, out = write(tmp_path / "runs.jsonl", left, right), tmp_path / "page.html"
    assert main(["report", str(runs), "-o", str(out), "--compare", "steps"]) == 0
    tree = Tree(out.read_text(encoding="utf-8"))
    assert ("q1-t1-c1", "steps[1].arguments.city") in tree.marks
    assert "Their requests were not compared" in tree.text


@pytest.mark.slow
def test_of_very_many_differences_the_first_are_drawn_and_all_are_named(
    tmp_path: Path,
) -> None:
    runs = [record(n, f"question {i}") for i in range(110) for n in ("a", "b")]
    for run in runs[1::2]:
        one_key_more(run)
    tree = Tree(page(tmp_path, *runs))
    drawn = {i.partition("-")[0] for i in tree.all("id") if CARD.fullmatch(i)}
    assert len(drawn) == 100
    assert tree.text.count("b: request, model call 1, $.top_p") == 10
    assert {f"q{number}" for number in range(1, 111)} <= set(tree.all("id"))
