"""README and docs/: what they show is what the code does, their links lead somewhere.

Code, output and numbers in the pages are made by cog; a page that would be made
otherwise now is out of date, and `make docs` brings it up to date.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest

from config import Settings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
GENERATED = re.compile(r"<!-- \[\[\[cog.*?<!-- \[\[\[end\]\]\] -->", re.DOTALL)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)

every_page = pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """The page as it is read: without the code and what stands in fences."""
    text = re.sub(r"<!--.*?-->", "", text_of(page), flags=re.DOTALL)
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))


def links(page: Path) -> Iterator[str]:
    text = FENCE.sub("", re.sub(r"<!--.*?-->", "", text_of(page), flags=re.DOTALL))
    return (match[1] for match in LINK.finditer(text))


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    found: set[str] = set()
    for title in HEADING.findall(FENCE.sub("", text_of(page))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (numbered := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(numbered)
    return found


def other_versions() -> str:
    """What is installed in other versions than requirements.txt says, or ""."""
    wanted = re.findall(r"^(lang[\w-]+|openai)==(\S+)", text_of_requirements(), re.M)
    return ", ".join(
        f"{name} {version(name)}" for name, number in wanted if version(name) != number
    )


def text_of_requirements() -> str:
    return (ROOT / "requirements.txt").read_text(encoding="utf-8")


def cog(*pages: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "--diff", "-I", ".", "-U", *pages],
        cwd=DOCS,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="session")
def checks() -> Iterator[dict[Path, Future[subprocess.CompletedProcess[str]]]]:
    """The check of each page, two at a time; the longest first."""
    pages = [page for page in PAGES if "[[[cog" in text_of(page)]
    pages.sort(key=lambda page: page.stem != "differences")
    with ThreadPoolExecutor(2) as pool:
        yield {page: pool.submit(cog, page) for page in pages}


@every_page
def test_a_page_says_what_the_code_does(
    page: Path, request: pytest.FixtureRequest
) -> None:
    if "[[[cog" not in text_of(page):
        return
    if others := other_versions():
        pytest.skip(f"the pages show requirements.txt; installed is {others}")
    if os.name == "nt":
        pytest.skip("the pages show a POSIX shell")
    done = request.getfixturevalue("checks")[page].result()
    assert done.returncode == 0, (
        f"{page.name} is out of date: run make docs\n{done.stdout}\n{done.stderr}"
    )


@pytest.mark.parametrize(
    ("block", "shown", "code"),
    [
        ('cog.outl(str(blocks.lines_of_code("chat.py") * 0))', "0", 0),
        ('cog.outl(str(blocks.lines_of_code("chat.py") * 0))', "1", 5),
        ('blocks.code("tools.py", "no_such_function")', "", 4),
        ('blocks.console("python -c pass", exit_code=1)', "", 4),
    ],
)
def test_a_page_that_says_otherwise_is_noticed(
    tmp_path: Path, block: str, shown: str, code: int
) -> None:
    pytest.importorskip("cogapp")  # not among the articles' versions
    page = tmp_path / "page.md"
    page.write_text(
        f"<!-- [[[cog\nimport blocks\n{block}\n]]] -->\n{shown}\n<!-- [[[end]]] -->\n",
        encoding="utf-8",
    )
    assert cog(page).returncode == code


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link} is not there"
        assert target.is_relative_to(ROOT), f"{page.name}: {link} leaves the project"
        if lines := re.fullmatch(r"L(\d+)(?:-L(\d+))?", anchor):
            last = len(target.read_text(encoding="utf-8").splitlines())
            assert int(lines[2] or lines[1]) <= last, f"{page.name}: {link}"
        elif anchor:
            assert anchor in anchors(target), f"{page.name}: no heading for {link}"


@every_page
def test_code_and_output_are_not_typed_by_hand(page: Path) -> None:
    by_hand = GENERATED.sub("", text_of(page))
    if page == ROOT / "README.md":  # the two commands that .ci/run takes from here
        assert by_hand.count("```console") == 1
        by_hand = by_hand.replace("```console\n$ make demo\n$ make test\n```", "")
    languages = {match[1] for match in FENCE.finditer(by_hand)}
    assert languages <= {"text", "mermaid", "dotenv"}


@every_page
def test_settings_in_the_pages_can_be_loaded(page: Path, tmp_path: Path) -> None:
    for number, match in enumerate(FENCE.finditer(text_of(page))):
        if match[1] != "dotenv":
            continue
        file = tmp_path / f"{number}.env"
        file.write_text(match[2], encoding="utf-8")
        names = {line.partition("=")[0] for line in match[2].splitlines()}
        known = {f"LLM_{name.upper()}" for name in Settings.model_fields}
        assert names <= known, f"{page.name}: {names - known}"
        assert Settings(_env_file=file).model != "offline"


@every_page
def test_a_page_names_nothing_of_one_machine(page: Path) -> None:
    assert not re.search(r"/(home|root|tmp|work|Users)/", text_of(page))


def test_the_index_has_every_page() -> None:
    listed = {link.partition("#")[0] for link in links(DOCS / "README.md")}
    assert {page.name for page in DOCS.glob("*.md")} - listed == {"README.md"}
