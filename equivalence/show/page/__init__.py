"""Run records as one self-contained page: `python -m equivalence report`.

The page needs no server, no network and no script to be read. All that comes from a run
is text in it: the template escapes whatever it prints, and the page's own policy allows
nothing but its one style and its one script.

It is written in two passes, so that its size in memory does not grow with that of the
files: `index` finds where each run stands, then each question is read, judged, and
drawn at once (`question`, with `values` for values as text).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from equivalence.errors import UsageError
from equivalence.judge.compare import CAUSES, RULES, Judge
from equivalence.language import _, counted, language, ngettext
from equivalence.phrases import translated
from equivalence.runs.record import Run
from equivalence.runs.words import visible
from equivalence.show.page.index import Index, index
from equivalence.show.page.question import (
    CAUSE_SIGNS,
    Column,
    Question,
    ToolLists,
    grouped_verdicts,
    tool_names,
)
from equivalence.show.page.values import (
    DEEPEST,
    json_html,
    language_of,
    short,
)
from equivalence.table import Table

WEB = Path(__file__).parent / "web"
VERDICT_SIGNS = {
    "equivalent": "=",
    "accepted": "≃",
    "different": "≠",
    "inconclusive": "?",
    "indistinguishable": "≈",
}
FEW = 20
"""Up to so many questions, those that do not differ are drawn turn by turn too."""
MOST_WHOLE = 100
"""So many questions that differ are drawn turn by turn; of the others the first
difference is shown, so that a browser can still open the page."""


def write_report(
    paths: Sequence[Path],
    out: Path,
    table: Table | None = None,
    judge: Judge | None = None,
    *,
    whole: bool = False,
) -> str:
    """Write the page about the runs of the files; return one line about it. With
    `whole`, each question is drawn turn by turn, however many there are.

    Raises UsageError if a file cannot be read or holds no run, or `out` is one of them
    or no regular file, and OSError if it cannot be written. `out` is replaced at once,
    or not at all.
    """
    page = _Page(table or Table(), judge or Judge(), whole)
    with replacing(out, *paths) as file, closing(index(paths)) as found:
        page.write(found, file)
    words = _("{out}: {headline} ({scope})")
    return visible(words.format(out=out, headline=page.headline, scope=page.scope))


@dataclass(frozen=True)
class Source:
    """An implementation of the table that is on the page, and its file as it is now."""

    name: str
    about: str
    file: str
    code: str


class _Page:
    """What the page is made of, gathered as its questions are drawn."""

    def __init__(self, table: Table, judge: Judge, whole: bool) -> None:
        self.table = table
        self.judge = judge
        self.whole = whole
        self.tool_lists = ToolLists()
        self.counts: Counter[str] = Counter()
        self.baselines: dict[str, None] = {}
        self.implementations: dict[str, None] = {}
        self.drawn: Counter[str] = Counter()
        self.undrawn = 0
        """How many questions are not drawn turn by turn."""
        self.first_difference = ""
        self.headline = self.scope = ""

    def write(self, found: Index, file: IO[bytes]) -> None:
        """Write the page about the indexed runs."""
        style = web("colours.css") + web("page.css")
        for depth in range(DEEPEST + 1):
            by = f"{2 * depth + 2}ch"
            style += f".d{depth}{{padding-left:{by};text-indent:-{by}}}"
        script = web("page.js")
        environment = templates()
        with tempfile.TemporaryFile() as differing, tempfile.TemporaryFile() as others:
            self._draw(
                found, environment.get_template("question.jinja"), differing, others
            )
            self.headline, self.scope = _headline(self.counts), self._scope(found)
            pieces = environment.get_template("page.jinja").generate(
                page=self,
                differing=_pieces(differing),
                others=_pieces(others),
                **policy(style, script),
                causes=CAUSES,
                rules=RULES,
                sources=list(self._sources()),
                tool_names=tool_names,
                few=FEW,
                json_html=json_html,
            )
            for piece in pieces:
                file.write(piece.encode("utf-8", "backslashreplace"))

    def _draw(
        self,
        found: Index,
        template: Template,
        differing: IO[bytes],
        others: IO[bytes],
    ) -> None:
        """Judge and draw each question, into one file where it differs, else into the
        other one."""
        count = len(found.questions)
        for number, question in enumerate(found.questions, 1):
            columns = _judged(self.judge, list(found.runs(question)))
            verdicts = [c.verdict.verdict for c in columns if c.verdict]
            self.counts.update(verdicts)
            self.baselines.setdefault(columns[0].name)
            for column in columns:
                self.implementations.setdefault(column.run.implementation)
            kind = "equal" if verdicts else "alone"
            if set(verdicts) - {"equivalent", "accepted"}:
                kind = "differing"
                self.first_difference = self.first_difference or f"q{number}"
            self.drawn[kind] += 1
            most = MOST_WHOLE if kind == "differing" else (count <= FEW) * FEW
            drawn = self.whole or self.drawn[kind] <= most
            self.undrawn += not drawn
            html = template.render(
                q=self._question(number, columns) if drawn else None,
                verdicts=grouped_verdicts(columns),
                baseline=columns[0],
                number=number,
                count=count,
                kind=kind,
            )
            into = differing if kind == "differing" else others
            into.write(html.encode("utf-8", "backslashreplace"))

    def _question(self, number: int, columns: Sequence[Column]) -> Question:
        return Question(number, columns, self.tool_lists, self.judge.rules)

    def _scope(self, found: Index) -> str:
        asked = {key[:-1] for key in found.questions}
        tries = len({key[-1] for key in found.questions})
        words = [counted(len(asked), "{count} question", "{count} questions")]
        if tries > 1:
            words.append(_("{count} tries").format(count=tries))
        number = len(found.labels)
        words.append(
            counted(number, "{count} implementation", "{count} implementations")
        )
        words.append(_("baseline {names}").format(names=", ".join(self.baselines)))
        return _(", ").join(words)

    def _sources(self) -> Iterator[Source]:
        """The implementations of the table that are on the page; their files are read,
        not imported."""
        known = {**self.table.implementations, **self.table.variants}
        for name in self.implementations:
            if name in known:
                module = known[name].target.partition(":")[0]
                file, code = f"{module.replace('.', '/')}.py", ""
                try:
                    code = (self.table.folder / file).read_text(encoding="utf-8")
                except (OSError, ValueError):
                    file = ""
                yield Source(name, _(known[name].about), file, code)


def _judged(judge: Judge, runs: Sequence[tuple[str, Run]]) -> list[Column]:
    """The runs of one question, each but the first judged against that."""
    labelled = [replace(run, implementation=label) for label, run in runs]
    return [
        Column(label, run, judge(labelled[0], labelled[index]) if index else None)
        for index, (label, run) in enumerate(runs)
    ]


def _headline(counts: Counter[str]) -> str:
    """The verdicts on all comparisons in one sentence."""
    total, equal = counts.total(), counts["equivalent"]
    if not total:
        return _("One implementation, nothing to compare it with")
    if equal == total:
        return ngettext(
            "The comparison is equivalent",
            "All {count} comparisons are equivalent",
            total,
        ).format(count=total)
    words = []
    if different := counts["different"]:
        sentence = ngettext(
            "{count} of {total} comparisons differs",
            "{count} of {total} comparisons differ",
            different,
        )
        words.append(sentence.format(count=different, total=total))
    for name in ("inconclusive", "indistinguishable", "accepted"):
        if count := counts[name]:
            if words:
                sentence = ngettext(
                    "{count} is {verdict}", "{count} are {verdict}", count
                )
            else:
                sentence = ngettext(
                    "{count} of {total} comparisons is {verdict}",
                    "{count} of {total} comparisons are {verdict}",
                    count,
                )
            words.append(sentence.format(count=count, total=total, verdict=_(name)))
    return _(", ").join(words)


def _pieces(file: IO[bytes]) -> Iterator[Markup]:
    """What was drawn into a file."""
    file.seek(0)
    for line in file:
        yield Markup(line.decode("utf-8"))


def web(name: str) -> str:
    """Return a file of the page: its style, its script."""
    return (WEB / name).read_text(encoding="utf-8")


@cache
def templates() -> Environment:
    """Return the templates: what they print is made visible, then escaped."""
    environment = Environment(
        loader=FileSystemLoader(WEB),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.globals.update(
        lang=_lang,
        short=short,
        cause_signs=CAUSE_SIGNS,
        verdict_signs=VERDICT_SIGNS,
        _=_,
        ngettext=ngettext,
        translated=translated,
        page_language=language,
    )
    return environment


def policy(style: str, script: str) -> dict[str, str]:
    """Return the style and the script of a page, and the hashes by which its policy
    allows these two and nothing else."""
    return {
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }


@contextmanager
def replacing(out: Path, *inputs: Path) -> Iterator[IO[bytes]]:
    """Open a draft that takes the place of `out` when all went well. Raises UsageError
    if `out` is one of the inputs or no regular file."""
    if any(out.resolve() == path.resolve() for path in inputs):
        raise UsageError(_("{out} is one of the files to read").format(out=out))
    if out.is_symlink() or (out.exists() and not out.is_file()):
        raise UsageError(
            _("{out} is not a regular file, so it is not replaced").format(out=out)
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with draft.open("xb") as file:
            yield file
        os.replace(draft, out)
    except RecursionError:
        raise UsageError(_("a record is nested too deeply to be shown")) from None
    finally:
        draft.unlink(missing_ok=True)


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{b64encode(digest).decode('ascii')}"


def _finalize(value: Any) -> Any:
    """Every text that the template prints passes here before it is escaped."""
    return visible(value) if type(value) is str else value


def _lang(value: str) -> Markup:
    """The lang attribute for a text, nothing for Latin script."""
    found = language_of(value)
    return Markup(' lang="{}"').format(found) if found else Markup()
