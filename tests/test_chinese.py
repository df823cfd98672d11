"""The Chinese pages are in step with the English ones.

Their text is written anew, so it cannot be compared; what is around it can: headings,
cog blocks, links, tables, lists and what is typed by hand. A page that fell behind is
named with the heading. What the pages show is checked in test_docs.py, for both.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path

import pytest
from test_docs import (
    CHAPTERS,
    DOCS,
    FENCE,
    GENERATED,
    LINK,
    ROOT,
    anchors,
    cog,
    text_of,
)
from test_docs import ENGLISH as ENGLISH_PAGES

HAN = re.compile(r"[\u4e00-\u9fff]")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
BLOCK = re.compile(r"<!-- \[\[\[cog\n(.*?)\n\]\]\] -->", re.DOTALL)
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ", re.MULTILINE)
ROWS = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
TEXTS = ("say", "meanings", "exit_codes", "side_by_side", "plot", "table")
"""Blocks whose texts are of the page; the arguments of all others are equal."""


def twin(page: Path) -> Path:
    """Return the Chinese page, or picture, of an English one, which may not exist; a
    Chinese page is its own."""
    if page.parent in (DOCS / "zh", DOCS / "pictures" / "zh"):
        return page
    if page == ROOT / "README.zh-CN.md":
        return page
    if page == ROOT / "README.md":
        return ROOT / "README.zh-CN.md"
    if page.parent == DOCS / "pictures":
        return DOCS / "pictures" / "zh" / page.name
    return DOCS / "zh" / page.name if page.parent == DOCS else page


BOTH = [page for page in ENGLISH_PAGES if twin(page).is_file()]
both = pytest.mark.parametrize("page", BOTH, ids=[page.stem for page in BOTH])
in_chinese = pytest.mark.parametrize(
    "page", [twin(page) for page in BOTH], ids=[page.stem for page in BOTH]
)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# ----------------------------------------------------------------------- structure


@dataclass
class Section:
    """What stands below one heading, as far as it is the same in every language."""

    title: str
    level: int
    blocks: list[ast.Module] = field(default_factory=list)
    links: Counter[str] = field(default_factory=Counter)
    tables: list[tuple[int, int]] = field(default_factory=list)
    items: int = 0
    typed: list[tuple[str, list[str]]] = field(default_factory=list)


def sections(page: Path, text: str) -> Iterator[Section]:
    """Yield the sections of a page; the first one is what stands above its title."""
    switch, _, rest = text.partition("\n")
    text = rest if "简体中文" in switch else text
    inside = [
        range(*m.span()) for pattern in (FENCE, COMMENT) for m in pattern.finditer(text)
    ]
    heads = [
        match
        for match in re.finditer(r"^(#{1,6}) +(.+?) *$", text, re.MULTILINE)
        if not any(match.start() in each for each in inside)
    ]
    ends = [*(match.start() for match in heads), len(text)]
    parts = [
        text[: ends[0]],
        *(text[a:b] for a, b in pairwise(ends)),
    ]
    titles = [("the top", 0), *((match[2], len(match[1])) for match in heads)]
    for (title, level), part in zip(titles, parts, strict=True):
        section = Section(title, level)
        section.blocks = [ast.parse(match[1]) for match in BLOCK.finditer(part)]
        plain = FENCE.sub("", COMMENT.sub("", part))
        section.links = Counter(target(page, m[1]) for m in LINK.finditer(plain))
        for rows in ROWS.findall(plain):
            lines = rows.splitlines()
            section.tables.append((lines[0].count("|"), len(lines)))
        section.items = len(ITEM.findall(plain))
        by_hand = GENERATED.sub("", part)
        section.typed = [(m[1], m[2].splitlines()) for m in FENCE.finditer(by_hand)]
        yield section


def target(page: Path, link: str) -> str:
    """Say where a link leads in a way that is the same in both languages: the path of
    the English page, and the number of the heading in it."""
    if re.match(r"https?:", link):
        return link
    path, _, anchor = link.partition("#")
    file = (page.parent / path).resolve() if path else page
    if anchor and file.suffix == ".md":
        anchor = heading(file, anchor)
    if page == twin(page) and file != twin(file) and twin(file).is_file():
        return f"the English {name(file)}"
    if file.parent in (DOCS / "zh", DOCS / "pictures" / "zh"):
        file = file.parent.parent / file.name
    if file == ROOT / "README.zh-CN.md":
        file = ROOT / "README.md"
    return f"{file.relative_to(ROOT)}{anchor and '#'}{anchor}"


def heading(file: Path, anchor: str) -> str:
    """Name a heading of a page: by its title where both languages have that, in
    whatever order, else by its number among those that have not."""
    own, other = list(anchors(file)), anchors(of_the_other_language(file))
    if anchor in other or anchor not in own:
        return anchor
    return f"heading {[each for each in own if each not in other].index(anchor)}"


def of_the_other_language(file: Path) -> Path:
    if file != twin(file):
        return twin(file) if twin(file).is_file() else file
    return ROOT / "README.md" if file.parent == ROOT else file.parent.parent / file.name


def parting(english: Section, chinese: Section) -> Iterator[str]:
    """Yield what one section has and the other has not."""
    if len(english.blocks) != len(chinese.blocks):
        yield f"{len(chinese.blocks)} cog blocks, not {len(english.blocks)}"
    for left, right in zip(english.blocks, chinese.blocks, strict=False):
        if not same(left, right):
            yield f"the block is now\n{ast.unparse(left)}\nnot\n{ast.unparse(right)}"
    for sign, missing in (
        ("no link to", english.links - chinese.links),
        ("a link too many to", chinese.links - english.links),
    ):
        yield from (f"{sign} {link}" for link in missing)
    if english.tables != chinese.tables:
        yield f"tables (bars, lines) {chinese.tables}, not {english.tables}"
    if english.items != chinese.items:
        yield f"{chinese.items} items in lists, not {english.items}"
    for one, other in zip_longest(english.typed, chinese.typed):
        if not same_text_block(one, other):
            yield f"typed by hand: {other and other[1]}, not {one and one[1]}"


def same(left: object, right: object, *, words: bool = False) -> bool:
    """Whether two pieces of a block are equal, but for texts where `words` may differ:
    there is Chinese in place of English, in which nothing but the language changed."""
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return left.value == right.value or (
            words and same_words(left.value, right.value)
        )
    if isinstance(left, ast.JoinedStr) and isinstance(right, ast.JoinedStr) and words:
        values = [
            sorted(ast.dump(x) for x in text.values if not isinstance(x, ast.Constant))
            for text in (left, right)
        ]
        return values[0] == values[1]
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            same(a, b, words=words) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, ast.keyword) and left.arg == "without":
        words = True  # a line of the output
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute):
        words = words or left.func.attr in TEXTS
    if isinstance(left, ast.AST):
        return all(
            same(getattr(left, part, None), getattr(right, part, None), words=words)
            for part in left._fields
        )
    return left == right


def same_words(english: object, chinese: object) -> bool:
    if not (isinstance(english, str) and isinstance(chinese, str)):
        return False
    return bool(HAN.search(chinese)) and all(
        sorted(pattern.findall(english)) == sorted(pattern.findall(chinese))
        for pattern in (
            re.compile(r"\]\((?![^)#]+\.md)[^)]*\)"),
            re.compile(r"^\|", re.MULTILINE),
        )
    )


def same_text_block(
    english: tuple[str, list[str]] | None, chinese: tuple[str, list[str]] | None
) -> bool:
    """Whether what is typed by hand is equal, but for lines that are Chinese now."""
    if not english or not chinese or english[0] != chinese[0]:
        return False
    if english[0] == "mermaid":
        return len(english[1]) == len(chinese[1])
    return len(english[1]) == len(chinese[1]) and all(
        left == right or (HAN.search(right) and not HAN.search(left))
        for left, right in zip(english[1], chinese[1], strict=True)
    )


def behind(page: Path, english: str, chinese: str) -> Iterator[str]:
    """Yield what must be done to the Chinese page, with the heading; `page` is where
    the English text stands."""
    left, right = list(sections(page, english)), list(sections(twin(page), chinese))
    right = in_order_of(left, right)
    for number, (one, other) in enumerate(zip_longest(left, right)):
        if one is None or other is None or one.level != other.level:
            here = one.title if one else "no heading"
            there = other.title if other else "no heading"
            yield f"heading {number}: “{here}” there, “{there}” here"
            return
        for what in parting(one, other):
            yield f"at “{one.title}” ({other.title}): {what}"


def in_order_of(left: list[Section], right: list[Section]) -> list[Section]:
    """Put those with the same title in both languages where they stand in English: a
    Chinese page may begin with other servers."""
    alike = {each.title: each for each in right if each.level}
    alike = {each.title: alike[each.title] for each in left if each.title in alike}
    rest = iter([each for each in right if alike.get(each.title) is not each])
    ordered = [alike.get(each.title) or next(rest, None) for each in left]
    return [*filter(None, ordered), *rest]


@pytest.mark.slow
@both
def test_a_chinese_page_is_not_behind_its_english_one(page: Path) -> None:
    found = "\n".join(behind(page, text_of(page), text_of(twin(page))))
    assert not found, f"{name(twin(page))} is behind {name(page)}\n{found}"


ENGLISH = """\
[Index](README.md) | x

# Title

Some [words](glossary.md) and [more](glossary.md#glossary).

## vLLM

## Ollama

## Part

<!-- [[[cog
import blocks
blocks.console("python -m x", tail=3)
blocks.meanings("a.py", "B", ("word", "what it is"))
]]] -->
made
<!-- [[[end]]] -->

| a | b |
| --- | --- |
| 1 | 2 |

- one
- two

```text
python -m y   # a remark
```
"""
CHINESE = """\
[目录](README.md) | x

# 标题

一些[词](glossary.md)，[更多](glossary.md#术语表)。

## Ollama

## vLLM

## 部分

<!-- [[[cog
import blocks
blocks.console("python -m x", tail=3)
blocks.meanings("a.py", "B", ("词", "说明"))
]]] -->
生成
<!-- [[[end]]] -->

| 甲 | 乙 |
| --- | --- |
| 1 | 2 |

- 一
- 二

```text
python -m y   # 注释
```
"""


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("", "", ""),
        ("## 部分", "### 部分", "heading 4: “Part” there"),
        ("## 部分", "部分", "heading 4: “Part” there, “no heading”"),
        ("## vLLM", "## LM Studio", ""),  # by its place
        ("## vLLM", "# vLLM", "heading 2: “vLLM” there, “vLLM” here"),
        ("tail=3", "tail=4", "at “Part” (部分): the block is now"),
        ("python -m x", "python -m 甲", "at “Part” (部分): the block is now"),
        ('"说明"', '"what"', "at “Part” (部分): the block is now"),
        ("[词](glossary.md)", "词", "at “Title” (标题): no link to docs/glossary.md"),
        ("[词](glossary.md)", "[词](traces.md)", "a link too many to docs/traces.md"),
        ("#术语表)", "#判定)", "no link to docs/glossary.md#heading 0"),
        ("| 1 | 2 |\n", "", "tables (bars, lines) [(3, 2)], not [(3, 3)]"),
        ("| 1 | 2 |", "| 1 |", ""),  # Markdown takes it, too
        ("- 二\n", "", "1 items in lists, not 2"),
        ("python -m y ", "python -m z ", ""),  # there is Chinese in the line
        ("python -m y   # 注释", "python -m y", "typed by hand"),
    ],
)
def test_what_a_page_lacks_is_named_with_its_heading(
    old: str, new: str, what: str
) -> None:
    changed = CHINESE.replace(old, new, 1)
    found = "\n".join(behind(DOCS / "glossary.md", ENGLISH, changed))
    assert (what in found) if what else not found


# --------------------------------------------------------------- how it is written


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are written, with their numbers, less code and links."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    text = FENCE.sub(blank, GENERATED.sub(blank, text_of(page)))
    text = COMMENT.sub(blank, text)
    for number, line in enumerate(text.splitlines(), 1):
        yield number, re.sub(r"\]\([^)]*\)", "]", line)


@in_chinese
def test_chinese_is_set_as_chinese(page: Path) -> None:
    wrong = [
        f"{name(page)}:{number}: {line}"
        for number, line in prose(page)
        if re.search(r"[\u4e00-\u9fff][A-Za-z0-9`]|[A-Za-z0-9`][\u4e00-\u9fff]", line)
        or re.search(r"[\u4e00-\u9fff][,;:?!]|[，。；：？！] (?!\|)", line)
    ]
    assert not wrong, "\n".join(wrong)


@in_chinese
def test_a_paragraph_is_one_line(page: Path) -> None:
    """A browser shows the end of a line as a blank, which Chinese does not have."""
    begins = re.compile(r" *([-*|>#<!]|\d+\.|<)")
    lines = dict(prose(page))
    wrong = [
        f"{name(page)}:{number}: {line}"
        for number, line in lines.items()
        if line.strip() and not begins.match(line) and lines.get(number - 1, "").strip()
    ]
    assert not wrong, "\n".join(wrong)


@in_chinese
def test_no_star_is_left_in_the_text(page: Path) -> None:
    """Markdown does not end what is bold between a full stop and a Chinese letter."""
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    markdown.enable("table")
    texts = [
        piece.content
        for token in markdown.parse(text_of(page))
        for piece in token.children or ()
        if piece.type == "text"
    ]
    assert len(texts) > 20
    assert not [text for text in texts if re.search(r"\*\*|\*\S|\S\*", text)]


# ------------------------------------------------------------------------- switches


@both
def test_each_language_leads_to_the_other(page: Path) -> None:
    here, there = (
        text_of(page).partition("\n")[0],
        text_of(twin(page)).partition("\n")[0],
    )
    to_chinese = twin(page).relative_to(page.parent).as_posix()
    assert f"[简体中文]({to_chinese})" in here
    back = page.name if page.parent == twin(page).parent else f"../{page.name}"
    assert f"[English]({back})" in there


def test_what_a_chinese_reader_needs_is_there() -> None:
    names = ["README.md", "glossary.md", "equivalence.md", "differences.md"]
    names += ["running-the-tests.md", "diffing-traces.md", "your-own-agent.md"]
    names += ["endpoints.md", "commands.md", *(page.name for page in CHAPTERS)]
    pages = [ROOT / "README.md", *(DOCS / each for each in names)]
    missing = [name(twin(page)) for page in pages if page not in BOTH]
    assert not missing


@in_chinese
def test_a_link_to_an_english_page_says_so(page: Path) -> None:
    wrong = []
    for number, line in enumerate(text_of(page).splitlines()[1:], 2):
        for words, link in re.findall(
            r"\[([^\[\]]+)\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", line
        ):
            to = (page.parent / link).resolve()
            chinese = to.parent == DOCS / "zh" or to.stem.endswith(".zh-CN")
            if ("（英文）" in words) == chinese:
                wrong.append(f"{name(page)}:{number}: [{words}]({link})")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "code"), [("nothing", 0), ("No such sentence.", 4)])
def test_a_sentence_without_chinese_is_noticed(
    tmp_path: Path, text: str, code: int
) -> None:
    page = tmp_path / "zh" / "page.md"
    page.parent.mkdir()
    block = f"from blocks.page import said\nsaid({text!r})"
    page.write_text(
        f"<!-- [[[cog\n{block}\n]]] -->\n<!-- [[[end]]] -->\n", encoding="utf-8"
    )
    assert cog(page)[0] == code
