"""README and docs/: what they show is what the code does, their links lead somewhere.

Code, output and numbers in the pages are made by cog; a page that would be made
differently now is out of date, and `make docs` brings it up to date. Running the pages
and drawing their diagrams is in the slow lane; their structure is not.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from equivalence.cost.lines import code_lines, stage_lines
from exercises.exercise import EXERCISES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ENGLISH = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
CHINESE = [*ROOT.glob("README.zh-CN.md"), *sorted((DOCS / "zh").glob("*.md"))]
PAGES = [*ENGLISH, *CHINESE]
CHAPTERS = sorted(DOCS.glob("[0-9]-*.md"))
GENERATED = re.compile(r"<!-- \[\[\[cog.*?<!-- \[\[\[end\]\]\] -->", re.DOTALL)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
PART_OF_CHAPTER = ("Recap", "Questions", "Exercise")

every_page = pytest.mark.parametrize(
    "page",
    PAGES,
    ids=["zh-" * (page in CHINESE) + page.stem for page in PAGES],
)
every_chapter = pytest.mark.parametrize(
    "page", CHAPTERS, ids=[page.stem for page in CHAPTERS]
)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_code(page: Path) -> str:
    return FENCE.sub("", re.sub(r"<!--.*?-->", "", text_of(page), flags=re.DOTALL))


def links(page: Path) -> Iterator[str]:
    return (match[1] for match in LINK.finditer(without_code(page)))


def anchors(page: Path) -> dict[str, None]:
    """The anchors of the headings in their order, as GitHub makes them."""
    known: dict[str, None] = {}
    for title in HEADING.findall(FENCE.sub("", text_of(page))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (numbered := f"{anchor}-{number}" if number else anchor) in known:
            number += 1
        known[numbered] = None
    return known


# ------------------------------------------------------------ what the pages show


def other_versions() -> str:
    """What is installed in other versions than requirements.txt says, or ""."""
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    wanted = re.findall(r"^(lang[\w-]+|openai)==(\S+)", requirements, re.M)
    return ", ".join(
        f"{name} {version(name)}" for name, number in wanted if version(name) != number
    )


@functools.cache
def maker() -> Any:
    """One for all pages: the blocks write to the first that there is."""
    return pytest.importorskip("cogapp").Cog()  # not among the articles' versions


def cog(page: Path) -> tuple[int, str]:
    """Check a page as `make docs` makes it; return cog's exit code and its words. In
    this process: the pages share what is imported and what is drawn."""
    tool, printed = maker(), io.StringIO()
    tool.options, tool.check_failed = type(tool.options)(), False
    tool.set_output(stdout=printed, stderr=printed)
    os.environ["PAGES_CHECK"] = "1"
    try:
        with contextlib.chdir(DOCS):
            options = ["--check", "--diff", "-I", str(DOCS), "-U"]
            code = tool.main(["cog", *options, str(page)])
    finally:
        del os.environ["PAGES_CHECK"]
        os.environ["LLM_LANG"] = "en"  # the page may have been Chinese
    return code, printed.getvalue()


@pytest.mark.slow
@every_page
def test_a_page_says_what_the_code_does(page: Path) -> None:
    if "[[[cog" not in text_of(page):
        return
    if others := other_versions():
        pytest.skip(f"the pages show requirements.txt; installed is {others}")
    if os.name == "nt":
        pytest.skip("the pages show a POSIX shell")
    code, printed = cog(page)
    assert code == 0, f"{page.name} is out of date: run make docs\n{printed}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "shown", "code"),
    [
        ('cog.outl(str(blocks.lines_of_code("chat.py") * 0))', "0", 0),
        ('cog.outl(str(blocks.lines_of_code("chat.py") * 0))', "1", 5),
        ('blocks.code("tools.py", "no_such_function")', "", 4),
        ('blocks.say("[x](tools.py#get_weather « no such line »)")', "", 4),
        ('blocks.console("python -m exercises list", exit_code=1)', "", 4),
        (
            '__import__("blocks.pictures").pictures.show("fault.svg", "", "<svg/>")',
            "",
            4,
        ),
    ],
)
def test_a_page_that_says_otherwise_is_noticed(
    tmp_path: Path, block: str, shown: str, code: int
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"<!-- [[[cog\nimport blocks\n{block}\n]]] -->\n{shown}\n<!-- [[[end]]] -->\n",
        encoding="utf-8",
    )
    assert cog(page)[0] == code


def test_lines_of_code_are_neither_blank_nor_comment_nor_docstring() -> None:
    text = (
        '"""What it is."""\n\n# why\nx = 1  # how\n\n\n'
        'def f():\n    """Say."""\n    return """a\nb"""\n'
    )
    assert code_lines(text) == 4


def test_a_stage_is_all_of_its_files(tmp_path: Path) -> None:
    for name in ("__init__.py", "__main__.py", "agent.py", "memory.py", "other.py"):
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    counted = stage_lines(tmp_path, without=("other.py",))
    assert counted == {"agent.py": 1, "memory.py": 1}


# ------------------------------------------------------------------------ diagrams

MERMAID = ROOT / ".venv-npm" / "mermaid.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRAW = """\
<meta charset="utf-8"><script src="{mermaid}"></script><body><script>
const diagrams = {diagrams};
mermaid.initialize({{startOnLoad: false}});
(async () => {{
  const said = [];
  for (const [name, text] of diagrams) {{
    try {{
      const picture = await mermaid.render("d" + said.length, text);
      said.push([name, picture.svg.length]);
    }} catch (error) {{ said.push([name, String(error)]); }}
  }}
  document.body.innerHTML = "";
  const said_ = document.createElement("pre");
  said_.textContent = "said" + JSON.stringify(said) + "end";
  document.body.append(said_);
}})();
</script>
"""


def missing(what: str) -> None:
    """Skip the test, or fail where nothing may be missing."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(what)
    pytest.skip(what)


def drawn(diagrams: list[tuple[str, str]], folder: Path) -> dict[str, int | str]:
    """Let mermaid draw the diagrams in a browser; return how long each picture is, or
    what was wrong with it."""
    if not MERMAID.is_file():
        missing("mermaid is not there: make .venv-npm/mermaid.min.js (needs npm)")
    if not CHROMIUM:
        missing("chromium is not installed: apt-get install chromium")
    page = folder / "draw.html"
    page.write_text(
        DRAW.format(mermaid=MERMAID.as_uri(), diagrams=json.dumps(diagrams)),
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=60000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    said = re.search(r"<pre>said(.*)end</pre>", done.stdout, re.DOTALL)
    assert said, done.stdout[-500:] + done.stderr[-500:]
    plain = said[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return dict(json.loads(plain))


@pytest.mark.slow
def test_mermaid_draws_every_diagram(tmp_path: Path) -> None:
    diagrams = [
        (f"{page.relative_to(ROOT)} {number}", match[2])
        for page in PAGES
        for number, match in enumerate(FENCE.finditer(text_of(page)))
        if match[1] == "mermaid"
    ]
    assert len(diagrams) >= 6
    wrong = ("a word of mermaid's", "flowchart TD\n  a --> call[x]\n  call --> b\n")
    lengths = drawn([*diagrams, wrong], tmp_path)
    assert isinstance(lengths.pop(wrong[0]), str), "what is wrong must be noticed"
    failed = {name: said for name, said in lengths.items() if isinstance(said, str)}
    assert not failed
    assert len(lengths) == len(diagrams)


# ----------------------------------------------------------------------- structure


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
    if page.parent == ROOT:  # the two commands that .ci/run takes from here
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


def test_no_chapter_draws_boxes_that_are_crooked_in_a_browser() -> None:
    for page in PAGES:
        if page.parent != ROOT and not page.name[0].isdigit():
            continue
        for match in FENCE.finditer(text_of(page)):
            assert not re.search("[┏┃│]", match[2]), page.name


@pytest.mark.parametrize("index", [DOCS / "README.md", *DOCS.glob("zh/README.md")])
def test_the_index_has_every_page(index: Path) -> None:
    listed = {
        (index.parent / link.partition("#")[0]).resolve() for link in links(index)
    }
    known = {index.parent / page.name for page in DOCS.glob("*.md")}
    known = {page if page.is_file() else DOCS / page.name for page in known}
    assert known - listed == {index}


@every_chapter
def test_a_chapter_has_what_every_chapter_has(page: Path) -> None:
    text = without_code(page)
    assert "**After this chapter you can**" in text
    blocks = re.findall(r"^blocks\.(\w+)\(", text_of(page), re.MULTILINE)
    assert "code" in blocks
    assert {"console", "comparison", "python"} & {*blocks}
    # A reader is asked to explain a run before the page does.
    assert re.search(r"[Bb]efore\s+you (?:read on|look)", text)
    assert re.search(r"^Next: \[|^## Where to go next$", text, re.MULTILINE)
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [title for title in titles if title in PART_OF_CHAPTER] == [*PART_OF_CHAPTER]
    questions = text.partition("\n## Questions\n")[2].partition("\n## ")[0]
    asked, _, answers = questions.partition("<details>")
    numbered = re.compile(r"^\d\. ", re.MULTILINE)
    assert 2 <= len(numbered.findall(asked)) == len(numbered.findall(answers))


def test_the_chapters_lead_from_one_to_the_next() -> None:
    assert len(CHAPTERS) == 6
    for earlier, later in pairwise(CHAPTERS):
        assert f"next: [{later.stem[0]}. " in text_of(earlier).partition("\n# ")[0]
        assert f"]({later.name})" in text_of(earlier).partition("\n# ")[0]
        assert f"]({earlier.name}) · " in text_of(later).partition("\n# ")[0]


def test_every_exercise_stands_in_its_chapter() -> None:
    for each in EXERCISES:
        page = text_of(DOCS / f"{each.chapter}.md")
        assert f"**{each.number} " in page.partition("\n## Exercise")[2], each.name
