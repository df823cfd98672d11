"""Run records as one self-contained page: `python -m equivalence report`.

The page needs no server, no network and no script to be read. All that comes from a run
is text in it: the template escapes whatever it prints, and the page's own policy allows
nothing but its one style and its one script.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from equivalence import record
from equivalence.compare import (
    CAUSES,
    RULES,
    Divergence,
    Verdict,
    explain,
    judge,
    reply,
    request,
)
from equivalence.hints import hint
from equivalence.implementations import LADDER, STOCK
from equivalence.record import STATUSES, Run, Step
from equivalence.report_json import (
    Block,
    Part,
    blocks,
    contrast,
    language,
    reply_path,
    short,
    text,
    tool_names,
    tools_of,
    visible,
)
from equivalence.trace import first_choice, text_of, tool_calls
from gateway.canonical import differences

ROOT = Path(__file__).parent.parent
PAGE = Path(__file__).parent / "report_page"

CAUSE_SIGNS = {"request": "↑", "reply": "↓", "tool": "ƒ", "control": "◇"}
VERDICT_SIGNS = {
    "equivalent": "=",
    "different": "≠",
    "inconclusive": "?",
    "indistinguishable": "≈",
}
MOST_DIFFERENCES = 6
DEEPEST = 24
COLUMN_REM = 18


def write_report(paths: Sequence[Path], out: Path) -> str:
    """Write the page about the runs of the files; return one line about it. ValueError
    and OSError say what is wrong with the files."""
    if any(out.resolve() == path.resolve() for path in paths):
        raise ValueError(f"{out} is one of the files to read")
    try:
        page = Page(list(_groups(paths)))
        html = page.html().encode("utf-8", "backslashreplace")
    except RecursionError:
        raise ValueError("a record is nested too deeply to be shown") from None
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        draft.write_bytes(html)
        os.replace(draft, out)
    finally:
        draft.unlink(missing_ok=True)
    return visible(f"{out}: {page.headline} ({page.scope})")


# ------------------------------------------------------------------ reading the runs


@dataclass
class Group:
    """The runs of one question; the first is the measure of the others."""

    runs: dict[str, Run]
    """By the name that heads their column."""


def _groups(paths: Sequence[Path]) -> Iterator[Group]:
    """The runs by question, history and try. Of runs recorded twice in a file the later
    one counts; a name that stands in two files is told apart by the file."""
    found: dict[tuple[Any, ...], dict[tuple[str, Path], Run]] = {}
    for path in dict.fromkeys(paths):
        runs = record.read(path)
        if not runs:
            raise ValueError(f"{path} holds no run")
        for number, run in enumerate(runs, 1):
            if wrong := _malformed(run):
                raise ValueError(f"{path}, record {number}: no run record: {wrong}")
            asked = (*run.history, run.question, run.repeat)
            found.setdefault(asked, {})[run.implementation, path] = run
    order = list(dict.fromkeys(key for runs in found.values() for key in runs))
    labels = _labels(order)
    for asked_runs in found.values():
        yield Group(
            {labels[key]: asked_runs[key] for key in order if key in asked_runs}
        )


def _labels(keys: Sequence[tuple[str, Path]]) -> dict[tuple[str, Path], str]:
    """What heads the columns: the function alone of a module:function, and the file
    where a name stands in several, as long as that tells them apart."""
    names = Counter(name for name, _ in keys)
    files = {path for _, path in keys}
    alike = len({path.name for path in files}) < len(files)
    ends = [
        "" if names[name] == 1 else f" in {path if alike else path.name}"
        for name, path in keys
    ]
    shortened = [re.sub(r"^[\w.]+:(\w+)$", r"\1", name) for name, _ in keys]
    once = Counter(zip(shortened, ends, strict=True))
    return {
        key: (short if once[short, end] == 1 else key[0]) + end
        for key, short, end in zip(keys, shortened, ends, strict=True)
    }


def _malformed(run: Run) -> str:
    """Which field of the record is not what it should be, "" where all are."""
    expected = {
        str: ("implementation", "question", "protocol", "status", "answer"),
        int: ("repeat",),
        dict: ("settings", "versions"),
        list: ("history", "steps", "exchanges", "warnings"),
    }
    for kind, names in expected.items():
        for name in names:
            if not isinstance(getattr(run, name), kind):
                return f"{name} is not a {kind.__name__}"
    if not all(isinstance(each, str) for each in [*run.history, *run.warnings]):
        return "history or warnings hold something else than text"
    if not isinstance(run.error, str | None):
        return "error is not a str"
    for step in run.steps:
        parts = (step.tool, step.arguments_text, step.result or "")
        numbers = (step.turn, step.order or 0, step.ok or 0)
        if not all(isinstance(n, int) for n in numbers) or not all(
            isinstance(part, str) for part in parts
        ):
            return "a step has a field of the wrong type"
    for each in run.exchanges:
        if not isinstance(each, dict) or not {"request", "reply", "status"} <= set(
            each
        ):
            return "an exchange lacks request, reply or status"
        if not isinstance(each["request"], dict):
            return "a request is not an object"
        each.setdefault("repairs", [])
        each.setdefault("ms", None)
        repairs = each["repairs"]
        if not isinstance(repairs, list) or not isinstance(
            each["ms"], int | float | None
        ):
            return "repairs or ms of an exchange are of the wrong type"
    return ""


# ------------------------------------------------------------------- what a page shows


@dataclass(frozen=True)
class Parting:
    """Where one run parts from the measure, and what stands there on both sides."""

    column: int
    measure: str
    name: str
    divergence: Divergence
    sentence: str
    row: int
    """Number of the model call, 0 for the end of the run."""
    right_row: int
    """The same for the run itself, where its steps stand in other turns."""
    left: Part
    right: Part
    steps: tuple[int | None, int | None] = (None, None)
    """The step in which they part, in the measure and in the run."""

    @property
    def cause(self) -> str:
        return self.divergence.cause

    @property
    def path(self) -> str:
        return self.divergence.path

    @property
    def sign(self) -> str:
        return CAUSE_SIGNS[self.cause]


@dataclass(frozen=True)
class Argument:
    """One argument of a call; `note` where nothing said so far accounts for it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Call:
    """One tool call and what came of it; the marks are paths of a divergence."""

    tool: str
    arguments: list[Argument]
    sign: str
    result: str
    failed: bool
    note: str
    mark: str = ""
    result_mark: str = ""
    note_mark: str = ""


@dataclass(frozen=True)
class Pane:
    """A request or a reply in full."""

    title: str
    blocks: list[Block]
    status: Any = None
    status_mark: str = ""


@dataclass(frozen=True)
class Change:
    """One thing that a request has more, less or otherwise than another."""

    sign: str
    label: str
    text: str
    was: Part | None = None
    now: Part | None = None


@dataclass(frozen=True)
class Snippet:
    """Lines of a source file, with their numbers."""

    file: str
    name: str
    first: int
    lines: list[str]


@dataclass
class Cell:
    """What one implementation did in one turn."""

    column: int
    number: int
    parting: Parting | None = None
    """That it parts from the measure here."""
    partings: list[Parting] = field(default_factory=list)
    """In the measure's column: who parts from it here."""
    there: bool = False
    """Whether it made this model call at all."""
    there_mark: str = ""
    ended: str = ""
    """How the run ended, where it ended before this call and another went on."""
    same: bool = False
    facts: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    said: str = ""
    calls: list[Call] = field(default_factory=list)
    answers: bool = False
    panes: list[Pane] = field(default_factory=list)
    added: list[Change] = field(default_factory=list)
    beside: list[Change] = field(default_factory=list)
    """Against the measure's request of the same number."""
    beside_more: int = 0
    beside_note: str = ""
    source: list[Snippet] = field(default_factory=list)


@dataclass
class End:
    """How one run ended, and under what it ran."""

    column: int
    run: Run
    meaning: str
    advice: str
    parting: Parting | None
    partings: list[Parting]
    same: bool
    status_mark: str
    answer_mark: str
    source: list[Snippet]


@dataclass
class Column:
    """One implementation in the table of one question."""

    name: str
    run: Run
    about: str
    verdict: Verdict | None
    """None for the measure."""
    source: Source | None
    parting: Parting | None = None
    anchor: str = ""
    """Where the run parts from the measure, or else where its column begins."""


class Question:
    """One question: its columns, its turns and how they ended."""

    def __init__(self, number: int, group: Group, tool_lists: ToolLists) -> None:
        self.number = number
        names, runs = list(group.runs), list(group.runs.values())
        self.measure, self.text = names[0], runs[0].question
        self.history, self.repeat = runs[0].history, runs[0].repeat
        self.columns: list[Column] = []
        for index, (name, run) in enumerate(group.runs.items()):
            verdict = judge(runs[0], run) if index else None
            column = Column(
                name,
                run,
                _about(name, run.implementation),
                verdict,
                source(run.implementation),
            )
            if verdict and verdict.divergence:
                column.parting = _parting(
                    index, names[0], name, runs[0], run, verdict, verdict.divergence
                )
            self.columns.append(column)
        self.tool_lists = tool_lists
        count = max(len(run.model_calls) for run in runs)
        self.rows = [
            [self._cell(index, row) for index in range(len(runs))]
            for row in range(1, count + 1)
        ]
        self.ends = [self._end(index) for index in range(len(runs))]
        for index, column in enumerate(self.columns):
            place = f"r{column.parting.right_row}" if column.parting else "head"
            column.anchor = f"q{number}-c{index}-{place}"

    @property
    def equals(self) -> list[Column]:
        """The columns that are equivalent to the measure."""
        return [
            column
            for column in self.columns
            if column.verdict and column.verdict.verdict == "equivalent"
        ]

    @property
    def others(self) -> list[Column]:
        """The columns that are not."""
        return [c for c in self.columns if c.verdict and c not in self.equals]

    def _sides(self, index: int, row: int) -> list[Parting]:
        """The partings that show in this cell: all of them in the measure's column."""
        if index:
            parting = self.columns[index].parting
            return [parting] if parting and parting.right_row == row else []
        places = [column.parting for column in self.columns]
        return [place for place in places if place and place.row == row]

    def _cell(self, index: int, row: int) -> Cell:
        column = self.columns[index]
        run, sides = column.run, self._sides(index, row)
        cell = Cell(index, row)
        if index:
            cell.parting = sides[0] if sides else None
        else:
            cell.partings = sides
        calls = run.model_calls
        stopped = [p for p in sides if p.cause == "control" and p.path == "status"]
        cell.there_mark = stopped[0].path if stopped else ""
        if row > len(calls):
            if stopped or row == len(calls) + 1:
                cell.ended = run.status
            return cell
        exchange = calls[row - 1]
        cell.there = True
        cell.facts, cell.repairs = _facts(run, row), list(map(str, exchange["repairs"]))
        choice = first_choice(exchange["reply"])
        said = text_of(choice["message"].get("content")) if choice else ""
        cell.answers = bool(choice) and not tool_calls(exchange["reply"])
        cell.said = "" if cell.answers and said == run.answer else said.strip()
        cell.calls = list(_calls(run, row, self._step_marks(index)))
        cell.panes = list(_panes(exchange, sides))
        self.tool_lists.number(tools_of(exchange["request"]))
        earlier = calls[row - 2] if row > 1 else None
        cell.added = list(_added(earlier, exchange, run))
        if index:
            self._beside(cell, exchange)
            measures = self.columns[0].run.model_calls
            cell.same = (
                not sides
                and row <= len(measures)
                and _same(measures[row - 1], exchange, self.columns[0].run, run, row)
            )
        if column.source:
            names = ["call_model", "wants_tools"]
            names += ["run_tools"] if cell.calls else []
            cell.source = column.source.parts(names) or column.source.parts(
                ["build_graph"]
            )
        return cell

    def _step_marks(self, index: int) -> dict[int, str]:
        """The paths at which others part from the steps of this run, by step."""
        columns = self.columns[index : index + 1] if index else self.columns
        found = {}
        for place in (column.parting for column in columns):
            step = place.steps[1 if index else 0] if place else None
            if place and step is not None:
                found[step] = place.path
        return found

    def _beside(self, cell: Cell, exchange: dict[str, Any]) -> None:
        """Set this request beside the measure's of the same number."""
        measures = self.columns[0].run.model_calls
        if cell.number > len(measures):
            cell.beside_note = f"{self.measure} made no model call {cell.number}."
            return
        found = differences(request(measures[cell.number - 1]), request(exchange))
        for path, left, right in islice(found, MOST_DIFFERENCES):
            cell.beside.append(Change("≠", path, "", *contrast(left, right)))
        cell.beside_more = sum(1 for _ in found)
        if self.columns[cell.column].run.protocol != self.columns[0].run.protocol:
            cell.beside_note = RULES["protocol"]
        elif not cell.beside:
            cell.beside_note = f"The same request as {self.measure}'s."

    def _end(self, index: int) -> End:
        column = self.columns[index]
        run, sides, measure = column.run, self._sides(index, 0), self.columns[0].run
        return End(
            column=index,
            run=run,
            meaning=STATUSES.get(run.status, ""),
            advice=hint(run.error) or "",
            parting=sides[0] if index and sides else None,
            partings=[] if index else sides,
            same=bool(index)
            and not sides
            and (run.status, run.answer, run.error, run.warnings)
            == (measure.status, measure.answer, measure.error, measure.warnings),
            status_mark="status" if any(p.path == "status" for p in sides) else "",
            answer_mark="answer" if any(p.path == "answer" for p in sides) else "",
            source=column.source.parts(["run_agent"]) if column.source else [],
        )


class ToolLists:
    """The lists of tools that were offered, each printed once on the page."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.lists: list[tuple[dict[str, Any], ...]] = []

    def number(self, tools: tuple[dict[str, Any], ...]) -> int:
        """Return the number of the list, from 1."""
        if tools and text(tools) not in self._numbers:
            self.lists.append(tools)
            self._numbers[text(tools)] = len(self.lists)
        return self._numbers.get(text(tools), 0)


class Page:
    """The whole page; `html()` draws it."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.tool_lists = ToolLists()
        self.questions = [
            Question(number, group, self.tool_lists)
            for number, group in enumerate(groups, 1)
        ]
        self.names = list(dict.fromkeys(name for g in groups for name in g.runs))
        found = [
            c.verdict.verdict
            for q in self.questions
            for c in q.columns[1:]
            if c.verdict
        ]
        self.counts = {name: found.count(name) for name in VERDICT_SIGNS}
        total, equal = len(found), self.counts["equivalent"]
        if not total:
            self.headline = "One implementation, nothing to compare it with"
        elif equal == total:
            self.headline = (
                "The comparison is equivalent"
                if total == 1
                else f"All {total} comparisons are equivalent"
            )
        else:
            words = [
                f"{count} {name}"
                for name, count in self.counts.items()
                if count and name != "equivalent"
            ]
            self.headline = f"Of {total} comparisons {equal} equivalent, " + ", ".join(
                words
            )
        measures = dict.fromkeys(q.measure for q in self.questions)
        asked = {(*q.history, q.text) for q in self.questions}
        tries = len({q.repeat for q in self.questions})
        self.scope = (
            f"{_counted(len(asked), 'question')}"
            f"{f', {tries} tries' if tries > 1 else ''},"
            f" {_counted(len(self.names), 'implementation')},"
            f" measured against {', '.join(measures)}"
        )
        used = dict.fromkeys(
            c.source for q in self.questions for c in q.columns if c.source
        )
        self.sources = list(used)
        self.partings = [
            column for q in self.questions for column in q.columns if column.parting
        ]

    def after(self, column: Column) -> Column | None:
        """Return the next column that parts from its measure."""
        index = self.partings.index(column) + 1
        return self.partings[index] if index < len(self.partings) else None

    def html(self) -> str:
        style = (PAGE / "page.css").read_text(encoding="utf-8")
        style += "\n".join(_column_rules(max(len(q.columns) for q in self.questions)))
        script = (PAGE / "page.js").read_text(encoding="utf-8")
        environment = Environment(
            loader=FileSystemLoader(PAGE),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_finalize,
        )
        return environment.get_template("template.html").render(
            page=self,
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


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


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


# ------------------------------------------------------------- from a run to its cells


def _about(label: str, name: str) -> str:
    """What is said of an implementation under its label."""
    for implementation in (*LADDER, *STOCK):
        if implementation.name == name:
            return implementation.about
    return "" if name in label else name


def _parting(
    column: int,
    measure: str,
    name: str,
    left: Run,
    right: Run,
    verdict: Verdict,
    place: Divergence,
) -> Parting:
    ends = {
        "status": (left.status, right.status),
        "answer": (left.answer, right.answer),
    }
    last = max(len(left.model_calls), len(right.model_calls))
    row = min(place.model_call, last)
    if ends.get(place.path) == (place.left, place.right):
        row = 0
    steps = _parted_steps(left, right, place)
    before, now = contrast(place.left, place.right)
    return Parting(
        column=column,
        measure=measure,
        name=name,
        divergence=place,
        sentence=explain(verdict),
        row=row,
        right_row=row if steps[1] is None else _turn(right, right.steps[steps[1]]),
        left=before,
        right=now,
        steps=steps,
    )


def _parted_steps(
    left: Run, right: Run, place: Divergence
) -> tuple[int | None, int | None]:
    """The step that a path such as steps[3].result means, in both runs: by its place in
    the turn, or in the whole run where one has its tool calls in text."""
    found = re.match(r"steps\[(\d+)\]", place.path)
    if not found:
        return None, None
    index = int(found[1])
    if "text" in (left.protocol, right.protocol):
        return index, index
    lefts, rights = (
        [i for i, step in enumerate(run.steps) if step.turn == place.model_call]
        for run in (left, right)
    )
    return index, rights[lefts.index(index)]


def _turn(run: Run, step: Step) -> int:
    """The turn in which a step is shown: its own, or the nearest there is."""
    return min(max(step.turn, 1), len(run.model_calls))


def _facts(run: Run, row: int) -> list[str]:
    exchange = run.model_calls[row - 1]
    found = []
    if exchange["status"] != 200:
        found.append(f"HTTP {exchange['status']}")
    if exchange.get("attempt"):
        found.append(f"{exchange['attempt']} failed before it")
    if exchange["ms"] is not None:
        found.append(
            f"{exchange['ms']:.0f} ms"
            if exchange["ms"] >= 10
            else f"{exchange['ms']:.1f} ms"
        )
    return found


def _calls(run: Run, row: int, marks: dict[int, str]) -> Iterator[Call]:
    """The calls of one turn; `marks` has the paths of divergences by step."""
    steps = [(i, step) for i, step in enumerate(run.steps) if _turn(run, step) == row]
    orders = [step.order for _, step in steps if step.order is not None]
    for index, step in steps:
        mark = marks.get(index, "")
        field = mark.partition("].")[2].partition(".")[0]
        note = ""
        if step.order is None and step.ok is False:
            note = "not executed"
        elif step.order is not None and (orders != sorted(orders) or field == "order"):
            note = f"executed as number {step.order + 1}"
        elif mark and not field:
            note = "executed"
        result = step.result
        yield Call(
            tool=step.tool,
            arguments=_arguments(step),
            sign="✗" if step.ok is False else "→",
            result="nothing was seen of its result" if result is None else result,
            failed=step.ok is False,
            note=note,
            mark=mark if field in ("tool", "arguments") else "",
            result_mark=mark if field == "result" else "",
            note_mark=mark if field in ("", "order") else "",
        )


def _arguments(step: Step) -> list[Argument]:
    if not isinstance(step.arguments, dict):
        return [Argument("", step.arguments_text)]
    return [Argument(name, text(value)) for name, value in step.arguments.items()]


def _panes(exchange: dict[str, Any], sides: Sequence[Parting]) -> Iterator[Pane]:
    asked = [p.path for p in sides if p.cause == "request"]
    yield Pane("Request", blocks(exchange["request"], asked))
    told = [p.path for p in sides if p.cause == "reply"]
    status = [path for path in told if path == "$.status"]
    paths = [reply_path(path, exchange) for path in told if path not in status]
    yield Pane(
        "Reply",
        blocks(exchange["reply"], paths),
        exchange["status"],
        "".join(status[:1]),
    )
    if "raw_reply" in exchange:
        yield Pane("Reply before repair", blocks(exchange["raw_reply"]))


def _same(
    left: dict[str, Any], right: dict[str, Any], measure: Run, run: Run, row: int
) -> bool:
    """Whether two cells show the same, so that one may stand for both on a phone."""
    if request(left) != request(right) or reply(left) != reply(right):
        return False
    if left["repairs"] != right["repairs"]:
        return False
    a, b = (
        [(s.tool, s.arguments, s.result) for s in each.steps if _turn(each, s) == row]
        for each in (measure, run)
    )
    return a == b


def _added(
    earlier: dict[str, Any] | None, exchange: dict[str, Any], run: Run
) -> Iterator[Change]:
    """What the request has that the one before it had not; of the first request, what
    the implementation put around the question."""
    now = request(exchange)
    before = request(earlier) if earlier else {}
    for name in dict.fromkeys([*before, *now]):
        if name != "messages" and (name not in before or name not in now):
            sign = "+" if name in now else "−"
            yield Change(sign, name, _field(name, now.get(name, before.get(name))))
        elif name != "messages" and list(differences(before[name], now[name])):
            was, is_now = contrast(before[name], now[name])
            yield Change("≠", name, "", was, is_now)
    old, new = (each.get("messages") or [] for each in (before, now))
    if not (isinstance(old, list) and isinstance(new, list)):
        yield Change("≠", "messages", short(new))
        return
    kept = 0
    for a, b in zip(old, new, strict=False):
        if list(differences(a, b)):
            break
        kept += 1
    for message in old[kept:]:
        yield Change("−", *_message(message, run, first=False))
    for message in new[kept:]:
        yield Change("+", *_message(message, run, first=earlier is None))


def _field(name: str, value: Any) -> str:
    tools = tools_of({"tools": value}) if name == "tools" else ()
    return ", ".join(tool_names(tools)) if tools else short(value)


def _message(message: Any, run: Run, *, first: bool) -> tuple[str, str]:
    """A message as label and text in one line."""
    if not isinstance(message, dict):
        return "message", short(message)
    label, content = str(message.get("role")), text_of(message.get("content"))
    if first and label == "user":
        label = "the question" if content == run.question else "earlier question"
    calls = message.get("tool_calls")
    words = [content] if content else []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            words.append(f"{function.get('name')}({_call_text(function)})")
    return label, short(" ".join(words))


def _call_text(function: dict[str, Any]) -> str:
    arguments = function.get("arguments")
    if not isinstance(arguments, dict):
        return short(arguments)
    return ", ".join(f"{name}={text(value)}" for name, value in arguments.items())


# --------------------------------------------------------------- the stages' own lines


@dataclass(frozen=True)
class Source:
    """The file of one stage, as it is now; it is read, not imported."""

    name: str
    file: str
    code: str

    def parts(self, names: Iterable[str]) -> list[Snippet]:
        """Return the functions of those names, in the order of the names."""
        lines = self.code.splitlines()
        found = {
            node.name: Snippet(
                self.file,
                node.name,
                node.lineno,
                lines[node.lineno - 1 : node.end_lineno],
            )
            for node in ast.parse(self.code).body
            if isinstance(node, ast.FunctionDef)
        }
        return [found[name] for name in names if name in found]


@functools.cache
def source(name: str) -> Source | None:
    """Return the source of a stage of the ladder; None for others, and where the file
    cannot be read."""
    for implementation in LADDER:
        if implementation.name == name:
            module = implementation.target.partition(":")[0]
            file = f"{module.replace('.', '/')}.py"
            try:
                code = (ROOT / file).read_text(encoding="utf-8")
                ast.parse(code)
            except (OSError, ValueError, SyntaxError):
                return None
            return Source(name, file, code)
    return None
