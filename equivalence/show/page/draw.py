"""The page as HTML: template, style and script, and the policy that fits them."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from equivalence.judge.compare import CAUSES, RULES
from equivalence.show.page.json_lines import blocks
from equivalence.show.page.page import VERDICT_SIGNS, Page
from equivalence.show.page.partings import CAUSE_SIGNS
from equivalence.show.page.tool_lists import tool_names
from equivalence.show.page.values import language, short, text, visible

WEB = Path(__file__).parent / "web"
STYLES = ("colours.css", "page.css")
DEEPEST = 24
"""The deepest indent of a line of JSON; what lies deeper is not indented further."""
COLUMN_REM = 18


def html(page: Page) -> str:
    """Return the page as one HTML document."""
    style = "".join((WEB / name).read_text(encoding="utf-8") for name in STYLES)
    style += "\n".join(_column_rules(max(len(q.columns) for q in page.questions)))
    script = (WEB / "page.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(WEB),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    return environment.get_template("page.jinja").render(
        page=page,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        causes=CAUSES,
        rules=RULES,
        cause_signs=CAUSE_SIGNS,
        verdict_signs=VERDICT_SIGNS,
        lang=_lang,
        short=short,
        text=text,
        tool_names=tool_names,
        blocks=blocks,
        deepest=DEEPEST,
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{b64encode(digest).decode('ascii')}"


def _finalize(value: Any) -> Any:
    """Every text that the template prints passes here before it is escaped."""
    return visible(value) if type(value) is str else value


def _lang(value: str) -> Markup:
    """The lang attribute for a text, nothing for Latin script."""
    found = language(value)
    return Markup(' lang="{}"').format(found) if found else Markup()


def _column_rules(columns: int) -> Iterator[str]:
    """The rules of the style that depend on how many columns there are: the switch
    shows one column beside the measure, or on a phone alone; and a table that fits in
    the window needs no scrolling of its own, so that its head sticks to the window."""
    for index in range(columns):
        picked = f'.question:has(.pick[value="{index}"]:checked)'
        hide = "{display:none}"
        yield f"{picked} :is(.col:not(.c0,.c{index}),.parted:not(.p{index})){hide}"
        yield f"@media (max-width:47.99rem){{{picked} .col:not(.c{index}){hide}}}"
        table, width = f".n{index + 1}", (index + 1) * COLUMN_REM + 4
        yield f"@media (min-width:48rem){{{table} .compare{{min-width:{width}rem}}}}"
        free = "{overflow:visible;max-height:none}"
        yield f"@media (min-width:{width + 5}rem){{{table} .scroller{free}}}"
    for depth in range(DEEPEST + 1):
        indent = f"{{padding-left:{2 * depth + 2}ch;text-indent:-{2 * depth + 2}ch}}"
        yield f".d{depth}{indent}"
