"""One question as it is drawn: its differences, its turns, and how the runs ended.

Runs that did the same in a turn share a card. What counts as the same is what the judge
counts as the same, and what the page would show.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from markupsafe import Markup

from equivalence.gateway.canonical import differences, spelling_alone
from equivalence.gateway.exchange import Exchange
from equivalence.gateway.shapes import first_choice
from equivalence.judge.compare import (
    RULES,
    STRICT,
    Divergence,
    Rules,
    Verdict,
    by_steps,
    explain,
    reply,
    request,
)
from equivalence.language import _, ngettext
from equivalence.phrases import translated
from equivalence.runs.grounding import note
from equivalence.runs.hints import hint
from equivalence.runs.record import STATUSES, Run, Step
from equivalence.runs.steps import text_of, tool_calls
from equivalence.show.page.values import Fold, Part, contrast, json_html, short, text

CAUSE_SIGNS = {
    "request": "↑",
    "reply": "↓",
    "tool": "ƒ",
    "control": "◇",
    "unknown": "?",
}
MOST_DIFFERENCES = 6


@dataclass
class Column:
    """One run of the question, and the verdict on it; None for the baseline."""

    name: str
    run: Run
    verdict: Verdict | None = None
    parting: Parting | None = None


@dataclass
class Parting:
    """The first difference of a run from the baseline: its place in both runs."""

    name: str
    place: Divergence
    sentence: str
    rows: tuple[int, int]
    """Number of the model call in the baseline and in the run, 0 for the end."""
    steps: tuple[int | None, int | None]
    """The step in which they differ, in the baseline and in the run."""
    values: tuple[Part, Part]
    anchor: str = ""
    """The card of the run that has it."""

    @property
    def where(self) -> str:
        """The place in words."""
        if not self.rows[0]:
            return _("the end")
        words = _("model call {number}")
        if self.rows[1] != self.rows[0]:
            words = _("model call {number} ({other} there)")
        return words.format(number=self.rows[0], other=self.rows[1])

    @property
    def notes(self) -> list[str]:
        """What is worth knowing of two texts that are nearly the same."""
        left, right = self.place.left, self.place.right
        offset, found = self.place.offset, []
        if offset:
            words = _("The two texts differ from character {offset} on.")
            found.append(words.format(offset=offset))
        if spelling_alone(left, right):
            found.append(_("They differ in blanks alone."))
        if self.place.requests:
            words = _(
                "Their requests were not compared; the first difference there: {place}."
            )
            found.append(words.format(place=translated(self.place.requests)))
        return found

    @property
    def part(self) -> str:
        """Which part of the model call the path leads into: request, reply or run."""
        return self.place.part


@dataclass
class Card:
    """What one or several runs did in one turn, drawn from the run of the first."""

    anchor: str
    names: list[str]
    run: Run
    exchange: Exchange | None
    """None: these runs had ended before this model call; or it is the end."""
    partings: list[Parting]
    """Those that show here; in the card of the baseline, those of all others."""
    baseline: bool
    facts: list[str] = field(default_factory=list)
    said: str = ""
    answers: bool = False
    calls: list[Call] = field(default_factory=list)
    panes: list[tuple[str, str, str, Markup]] = field(default_factory=list)
    """Title, HTTP status where it is worth a word, its mark, JSON."""
    added: list[Change] = field(default_factory=list)
    beside: list[Change] = field(default_factory=list)
    beside_note: str = ""
    advice: str = ""
    meaning: str = ""

    @property
    def marked(self) -> set[str]:
        """The fields of the run record that differ: status, answer."""
        return {parting.place.path for parting in self.partings}


class Question:
    """All that the page says of one question. `anchors` numbers the tool lists."""

    def __init__(
        self,
        number: int,
        columns: Sequence[Column],
        tool_lists: ToolLists,
        rules: Rules = STRICT,
    ) -> None:
        self.number, self.columns, self.rules = number, columns, rules
        self.baseline = columns[0]
        self.text, self.history = self.baseline.run.question, self.baseline.run.history
        self.repeat = self.baseline.run.repeat
        self._tool_lists = tool_lists
        for column in columns[1:]:
            if column.verdict and column.verdict.divergence:
                column.parting = parting_of(self.baseline.run, column, rules)
        self._drawn: dict[tuple[int, int], Card] = {}
        count = max(len(column.run.model_calls) for column in columns)
        self.turns = [self._cards(row) for row in range(1, count + 1)]
        self.end = self._cards(0)
        self.settings = _shared(
            (column.name, {**column.run.settings, **column.run.versions})
            for column in columns
        )

    @property
    def verdicts(self) -> list[tuple[Verdict, list[Column]]]:
        """The verdicts, those that say the same as one; what differs comes first."""
        return grouped_verdicts(self.columns)

    def _cards(self, row: int) -> list[Card]:
        groups: list[tuple[list[int], Any]] = []
        for index, column in enumerate(self.columns):
            content = _content(column.run, row, self._partings(index, row))
            if index == 0:  # others share the baseline's card, whatever is marked there
                content["mark"] = None
            for members, known in groups:
                if _same(known, content, self.rules):
                    members.append(index)
                    break
            else:
                groups.append(([index], content))
        return [self._card(members, row) for members, _ in groups]

    def _partings(self, index: int, row: int) -> list[Parting]:
        """The differences that show in this run at this turn."""
        if index:
            own = self.columns[index].parting
            return [own] if own and own.rows[1] == row else []
        every = [column.parting for column in self.columns if column.parting]
        return [parting for parting in every if parting.rows[0] == row]

    def _card(self, members: list[int], row: int) -> Card:
        first = members[0]
        run, partings = self.columns[first].run, self._partings(first, row)
        calls = run.model_calls
        card = Card(
            anchor=f"q{self.number}-t{row}-c{first}",
            names=[self.columns[index].name for index in members],
            run=run,
            exchange=calls[row - 1] if 0 < row <= len(calls) else None,
            partings=partings,
            baseline=first == 0,
        )
        for index in members:
            self._drawn[row, index] = card
            if (own := self.columns[index].parting) and own.rows[1] == row:
                own.anchor = card.anchor
        if row == 0:
            card.meaning = _(STATUSES.get(run.status, ""))
            card.advice = hint(run.error) or ""
        elif card.exchange:
            self._fill(card, card.exchange, row, members)
        return card

    def _fill(
        self, card: Card, exchange: Exchange, row: int, members: list[int]
    ) -> None:
        run, sides = card.run, card.partings
        runs = [self.columns[index].run for index in members]
        card.facts = _facts([each.model_calls[row - 1] for each in runs])
        choice = first_choice(exchange.reply)
        said = text_of(choice["message"].get("content")) if choice else ""
        card.answers = bool(choice) and not tool_calls(exchange.reply)
        card.said = "" if card.answers and said == run.answer else said.strip()
        side = 0 if card.baseline else 1
        marks = {p.steps[side]: p.place.path for p in sides}
        card.calls = list(_calls(run, row, marks))
        card.panes = list(self._panes(card, exchange, row, members[0]))
        earlier = run.model_calls[row - 2] if row > 1 else None
        card.added = list(_added(earlier, exchange, run))
        if not card.baseline:
            card.beside, card.beside_note = self._beside(run, row)

    def _panes(
        self, card: Card, exchange: Exchange, row: int, index: int
    ) -> Iterator[tuple[str, str, str, Markup]]:
        """The request and the reply in full, marked where runs differ there."""
        asked = [p.place.path for p in card.partings if p.part == "request"]
        sent, folds = exchange.request, {}
        if number := self._tool_lists.number(tools_of(sent)):
            names = tool_names(tools_of(sent))
            words = ngettext(
                "[ {count} tool: {names} ]", "[ {count} tools: {names} ]", len(names)
            ).format(count=len(names), names=", ".join(names))
            folds["$.tools"] = Fold(f"tools-{number}", words)
        before = self._drawn.get((row - 1, index))
        if before and before.exchange:
            kept, now = (
                each.request.get("messages") for each in (before.exchange, exchange)
            )
            continued = isinstance(now, list) and kept and now[: len(kept)] == kept
            if isinstance(kept, list) and continued:
                words = ngettext(
                    "… {count} message as in model call {number}",
                    "… {count} messages as in model call {number}",
                    len(kept),
                ).format(count=len(kept), number=row - 1)
                fold = Fold(f"{before.anchor}-messages", words, len(kept))
                folds["$.messages"] = fold
        anchors = {"$.messages": f"{card.anchor}-messages"}
        yield _("Request"), "", "", json_html(sent, asked, folds, anchors)
        told = [p.place.path for p in card.partings if p.part == "reply"]
        status = "$.status" if "$.status" in told else ""
        http = f"HTTP {exchange.status}" if status or exchange.status != 200 else ""
        paths = [_on_the_wire(path, exchange) for path in told if path != "$.status"]
        yield _("Reply"), http, status, json_html(exchange.reply, paths)
        if exchange.repairs:
            yield _("Reply before repair"), "", "", json_html(exchange.raw_reply)

    def _beside(self, run: Run, row: int) -> tuple[list[Change], str]:
        """What the request has otherwise than the baseline's of the same number."""
        name, calls = self.baseline.name, self.baseline.run.model_calls
        if row > len(calls):
            words = _("{name} made no model call {number}.")
            return [], words.format(name=name, number=row)
        found = self.rules.differences(
            request(calls[row - 1]), request(run.model_calls[row - 1])
        )
        changes = [
            Change("≠", path, parts=contrast(left, right))
            for path, left, right in islice(found, MOST_DIFFERENCES)
        ]
        if by := by_steps(self.baseline.run, run, self.rules):
            return changes, _(RULES[by])
        if not changes:
            return [], _("The same request as {name}'s.").format(name=name)
        more = sum(1 for _change in found)
        words = _("and {count} more that follow").format(count=more)
        return changes, words if more else ""


def grouped_verdicts(
    columns: Sequence[Column],
) -> list[tuple[Verdict, list[Column]]]:
    """Return the verdicts on the columns, those that say the same as one; equivalent
    ones come last."""
    groups: dict[str, tuple[Verdict, list[Column]]] = {}
    for column in columns:
        if column.verdict:
            same = (column.verdict.verdict, repr(column.verdict.divergence))
            groups.setdefault(repr(same), (column.verdict, []))[1].append(column)
    return sorted(groups.values(), key=lambda g: g[0].verdict == "equivalent")


def parting_of(left: Run, column: Column, rules: Rules = STRICT) -> Parting:
    """Return the first difference of a column from the baseline, `left`."""
    assert column.verdict
    assert column.verdict.divergence
    place, right = column.verdict.divergence, column.run
    rows = place.model_call, place.call_side or place.model_call
    if place.path in ("status", "answer"):
        ends = [getattr(run, place.path) for run in (left, right)]
        if ends == [place.left, place.right]:
            rows = (0, 0)
    uncompared = by_steps(left, right, rules)
    steps = _steps_of(place, left, right, None if uncompared else rows)
    if rows != (0, 0):
        last = max(len(left.model_calls), len(right.model_calls))
        rows = min(rows[0], last), min(rows[1], last)
        if steps[1] is not None:
            rows = rows[0], _turn(right, right.steps[steps[1]])
    return Parting(
        column.name,
        place,
        explain(column.verdict),
        rows,
        steps,
        contrast(place.left, place.right),
    )


def _steps_of(
    place: Divergence, left: Run, right: Run, rows: tuple[int, int] | None
) -> tuple[int | None, int | None]:
    """The step that a path such as steps[3].result means, in both runs: by its place in
    the turn, or in the whole run where runs are compared by steps; `rows` is None then.
    """
    found = re.match(r"steps\[(\d+)\]", place.path)
    if not found:
        return None, None
    index = int(found[1])
    if rows is None:
        places = [index if index < len(run.steps) else None for run in (left, right)]
        return places[0], places[1]
    lefts, rights = (
        [i for i, step in enumerate(run.steps) if step.turn == row]
        for run, row in zip((left, right), rows, strict=True)
    )
    return index, rights[lefts.index(index)]


def _turn(run: Run, step: Step) -> int:
    """The turn in which a step is shown: its own, or the nearest there is."""
    return min(max(step.turn, 1), len(run.model_calls))


def _same(left: dict[str, Any], right: dict[str, Any], rules: Rules) -> bool:
    requests = rules.differences(left.get("request"), right.get("request"))
    a, b = ({**each, "request": None} for each in (left, right))
    return not any(requests) and not any(differences(a, b))


def _content(run: Run, row: int, partings: Sequence[Parting]) -> dict[str, Any]:
    """What is drawn of a run at a turn, in the form in which it is compared."""
    marks = [[p.place.path, p.place.right] for p in partings]
    found: dict[str, Any] = {"mark": marks or None}
    if row == 0:
        ends = ("status", "answer", "error", "warnings")
        return found | {name: getattr(run, name) for name in ends}
    if row > len(run.model_calls):
        return found | {"ended": run.status}
    exchange = run.model_calls[row - 1]
    steps = [
        [s.tool, s.arguments, s.result, s.returned, s.ok, s.ungrounded]
        for s in run.steps
        if _turn(run, s) == row
    ]
    return found | {
        "request": request(exchange),
        "reply": reply(exchange),
        "repairs": exchange.repairs,
        "steps": steps,
    }


def _facts(exchanges: Sequence[Exchange]) -> list[str]:
    """What there is to say of a model call beside its content."""
    first, found = exchanges[0], []
    if first.status is None:
        found.append(_("no reply"))
    elif first.status != 200:
        found.append(f"HTTP {first.status}")
    if first.attempt:
        found.append(_("{count} failed before it").format(count=first.attempt))
    times = [each.ms for each in exchanges if each.ms is not None]
    if times:
        ends = dict.fromkeys(
            f"{ms:.0f}" if ms >= 10 else f"{ms:.1f}" for ms in (min(times), max(times))
        )
        found.append(f"{'–'.join(ends)} ms")
    repaired = _("repaired: {names}")
    return [*found, *(repaired.format(names=each) for each in first.repairs)]


def _on_the_wire(path: str, exchange: Exchange) -> str:
    """The path in the reply as it was sent for one in its compared form."""
    if exchange.status == 200 and first_choice(exchange.reply):
        return re.sub(r"^\$\.(message|finish_reason)\b", r"$.choices[0].\1", path)
    return re.sub(r"^\$\.body\b", "$", path)


def _shared(
    pairs: Iterable[tuple[str, dict[str, Any]]],
) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Settings and versions, each once with the names of those that ran under them."""
    found: dict[str, tuple[list[str], list[tuple[str, str]]]] = {}
    for name, values in pairs:
        rows = [(k, v if isinstance(v, str) else text(v)) for k, v in values.items()]
        found.setdefault(text(values), ([], rows))[0].append(name)
    return list(found.values())


# ------------------------------------------------------------------------------- tools


class ToolLists:
    """The lists of tools that were offered, each printed once on the page."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.lists: list[list[dict[str, Any]]] = []

    def number(self, tools: list[dict[str, Any]]) -> int:
        """Return the number of the list, from 1; 0 for none."""
        if tools and (key := text(tools)) not in self._numbers:
            self.lists.append(tools)
            self._numbers[key] = len(self.lists)
        return self._numbers[key] if tools else 0


def tools_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tools of the request, none where they are not a list of tools."""
    tools = request.get("tools")
    if not isinstance(tools, list) or not all(isinstance(t, dict) for t in tools):
        return []
    return tools


def tool_names(tools: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names of the tools."""
    functions = (tool.get("function") for tool in tools)
    return [str(f.get("name")) if isinstance(f, dict) else "?" for f in functions]


@dataclass(frozen=True)
class Call:
    """One tool call and what came of it. The marks are paths of a difference."""

    step: Step
    arguments: list[tuple[str, list[tuple[str, bool]]]]
    """Name, and the pieces of the value: text, and whether it is a number that nobody
    had said when the call was made."""
    made_up: list[str]
    """What is known of these numbers."""
    note: str = ""
    mark: str = ""
    result_mark: str = ""
    note_mark: str = ""


def _calls(run: Run, row: int, marks: dict[int | None, str]) -> Iterator[Call]:
    """The calls of one turn; `marks` has the paths of differences by step."""
    steps = [(i, step) for i, step in enumerate(run.steps) if _turn(run, step) == row]
    orders = [step.order for _index, step in steps if step.order is not None]
    for index, step in steps:
        mark = marks.get(index, "")
        part = mark.partition("].")[2].partition(".")[0]
        words = ""
        if step.order is None and step.ok is False:
            words = _("not executed")
        elif step.concurrent:
            words = _("executed together with others")
        elif step.order is not None and (orders != sorted(orders) or part == "order"):
            words = _("executed as number {number}").format(number=step.order + 1)
        elif mark and not part:
            words = _("executed")
        made_up: dict[str, None] = {}
        for each in step.ungrounded:
            name = f"{each.get('argument')}: " if each.get("argument") else ""
            try:
                made_up[f"{name}{translated(note(each))}"] = None
            except (KeyError, TypeError):  # as another program wrote it
                made_up[f"{name}{short(each)}"] = None
        yield Call(
            step,
            list(_arguments(step)),
            list(made_up),
            words,
            mark=mark if part in ("tool", "arguments") else "",
            result_mark=mark if part == "result" else "",
            note_mark=mark if part in ("", "order") else "",
        )


def _arguments(step: Step) -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    values = {"": step.arguments_text}
    if isinstance(step.arguments, dict):
        values = {name: text(value) for name, value in step.arguments.items()}
    for name, value in values.items():
        numbers = {
            str(each.get("number"))
            for each in step.ungrounded
            if each.get("argument") == name
        }
        yield name, list(_pieces(value, numbers))


def _pieces(value: str, numbers: set[str]) -> Iterator[tuple[str, bool]]:
    """The value cut where one of the numbers stands; where none is found as it was
    written, the whole value stands for it."""
    any_of = "|".join(sorted(map(re.escape, numbers), key=len, reverse=True))
    number = rf"(?<![A-Za-z_\d.])(?:{any_of})(?!\.?\d)"
    plain = unicodedata.normalize("NFKC", value)  # as grounding reads it: ３ is 3
    places = list(re.finditer(number, plain)) if numbers else []
    if len(plain) != len(value) or not places:
        yield value, bool(numbers)
        return
    end = 0
    for place in places:
        yield value[end : place.start()], False
        yield value[place.start() : place.end()], True
        end = place.end()
    yield value[end:], False


# ----------------------------------------------------------------------------- changes


@dataclass(frozen=True)
class Change:
    """One thing that a request has more (+), less (−) or otherwise (≠) than another:
    its text, or the two values."""

    sign: str
    label: str
    text: str = ""
    parts: tuple[Part, Part] | None = None


def _added(earlier: Exchange | None, exchange: Exchange, run: Run) -> Iterator[Change]:
    """What the request has that the one before it had not; of the first request, what
    the implementation put around the question."""
    now = request(exchange)
    before = request(earlier) if earlier else {}
    for name in dict.fromkeys([*before, *now]):
        if name == "messages":
            continue
        if name not in before or name not in now:
            sign = "+" if name in now else "−"
            yield Change(sign, name, _field(name, now.get(name, before.get(name))))
        elif next(differences(before[name], now[name]), None):
            yield Change("≠", name, parts=contrast(before[name], now[name]))
    old, new = (each.get("messages") or [] for each in (before, now))
    if not (isinstance(old, list) and isinstance(new, list)):
        yield Change("≠", "messages", short(new))
        return
    kept = 0
    for a, b in zip(old, new, strict=False):
        if next(differences(a, b), None):
            break
        kept += 1
    for sign, messages in (("−", old[kept:]), ("+", new[kept:])):
        for message in messages:
            yield Change(sign, *_message(message, run, first=earlier is None))


def _field(name: str, value: Any) -> str:
    tools = tools_of({"tools": value}) if name == "tools" else []
    return ", ".join(tool_names(tools)) if tools else short(value)


def _message(message: Any, run: Run, *, first: bool) -> tuple[str, str]:
    """A message as label and text, the prompt with its own line breaks."""
    if not isinstance(message, dict):
        return "message", short(message)
    label, content = str(message.get("role")), text_of(message.get("content"))
    if first and label == "user":
        label = _("the question") if content == run.question else _("earlier question")
    calls = message.get("tool_calls")
    words = [content] if content else []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            words.append(f"{function.get('name')}({_written(function)})")
    return label, "\n".join(words)


def _written(function: dict[str, Any]) -> str:
    arguments = function.get("arguments")
    if not isinstance(arguments, dict):
        return short(arguments)
    return ", ".join(f"{name}={text(value)}" for name, value in arguments.items())
