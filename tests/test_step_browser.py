"""The page of `step` in a browser: by keyboard, beside another, on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from equivalence.cli import main
from tests.browser import SIZES, Window, chromium, window

__all__ = ["chromium", "window"]  # fixtures
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("step") / "step.html"
    words = ["step", "北京和上海今天哪个更暖和？", "-o", str(out)]
    for name in ("stage3", "stage1", "stage5"):
        words += ["--implementation", name]
    assert main(words) == 0
    return out


def light(page: Any, side: int = 0) -> str:
    return str(page.locator(f"#code-{side} .lit").text_content()).strip()


def test_by_keyboard_line_by_line_and_message_by_message(
    window: Window, path: Path
) -> None:
    page = window.open(path)
    assert light(page).endswith("settings = settings or load_settings()")
    page.keyboard.press("ArrowRight")
    assert light(page).endswith("tools = by_name(tools)")
    assert page.locator("#messages li").count() == 1
    page.keyboard.press("PageDown")
    assert "return model.invoke(" in light(page)
    assert page.locator("#messages li").count() == 3
    assert page.locator("#messages li.new").count() == 2  # system, assistant
    page.keyboard.press("End")
    assert light(page).endswith("return messages")
    assert light(page, 1).endswith("return messages")
    assert "The end: 上海更暖和" in page.locator("#told").text_content()
    assert (
        page.locator("#messages li").last.locator("span").get_attribute("lang") == "zh"
    )
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    assert light(page).endswith("settings = settings or load_settings()")
    page.locator("#on").focus()
    page.keyboard.press("Enter")
    assert light(page).endswith("tools = by_name(tools)")
    assert window.complaints == []
    assert window.requests == [path.as_uri()]


def test_two_sources_side_by_side_can_be_chosen(window: Window, path: Path) -> None:
    page = window.open(path)
    page.locator("#second").select_option(label="stage5")
    assert "stage5_text_react/agent.py" in page.locator("#title-1").text_content()
    page.locator("#second").select_option(label="nothing")
    assert not page.locator("#code-1").is_visible()
    page.locator("#first").select_option(label="stage5")
    page.keyboard.press("Escape")
    page.locator("#event").click()
    assert "Action: get_weather" in page.locator("#messages li").last.text_content()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_lit_lines_and_the_newest_message_are_in_sight(
    window: Window, path: Path, size: str, dark: bool
) -> None:
    window.resize(size, dark=dark)
    page = window.open(path)
    inside = (
        "(e) => { const a = e.getBoundingClientRect(),"
        " b = e.parentElement.getBoundingClientRect();"
        " return a.top >= b.top - 1 && a.bottom <= b.bottom + 1 && b.height > 60"
        " && b.bottom <= innerHeight }"
    )
    for _ in range(page.evaluate("timeline.length")):
        page.keyboard.press("ArrowRight")
        for side in (0, 1):
            assert page.locator(f"#code-{side} .lit").evaluate(inside)
    assert page.locator("#messages li.new").last.evaluate(inside)
    assert window.fits()
    assert page.locator("#on").is_visible()
