"""The report page in a browser: narrow, dark, by keyboard, hostile, without scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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
from tests.browser import SIZES, Window, chromium, window

__all__ = ["chromium", "window"]  # fixtures
pytestmark = pytest.mark.slow


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


OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"
LOST_RESULT = f"#q1-t2-c{1 + list(DIVERGENCES).index(lost_result)}"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["different", "hostile", "equal"])
def test_the_page_opens_from_disk_and_fits(
    window: Window, pages: dict[str, Path], name: str, size: str, dark: bool
) -> None:
    window.resize(size, dark=dark)
    page = window.open(pages[name])
    page.evaluate(OPEN_ALL)
    assert window.fits()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", ground))) < 60) is dark
    assert page.evaluate(CONTRAST) == []
    assert window.requests == [pages[name].as_uri()]
    assert window.complaints == []


def test_hostile_content_fires_nothing(window: Window, pages: dict[str, Path]) -> None:
    page = window.open(pages["hostile"])
    page.evaluate(OPEN_ALL)
    for selector in ("a[href^='#q1']", ".open-all", ".copy"):
        page.locator(selector).first.click()
    assert page.evaluate("document.images.length + document.scripts.length") == 1
    assert page.locator("svg, iframe, object").count() == 0
    assert page.title() == "2 of 2 comparisons differ"
    assert window.requests == [pages["hostile"].as_uri()]
    assert [line for line in window.complaints if "fired" in line] == []


def test_requests_open_on_click_with_the_path_highlighted(
    window: Window, pages: dict[str, Path]
) -> None:
    page = window.open(pages["different"], LOST_RESULT)
    mark = page.locator(f"{LOST_RESULT} mark")
    assert not mark.is_visible()
    page.locator(f"{LOST_RESULT} .wire summary").first.click()
    assert mark.is_visible()
    assert mark.text_content().strip() == "[4]: (absent)"
    ground = mark.evaluate("e => getComputedStyle(e).backgroundColor")
    assert ground != "rgba(0, 0, 0, 0)"


def copied(page: Any, card: str) -> Any:
    """The request of a card as its button copies it."""
    return json.loads(
        page.evaluate(f"jsonOf(document.querySelector('{card} .wire .json'))")
    )


def test_the_whole_request_is_copied(window: Window, pages: dict[str, Path]) -> None:
    page = window.open(pages["different"])
    assert page.locator("#q1-t2-c0 a[data-fold]").count() == 2  # tools and messages
    assert copied(page, "#q1-t2-c0") == record("x")["exchanges"][1]["request"]
    lost_result(run := record("lost_result"))
    assert copied(page, LOST_RESULT) == run["exchanges"][1]["request"]


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_link_opens_its_place_and_shows_it(
    window: Window, pages: dict[str, Path], size: str
) -> None:
    window.resize(size)
    page = window.open(pages["equal"], "#q4-t2-c0")
    assert page.locator("#q4").evaluate("e => e.open")
    assert not page.locator("#q3").evaluate("e => e.open")
    page = window.open(pages["different"])
    first = page.locator("aside a").last
    target = page.locator(first.get_attribute("href"))
    first.click()
    page.wait_for_function(
        "e => { const at = e.getBoundingClientRect().top;"
        " return at >= -1 && at < innerHeight }",
        arg=target.element_handle(),
    )


def test_it_is_all_there_by_keyboard(window: Window, pages: dict[str, Path]) -> None:
    page = window.open(pages["different"])
    where = (
        "(() => { const e = document.activeElement; return [e.tagName,"
        " (e.closest('[id]') || e).id, e.textContent.trim().slice(0, 30)] })()"
    )
    page.keyboard.press("Tab")
    assert page.evaluate(where)[2] == "Skip to the questions"
    visited, ringed = [], set()
    while len(visited) < 80:
        visited.append(tuple(page.evaluate(where)))
        ringed.add(
            page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        )
        if visited[-1][0] == "SUMMARY" and visited[-1][2] == "Request":
            break
        page.keyboard.press("Tab")
    assert visited[-1][2] == "Request"
    assert ringed <= {"solid", "auto"}
    assert len(visited) > len(DIVERGENCES)  # one link to each difference
    opened = "document.activeElement.parentElement.open"
    for key, expected in (("Enter", True), (" ", False)):
        page.keyboard.press(key)
        assert page.evaluate(opened) is expected


def test_without_scripts_it_still_works(chromium: Any, pages: dict[str, Path]) -> None:
    page = chromium.new_page(java_script_enabled=False)
    page.goto(pages["different"].as_uri() + "#q1")
    summary = page.locator("#q1-t1-c0 .wire summary").first
    summary.click()
    assert page.locator("#q1-t1-c0 .wire .json").first.is_visible()
    assert not any(button.is_visible() for button in page.locator("button").all())
    page.close()


def test_two_thousand_questions_open_at_once(window: Window, tmp_path: Path) -> None:
    runs = []
    for number in range(2000):
        runs += [record(name, f"{QUESTION} {number}") for name in "ab"]
        if number % 100 == 3:
            runs[-1]["exchanges"][0]["request"]["top_p"] = 1
    out = tmp_path / "page.html"
    path = str(write(tmp_path / "runs.jsonl", *runs))
    assert main(["report", path, "-o", str(out)]) == 0
    window.page.set_default_timeout(5000)  # it takes less than one second
    page = window.open(out)
    assert page.locator("aside").count() == 20
    assert page.locator(".one").count() == 1980
    assert not page.locator(".one").first.is_visible()
    page.locator("a[href='#equal']").click()
    assert page.locator(".one").first.is_visible()
    assert page.locator("nav + main > .question").count() == 20
    assert page.locator("aside").first.is_visible()
