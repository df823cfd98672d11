"""The report page in a browser: narrow, dark, by keyboard, hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_records import (
    DIVERGENCES,
    QUESTION,
    changed,
    hostile,
    invented,
    lost_result,
    record,
    write,
)

from equivalence.cli import main
from tests.browser import CHROMIUM, Browser


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
