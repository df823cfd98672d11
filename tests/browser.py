"""The system's chromium, driven by playwright: apt-get install chromium fonts-noto-cjk.

Where one of the two is missing the tests are skipped by name; where CI=true they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SIZES = {"desk": (1440, 1000), "tablet": (820, 1100), "phone": (375, 812)}


class Window:
    """One page of a browser, and what it asked for and complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: self.complaints.append(line.text))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def open(self, path: Path, fragment: str = "") -> Any:
        """Open a file from disk; return the page."""
        self.page.goto("about:blank")  # a new fragment alone would not load anything
        self.requests.clear()
        self.complaints.clear()
        self.page.goto(path.resolve().as_uri() + fragment)
        return self.page

    def resize(self, size: str, *, dark: bool = False) -> None:
        """Set the size of the window and the colours that the reader prefers."""
        width, height = SIZES[size]
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if dark else "light")

    def fits(self) -> bool:
        """Whether nothing of the page stands out of the window."""
        inside = "document.documentElement.scrollWidth <= window.innerWidth"
        return bool(self.page.evaluate(inside))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed: pip install -r requirements.txt")
    if not CHROMIUM:
        missing("chromium is not installed: apt-get install chromium")
    with sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


def missing(what: str) -> None:
    """Skip the test, or fail where nothing may be missing."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture
def window(chromium: Any) -> Iterator[Window]:
    """A window of the browser."""
    page = chromium.new_page()
    yield Window(page)
    page.close()
