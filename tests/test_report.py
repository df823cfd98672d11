"""The report page: what is in it, what cannot get out, and how a browser shows it.

The browser tests need Debian's chromium: apt-get install chromium fonts-noto-cjk
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import subprocess
import sys
import unicodedata
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from equivalence.cli import main
from equivalence.grounding import mark
from equivalence.record import SCHEMA, Run
from equivalence.report.json_lines import blocks
from equivalence.report.values import contrast, visible
from tests.browser import CHROMIUM, Browser

ROOT = Path(__file__).parent.parent
HOSTILE = (
    "</script></style></title></mark><img src=x onerror=\"document.title='fired'\">"
    "<script>document.title='fired'</script>{{7*7}}\"'><svg onload=alert(1)>"
    "<a href=javascript:alert(2)>\u202ecba\u200b"
)
QUESTION = "北京和上海今天哪个更暖和？"
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Look up.", "parameters": {}},
}

Record = dict[str, Any]


def call(number: int, city: str) -> Record:
    arguments = json.dumps({"city": city}, ensure_ascii=False)
    function = {"name": "get_weather", "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


def reply(content: str | None, *calls: Record) -> Record:
    message: Record = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    reason = "tool_calls" if calls else "stop"
    return {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def exchange(messages: list[Record], answer: Record) -> Record:
    request = {"model": "m", "messages": messages, "temperature": 0.0, "tools": [TOOL]}
    return {
        "request": copy.deepcopy(request),
        "reply": answer,
        "status": 200,
        "repairs": [],
        "ms": 1.5,
        "attempt": 0,
    }


def record(name: str, question: str = QUESTION, **fields: Any) -> Record:
    """A run of two turns: two calls, then the answer."""
    asked = [
        {"role": "system", "content": "Be careful. Answer briefly."},
        {"role": "user", "content": question},
    ]
    first = reply(None, call(1, "北京"), call(2, "上海"))
    results = [("北京", "北京: 25 °C"), ("上海", "上海: 28 °C")]
    told = [
        {"role": "tool", "tool_call_id": f"call_{i}", "content": text}
        for i, (_, text) in enumerate(results, 1)
    ]
    answer = "上海更暖和。"
    later = [*asked, first["choices"][0]["message"], *told]
    steps = [
        {
            "turn": 1,
            "tool": "get_weather",
            "arguments": {"city": city},
            "arguments_text": json.dumps({"city": city}, ensure_ascii=False),
            "result": text,
            "ok": True,
            "order": index,
        }
        for index, (city, text) in enumerate(results)
    ]
    return {
        "schema": SCHEMA,
        "implementation": name,
        "question": question,
        "settings": {"model": "m", "max_steps": 10},
        "versions": {"langgraph": "1.2.3"},
        "status": "completed",
        "answer": answer,
        "steps": steps,
        "exchanges": [exchange(asked, first), exchange(later, reply(answer))],
        **fields,
    }


def another_prompt(run: Record) -> None:
    for each in run["exchanges"]:
        each["request"]["messages"][0]["content"] += " "


def lost_result(run: Record) -> None:
    del run["exchanges"][1]["request"]["messages"][4]


def one_key_more(run: Record) -> None:
    run["exchanges"][0]["request"]["top_p"] = 1


def other_arguments_in_history(run: Record) -> None:
    calls = run["exchanges"][1]["request"]["messages"][2]["tool_calls"]
    calls[1]["function"]["arguments"] = '{"city": "广州"}'


def another_tool_list(run: Record) -> None:
    run["exchanges"][0]["request"]["tools"][0]["function"]["description"] = "Look."


def no_tools(run: Record) -> None:
    del run["exchanges"][0]["request"]["tools"]


def another_reply(run: Record) -> None:
    run["exchanges"][1]["reply"] = reply("上海。")


def another_call(run: Record) -> None:
    run["exchanges"][0]["reply"] = reply(None, call(1, "北京"), call(2, "广州"))


def one_call_less(run: Record) -> None:
    run["exchanges"][0]["reply"] = reply(None, call(1, "北京"))


def failed_reply(run: Record) -> None:
    run["exchanges"][1] |= {"status": 503, "reply": {"error": {"message": "busy"}}}


def another_result(run: Record) -> None:
    run["steps"][1]["result"] = "上海: 8 °C"


def another_order(run: Record) -> None:
    run["steps"][0]["order"], run["steps"][1]["order"] = 1, 0


def not_executed(run: Record) -> None:
    run["steps"][1] |= {"order": None, "ok": False, "result": "no such tool"}


def stopped_early(run: Record) -> None:
    del run["exchanges"][1]
    run |= {"status": "step_limit", "answer": ""}


def invented_answer(run: Record) -> None:
    run["answer"] += "!"


def no_answer(run: Record) -> None:
    run |= {"status": "failed", "answer": "", "error": "KeyError: 'x'"}


def text_protocol(run: Record) -> None:
    run["protocol"] = "text"
    run["steps"][1]["arguments"] = {"city": "广州"}


DIVERGENCES = {
    another_prompt: ("request", 1, "$.messages[0].content"),
    lost_result: ("request", 2, "$.messages[4]"),
    one_key_more: ("request", 1, "$.top_p"),
    other_arguments_in_history: (
        "request",
        2,
        "$.messages[2].tool_calls[1].function.arguments.city",
    ),
    another_tool_list: ("request", 1, "$.tools[0].function.description"),
    no_tools: ("request", 1, "$.tools"),
    another_reply: ("reply", 2, "$.choices[0].message.content"),
    another_call: (
        "reply",
        1,
        "$.choices[0].message.tool_calls[1].function.arguments.city",
    ),
    one_call_less: ("reply", 1, "$.choices[0].message.tool_calls[1]"),
    failed_reply: ("reply", 2, "$.choices[0].message"),
    another_result: ("tool", 1, "steps[1].result"),
    another_order: ("control", 1, "steps[0].order"),
    not_executed: ("control", 1, "steps[1]"),
    stopped_early: ("control", 2, "status"),
    invented_answer: ("control", 0, "answer"),
    no_answer: ("control", 0, "status"),
    text_protocol: ("reply", 1, "steps[1].arguments.city"),
}


SHARES = {
    "zh": "持有 100 股腾讯，市值多少港元？",
    "en": "What are 100 shares of Tencent worth?",
}


def invented(question: str, expression: str, name: str = "stage3") -> Record:
    """A run that multiplies a price before it knows it, with its grounding marks."""
    run = record(name, question, answer="38,560 HKD")
    calls = [
        ("get_stock_price", {"symbol": "腾讯"}, "Tencent 0700.HK: 385.6 HKD"),
        ("calculate", {"expression": expression}, "30000"),
    ]
    for step, (tool, arguments, result) in zip(run["steps"], calls, strict=True):
        step |= {"tool": tool, "arguments": arguments, "result": result}
        step["arguments_text"] = json.dumps(arguments, ensure_ascii=False)
    mark(marked := Run.from_json(run))
    return marked.to_json()


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


def write(path: Path, *records: Record) -> Path:
    lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in records]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def page(folder: Path, *records: Record) -> str:
    runs, out = write(folder / "runs.jsonl", *records), folder / "report.html"
    assert main(["report", str(runs), "-o", str(out)]) == 0
    return out.read_text(encoding="utf-8")


def changed(name: str, change: Callable[[Record], None]) -> Record:
    run = record(name)
    change(run)
    return run


def hostile() -> list[Record]:
    """Runs in which whatever can be a text is hostile."""
    spoilt = json.loads(json.dumps(record("x", HOSTILE)).replace("get_weather", "@@"))
    text = json.dumps(spoilt, ensure_ascii=False)
    inner = json.dumps(json.dumps(HOSTILE)[1:-1])[1:-1]  # inside arguments as text
    first = json.loads(text.replace("@@", inner).replace("°C", inner))
    for step in first["steps"]:
        step |= {"arguments": {HOSTILE: HOSTILE}, "result": HOSTILE * 9, "ok": False}
        number = {"number": HOSTILE, "argument": HOSTILE, "real": HOSTILE}
        step["ungrounded"] = [{**number, "arrived": 1, "answer": "used"}]
    for each in first["exchanges"]:
        each |= {"repairs": [HOSTILE], "raw_reply": {HOSTILE: HOSTILE}}
        each["request"][HOSTILE] = HOSTILE
    first |= {
        "implementation": HOSTILE,
        "history": [HOSTILE],
        "settings": {HOSTILE: HOSTILE, "model": HOSTILE},
        "versions": {HOSTILE: HOSTILE},
        "status": HOSTILE,
        "answer": HOSTILE,
        "error": HOSTILE,
        "warnings": [HOSTILE],
    }
    second, third = copy.deepcopy(first), copy.deepcopy(first)
    second["implementation"], third["implementation"] = "b" + HOSTILE, "c" + HOSTILE
    second["exchanges"][0]["request"][HOSTILE] = "other"
    third["steps"][0]["result"] = "other"
    return [first, second, third]


# ------------------------------------------------------------------- what is in it


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


# ----------------------------------------------------------------- JSON, piece by piece


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


# -------------------------------------------------------------------- the command line


def ungrounded(numbers: Any) -> str:
    """A record whose step holds these as its ungrounded numbers."""
    run = record("a")
    run["steps"][0]["ungrounded"] = numbers
    return json.dumps(run)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("", "holds no run"),
        ("{}\n", "no run record"),
        ("not json\n\n{}\n", "record 1"),
        (json.dumps({**record("a"), "exchanges": [1]}), "exchange"),
        (json.dumps({**record("a"), "exchanges": [{"request": None}]}), "exchange"),
        (json.dumps({**record("a"), "question": 3}), "question"),
        (json.dumps({**record("a"), "repeat": "x"}), "repeat"),
        (json.dumps({**record("a"), "history": [1]}), "history"),
        (json.dumps({**record("a"), "error": {}}), "error"),
        (json.dumps({**record("a"), "steps": [{"turn": 1}]}), "no run record"),
        (ungrounded("300"), "ungrounded number"),
        (ungrounded([7]), "ungrounded number"),
        (ungrounded([{"number": "300", "argument": "x"}]), "ungrounded number"),
        (json.dumps({**record("a"), "unknown": 1}), "no run record"),
        ("[" * 100_000 + "]" * 100_000, "too deeply"),
    ],
)
def test_bad_input_is_one_line_and_leaves_the_old_page(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    words: str,
) -> None:
    runs, out = tmp_path / "runs.jsonl", tmp_path / "report.html"
    if content is not None:
        runs.write_text(content, encoding="utf-8")
    out.write_text("the old page", encoding="utf-8")
    assert main(["report", str(runs), "-o", str(out)]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert words in said.err
    assert out.read_text(encoding="utf-8") == "the old page"
    assert {path.name for path in tmp_path.iterdir()} <= {"runs.jsonl", "report.html"}


def test_the_records_are_never_written_over(tmp_path: Path) -> None:
    runs = write(tmp_path / "runs.jsonl", record("a"))
    before = runs.read_bytes()
    assert main(["report", str(runs), "-o", str(runs)]) == 2
    assert runs.read_bytes() == before


ORDER = [
    "values",
    "tool_lists",
    "json_lines",
    "reading",
    "partings",
    "calls",
    "changes",
    "source",
    "cells",
    "question",
    "page",
    "draw",
    "__init__",
]


def test_each_file_is_short_and_knows_only_earlier_ones() -> None:
    folder = ROOT / "equivalence" / "report"
    assert {path.stem for path in folder.glob("*.py")} == set(ORDER)
    for number, name in enumerate(ORDER):
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        used = set(re.findall(r"from equivalence\.report\.(\w+) import", text))
        assert used <= set(ORDER[:number]), name
    for path in [*folder.glob("*.py"), *(folder / "web").iterdir()]:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 300, path


def test_report_imports_no_framework(tmp_path: Path) -> None:
    runs = write(tmp_path / "runs.jsonl", record("stage3"), record("stage4"))
    code = (
        "import sys; from equivalence.cli import main\n"
        f"main(['report', {str(runs)!r}, '-o', {str(tmp_path / 'page.html')!r}])\n"
        "found = {name.partition('.')[0] for name in sys.modules}\n"
        "heavy = {'langchain', 'langchain_core', 'langchain_openai', 'langgraph',"
        " 'openai', 'pydantic', 'rich'}\n"
        "assert not found & heavy, found & heavy"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


# ------------------------------------------------------------------------ in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages to look at: one with every divergence, one hostile, one all equal."""
    folder = tmp_path_factory.mktemp("pages")
    questions = [QUESTION, "Compute (25 + 15) * 8 / 4", "介绍一下你自己", "And now?"]
    equal = [record(n, q) for q in questions for n in ("stage1", "stage2", "stage3")]
    contents = {
        "different": [
            record("stage3"),
            *(changed(change.__name__, change) for change in DIVERGENCES),
            record("stage4"),
            invented(QUESTION, "300 * 100", "invented"),
        ],
        "hostile": hostile(),
        "equal": equal,
    }
    found = {}
    for name, records in contents.items():
        found[name] = folder / f"{name}.html"
        runs = write(folder / f"{name}.jsonl", *records)
        assert main(["report", str(runs), "-o", str(found[name])]) == 0
    return found


SIZES = {"desk": (1440, 1000), "tablet": (820, 1100), "phone": (375, 812)}

CONTRAST = """
(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const poor = new Set();
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || ["SCRIPT", "STYLE"].includes(e.tagName)) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.add(`${e.tagName} ${e.className} ${ratio.toFixed(2)}`);
  }
  return [...poor];
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["different", "hostile", "equal"])
def test_the_page_opens_from_disk_and_fits(
    browser: Browser, pages: dict[str, Path], name: str, size: str, dark: bool
) -> None:
    browser.resize(*SIZES[size], dark=dark)
    browser.open(pages[name])
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    width = browser.evaluate("document.documentElement.scrollWidth")
    assert width <= SIZES[size][0]
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", ground))) < 60) is dark
    assert browser.evaluate(CONTRAST) == []
    assert browser.requests() == [pages[name].as_uri()]
    assert browser.complaints() == []


def test_no_word_of_a_measure_breaks_in_print(
    browser: Browser, pages: dict[str, Path]
) -> None:
    lines = """[...document.querySelectorAll('.chip.measure')].map((chip) => {
      const word = document.createRange();
      const text = [...chip.childNodes].find((n) => n.data?.includes('measure'));
      const start = text.data.indexOf('measure');
      word.setStart(text, start);
      word.setEnd(text, start + 'measure'.length);
      return word.getClientRects().length;
    })"""
    browser.resize(1000, 700)
    browser.open(pages["different"])  # 19 columns
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.evaluate(lines) == [1, 1]
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")


def test_hostile_content_fires_nothing(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.resize(*SIZES["desk"])
    browser.open(pages["hostile"])
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for selector in ("a[href^='#q1']", "label:last-of-type", ".open-all", ".copy"):
        browser.click(selector)
    assert browser.evaluate("document.images.length + document.scripts.length") == 1
    assert browser.evaluate("document.querySelector('svg, iframe, object')") is None
    assert browser.evaluate("document.title").startswith("Of 2 comparisons")
    assert browser.requests() == [pages["hostile"].as_uri()]
    assert browser.complaints() == []


def test_requests_open_on_click_with_the_path_highlighted(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.resize(*SIZES["desk"])
    browser.open(pages["different"], "#q1-c2-r2")  # lost_result
    mark = "document.querySelector('#q1-c2-r2 mark')"
    assert browser.evaluate(f"{mark}.checkVisibility()") is False
    browser.click("#q1-c2-r2 .wire summary")
    assert browser.evaluate(f"{mark}.checkVisibility()") is True
    assert browser.evaluate(f"{mark}.textContent.trim()") == "[4]: (absent)"
    ground = f"getComputedStyle({mark}).backgroundColor"
    assert browser.evaluate(ground) != "rgba(0, 0, 0, 0)"


def test_the_whole_request_is_copied(browser: Browser, pages: dict[str, Path]) -> None:
    browser.resize(*SIZES["desk"])
    browser.open(pages["different"])
    wanted = record("stage3")["exchanges"][1]["request"]
    pane = "document.querySelectorAll('#q1-c{}-r2 .json')[0]"
    assert json.loads(browser.evaluate(f"jsonOf({pane.format(0)})")) == wanted
    lost_result(run := record("lost_result"))
    found = browser.evaluate(f"jsonOf({pane.format(2)})")
    assert json.loads(found) == run["exchanges"][1]["request"]


def test_the_switch_shows_one_column_beside_the_measure(
    browser: Browser, pages: dict[str, Path]
) -> None:
    shown = (
        "[...document.querySelectorAll('#q1 tbody tr:first-child td.col')]"
        ".filter(e => e.checkVisibility()).map(e => e.id)"
    )
    browser.resize(*SIZES["desk"])
    browser.open(pages["equal"])
    assert browser.evaluate(shown) == ["q1-c0-r1", "q1-c1-r1", "q1-c2-r1"]
    browser.click("#q1 label:nth-of-type(4)")
    assert browser.evaluate(shown) == ["q1-c0-r1", "q1-c2-r1"]
    browser.resize(*SIZES["phone"])
    assert browser.evaluate(shown) == ["q1-c2-r1"]
    body = "document.querySelector('#q1-c2-r1 .body').checkVisibility()"
    assert browser.evaluate(body) is True
    browser.click("#q1 label:first-of-type")
    assert browser.evaluate(body) is False  # "= same as stage1" says it all


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_verdict_jumps_to_its_place(
    browser: Browser, pages: dict[str, Path], size: str
) -> None:
    browser.resize(*SIZES[size])
    browser.open(pages["equal"])
    closed = "document.querySelector('#q4 .turns').open"
    assert browser.evaluate(closed) is False
    browser.click("a[href='#q4-c2-head']")
    assert browser.evaluate(closed) is True
    browser.open(pages["different"])
    browser.click("a[href='#q1-c14-r2']")
    place = browser.evaluate(
        "document.querySelector('#q1-c14-r2').getBoundingClientRect().toJSON()"
    )
    width, height = SIZES[size]
    assert 0 <= place["top"] < height
    assert 0 <= place["left"] < width


def test_it_is_all_there_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    browser.resize(*SIZES["desk"])
    browser.open(pages["equal"])
    where = (
        "(() => { const e = document.activeElement; return [e.tagName,"
        " (e.closest('[id]') || e).id, e.textContent.trim().slice(0, 30)] })()"
    )
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    browser.press("Tab")
    assert browser.evaluate(where)[2] == "Skip to the summary"
    visited, ringed = [], set()
    for _ in range(60):
        visited.append(tuple(browser.evaluate(where)))
        if visited[-1][0] != "INPUT":  # the ring of a radio is on its label
            ringed.add(browser.evaluate(outline))
        if visited[-1][0] == "SUMMARY" and visited[-1][2] == "Request":
            break
        browser.press("Tab")
    assert visited[-1][2] == "Request"
    assert ringed <= {"solid", "auto"}
    assert len(set(visited)) > 20
    order = browser.evaluate(
        "[...document.querySelectorAll('a, summary, button, input')].length"
    )
    assert order > len(visited)
    opened = "document.activeElement.parentElement.open"
    for key, expected in (("Enter", True), (" ", False)):
        browser.press(key)
        assert browser.evaluate(opened) is expected
    browser.evaluate("document.querySelector('#q1 .pick').focus()")
    browser.press("ArrowRight")
    picked = "document.querySelector('#q1 .pick:checked').value"
    assert browser.evaluate(picked) == "0"


def test_without_scripts_it_still_works(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.resize(*SIZES["desk"])
        browser.open(pages["different"], "#q1")
        browser.click("#q1-c0-r1 .wire summary")
        assert browser.evaluate("document.querySelector('#q1-c0-r1 .wire').open")
        browser.click("#q1 label:nth-of-type(3)")
        hidden = "document.querySelector('#q1-c2-r1').checkVisibility()"
        assert browser.evaluate(hidden) is False
        buttons = "[...document.querySelectorAll('button')].every(b => b.hidden)"
        assert browser.evaluate(buttons) is True
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
