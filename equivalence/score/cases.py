"""The cases of a benchmark, read from a file, and whether a run completed one.

    names:                                # optional: what stands for each other
      - [腾讯, Tencent, "0700.HK"]
    published:                            # optional: figures to stand beside ours
      completed: 88
      note: where they come from
    cases:
      - id: tencent-shares                # unique
        questions:                        # several are one conversation
          - ask: 腾讯股票多少钱？持有 100 股市值多少港元？
            calls:                        # what has to be called; default: nothing
              - [get_stock_price, {symbol: 腾讯}]
              - [calculate, {expression: 100 * 385.6}, get_stock_price]
            answer: [385.6, 38560]        # what has to be in the answer
            wrong: 下跌                    # a pattern that must not be in it

A call counts as made when its tool did its work on these arguments, or gave the result
that they give: 385.6*100 is 100 * 385.6, and "26.20" is 26.2. A result that is one
number is compared without its sign, because a difference may be taken either way. The
order is free, but a call with a third element comes in a later model call than those
whose results it needs. Calls beyond these are allowed and reported, except where a case
expects none at all: there no call is right.

Of the answer, a number stands in digits and may be rounded by at most 1 % or scaled
(3.856万); its sign is a text of its own. A text may be a list of which one is enough.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from equivalence.clock import clock
from equivalence.errors import UsageError
from equivalence.language import N_, _
from equivalence.phrases import translated
from equivalence.runs.grounding import mentions
from equivalence.runs.plan import CLOCK
from equivalence.runs.record import Run, Step
from equivalence.runs.watched import tool_name

KINDS = (N_("one tool"), N_("several tools"), N_("none"), N_("follow-up"))

Names = Mapping[str, tuple[str, ...]]
"""All names of a thing, by each of them in lower case."""


@dataclass(frozen=True)
class Call:
    """A call that has to be made."""

    tool: str
    arguments: dict[str, Any]
    """Where a value has several names, by the first of them."""
    after: tuple[str, ...] = ()
    """The tools whose results it needs."""
    result: str | None = None
    """What the tool gives for it; None where there are no tools to ask."""

    def __str__(self) -> str:
        return told(self.tool, self.arguments)

    def made_by(self, step: Step, names: Names) -> bool:
        """Return whether the step is this call: the same tool, which did its work with
        the same arguments or the same result."""
        if step.tool != self.tool or step.ok is False:
            return False
        if _first_names(step.arguments, names) == _first_names(self.arguments, names):
            return True
        given = step.result if step.returned is None else step.returned
        if self.result is None or given is None:
            return False
        numbers = _number(self.result), _number(given)
        return self.result == given or math.isclose(*numbers, rel_tol=1e-9)


@dataclass(frozen=True)
class Question:
    """What is asked, and what a right run of it holds."""

    ask: str
    calls: tuple[Call, ...] = ()
    answer: tuple[float | tuple[str, ...], ...] = ()
    """Numbers, and texts of which one is enough."""
    wrong: str = ""
    """A pattern of what the answer must not say."""


@dataclass(frozen=True)
class Case:
    """Questions asked one after another, in one conversation."""

    id: str
    questions: tuple[Question, ...]
    names: Names = field(default_factory=dict, compare=False, repr=False)

    @property
    def kind(self) -> str:
        """One of KINDS: several questions are a follow-up; else the calls tell."""
        if len(self.questions) > 1:
            return "follow-up"
        calls = len(self.questions[0].calls)
        return ("none", "one tool")[calls] if calls < 2 else "several tools"


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Figures of somebody else's, see figures.Score; None where there is none."""

    note: str
    """Where they come from, and what can be concluded from them."""
    completed: float | None = None
    calls_worked: float | None = None
    model_calls: float | None = None
    seconds: float | None = None
    peak_context: float | None = None
    unread: float | None = None


@dataclass(frozen=True)
class Outcome:
    """Whether a case was completed, the reasons in words where it was not, and the
    calls beyond those expected."""

    reasons: tuple[str, ...]
    extra_calls: tuple[str, ...]

    @property
    def completed(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons


def check(case: Case, runs: Sequence[Run]) -> Outcome:
    """Return the outcome of the case; the runs are those of its questions, in order."""
    reasons: list[str] = []
    extra: list[str] = []
    pairs = list(zip(case.questions, runs, strict=True))
    for number, (question, run) in enumerate(pairs, 1):
        missing, left = _compare_calls(question.calls, run.steps, case.names)
        beyond = [told(step.tool, step.arguments) for step in left]
        found: list[str] = []
        if run.status != "completed":
            found = [f"it ended as {run.status}" + (f": {run.error}" * bool(run.error))]
        if run.status != "model_error":
            found += missing
        if case.kind == "none":
            found += [f"{call} was called, where no tool is needed" for call in beyond]
        if run.status == "completed":
            found += _answer(question, run.answer)
        place = f"question {number}: " if len(pairs) > 1 else ""
        reasons += [place + reason for reason in found]
        extra += beyond
    return Outcome(tuple(reasons), tuple(extra))


def told(tool: str, arguments: Any) -> str:
    """Return a call in short: get_weather(上海)."""
    if not isinstance(arguments, dict):
        return f"{tool}({arguments})"
    return f"{tool}({', '.join(str(value) for value in arguments.values())})"


def _compare_calls(
    calls: Sequence[Call], steps: Sequence[Step], names: Names
) -> tuple[list[str], list[Step]]:
    """Which calls were not made, in words, and the steps that are none of them."""
    missing: list[str] = []
    answered: dict[str, int] = {}  # the model call that asked for it last, by tool
    left = list(steps)
    for call in calls:
        same = [step for step in left if call.made_by(step, names)]
        needed = max((answered.get(tool, 0) for tool in call.after), default=0)
        made = next((step for step in same if step.turn > needed), None)
        if made:
            left.remove(made)
            answered[call.tool] = max(made.turn, answered.get(call.tool, 0))
        elif same:
            words = " and ".join(call.after)
            missing.append(f"{call} was called before {words} had answered")
        else:
            missing.append(f"{call} was not called")
    return missing, left


def _first_names(arguments: Any, names: Names) -> Any:
    """The arguments, each value with several names by the first of them."""
    if not isinstance(arguments, dict):
        return arguments
    return {
        key: names.get(value.casefold(), (value,))[0]
        if isinstance(value, str)
        else value
        for key, value in arguments.items()
    }


def _number(result: str) -> float:
    """The number that the result is, without its sign; nan, which equals nothing, where
    it is something else."""
    try:
        return abs(float(result))
    except ValueError:
        return math.nan


def _answer(question: Question, answer: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFKC", answer)
    for expected in question.answer:
        if isinstance(expected, float):
            if not mentions(answer, expected):
                yield f"the answer lacks {expected:.12g}"
        elif not any(text.casefold() in plain.casefold() for text in expected):
            yield f"the answer lacks {expected[0]}"
    if question.wrong and (match := re.search(question.wrong, plain, re.IGNORECASE)):
        yield f"the answer says {match[0]!r}"


# ------------------------------------------------------------------------------ file

_Number = Annotated[float, msgspec.Meta(ge=0)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Texts = Annotated[list[_Text], msgspec.Meta(min_length=1)]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The file as it is written."""

    cases: Annotated[list[Any], msgspec.Meta(min_length=1)]
    names: list[_Texts] = []
    published: Published | None = None


class _Question(msgspec.Struct, forbid_unknown_fields=True):
    ask: _Text
    calls: list[Annotated[list[Any], msgspec.Meta(min_length=2)]] = []
    answer: list[_Number | _Text | _Texts] = []
    wrong: str = ""


class _Case(msgspec.Struct, forbid_unknown_fields=True):
    id: _Text
    questions: Annotated[list[_Question], msgspec.Meta(min_length=1)]


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    tool: str
    arguments: dict[str, Any]
    after: tuple[str, ...]


def read_cases(path: Path, tools: Sequence[Any]) -> tuple[list[Case], Published | None]:
    """Return the cases of a file, and the figures that stand in it. Every expected call
    is made once, for its result. Raises UsageError if the file or a case is not as it
    should be, naming the case: a field that is not known, a call that its tool refuses,
    an id or a first question that stands there twice."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
        file = msgspec.convert(data, _File)
    except OSError as error:
        raise UsageError(
            f"{path}: {translated(error.strerror or str(error))}"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(
            _("{path} is not YAML in UTF-8: {error}").format(path=path, error=error)
        ) from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}") from None
    names = {name.casefold(): tuple(group) for group in file.names for name in group}
    by_name = {tool_name(tool): tool for tool in tools}
    cases: list[Case] = []
    for number, entry in enumerate(file.cases, 1):
        named = entry.get("id", number) if isinstance(entry, dict) else number
        try:
            written = msgspec.convert(entry, _Case)
            questions = (_question(each, names, by_name) for each in written.questions)
            case = Case(written.id, tuple(questions), names)
            if case.id in {other.id for other in cases}:
                raise UsageError(_("the id is taken"))
            firsts = {other.questions[0].ask: other.id for other in cases}
            if twin := firsts.get(case.questions[0].ask):
                raise UsageError(
                    _("it begins with the same question as {twin}").format(twin=twin)
                )
        except (ValueError, re.error) as error:
            raise UsageError(
                _("{path}, case {named}: {error}").format(
                    path=path, named=named, error=error
                )
            ) from None
        cases.append(case)
    return cases, file.published


def _question(written: _Question, names: Names, tools: Mapping[str, Any]) -> Question:
    re.compile(written.wrong)
    calls: list[Call] = []
    for tool, arguments, *after in written.calls:
        fields = {"tool": tool, "arguments": arguments, "after": after}
        plain = msgspec.convert(fields, _Call)
        if missing := {*after} - {other.tool for other in calls}:
            words = ", ".join(sorted(missing))
            raise UsageError(
                _("{tool} needs {words}, not called before").format(
                    tool=told(tool, arguments), words=words
                )
            )
        result = _result(plain, tools) if tools else None
        calls.append(Call(plain.tool, plain.arguments, plain.after, result))
    answer = tuple(_expected(each, names) for each in written.answer)
    return Question(written.ask, tuple(calls), answer, written.wrong)


def _expected(
    written: float | str | list[str], names: Names
) -> float | tuple[str, ...]:
    """A number, or the texts of which one is enough: all names of what has several."""
    if isinstance(written, float):
        return written
    texts = [written] if isinstance(written, str) else written
    every = (name for text in texts for name in (text, *names.get(text.casefold(), ())))
    return tuple(dict.fromkeys(every))


def _result(call: _Call, tools: Mapping[str, Any]) -> str:
    """What the tool gives for the call. Raises UsageError if it cannot do its work."""
    words = _("{tool} cannot work").format(tool=told(call.tool, call.arguments))
    if call.tool not in tools:
        raise UsageError(
            _("{words}: no tool is named {tool!r}").format(words=words, tool=call.tool)
        )
    fixed = clock.set(CLOCK)
    try:
        result = _returned(tools[call.tool], call.arguments)
    except Exception as error:  # a user's tool may raise anything
        raise UsageError(f"{words}: {type(error).__name__}: {error}") from None
    finally:
        clock.reset(fixed)
    if getattr(type(result), "is_error", False):
        raise UsageError(f"{words}: {result}")
    if isinstance(result, str):
        return str(result)
    return json.dumps(result, ensure_ascii=False, default=str)


def _returned(tool: Any, arguments: dict[str, Any]) -> Any:
    """What a plain or async function returns, or a LangChain tool."""
    returned = tool.ainvoke(arguments) if hasattr(tool, "ainvoke") else None
    if returned is None:
        returned = tool(**arguments)
    if not inspect.isawaitable(returned):
        return returned

    async def finished() -> Any:
        return await returned

    return asyncio.run(finished())
