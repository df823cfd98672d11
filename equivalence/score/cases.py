"""The benchmark: cases as data, and whether a run completed one.

They stand in scenarios/benchmark.yaml:

    - id: tencent-shares                  # one word, unique
      kind: several tools                 # one tool, several tools, none, follow-up
      language: zh                        # of the questions: zh or en
      questions:                          # several are a conversation
        - ask: 腾讯股票多少钱？持有 100 股市值多少港元？
          calls:                          # what has to be called; default: nothing
            - [get_stock_price, {symbol: 腾讯}]
            - [calculate, {expression: 100 * 385.6}, get_stock_price]
          answer: [385.6, 38560]          # what has to be in the answer
          wrong: 下跌                      # a pattern that must not be in it

"one tool" is a case of one call, "several tools" one of several, also of one tool.

A call counts as made when a tool did its work and gave the expected result: 385.6*100
is 100 * 385.6, and Beijing is 北京. A calculation is compared by its number, without
the sign, because a difference may be taken either way. The order is free, but a call
with a third element comes in a later model call than those whose results it needs.
Calls beyond these are allowed and reported, except where the kind is none: there no
call is right.

Of the answer, a number may be rounded by at most 1 %, scaled (3.856万) or in words; its
sign is a text of its own. A text may be a list of which one is enough, and a city or a
company stands for all of its names.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from equivalence.errors import UsageError
from equivalence.runs.grounding import mentions
from equivalence.runs.record import Run, Step
from equivalence.runs.session import CLOCK
from equivalence.settings import Settings
from toolkit.policy import ToolOutcome, by_name, run_tool
from tools import STOCKS, TOOLS, WEATHER

FILE = Path(__file__).parent.parent / "scenarios" / "benchmark.yaml"

KINDS = ("one tool", "several tools", "none", "follow-up")
LANGUAGES = ("zh", "en")


@dataclass(frozen=True)
class Call:
    """A call that has to be made."""

    tool: str
    arguments: dict[str, Any]
    after: tuple[str, ...] = ()
    """The tools whose results it needs."""

    def __str__(self) -> str:
        return told(self.tool, self.arguments)


@dataclass(frozen=True)
class Question:
    """What is asked, and what a right run of it holds."""

    ask: str
    calls: tuple[Call, ...] = ()
    answer: tuple[Decimal | tuple[str, ...], ...] = ()
    """Numbers, and texts of which one is enough."""
    wrong: str = ""
    """A pattern of what the answer must not say."""


@dataclass(frozen=True)
class Case:
    """Questions asked one after another, in one conversation."""

    id: str
    kind: str
    language: str
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Outcome:
    """Whether a case was completed, the reasons in words where it was not, and the
    calls beyond those expected."""

    reasons: tuple[str, ...]
    extra_calls: tuple[str, ...]

    @property
    def completed(self) -> bool:
        return not self.reasons


def check(case: Case, runs: Sequence[Run]) -> Outcome:
    """Return the outcome of the case; the runs are those of its questions, in order."""
    reasons: list[str] = []
    extra: list[str] = []
    pairs = list(zip(case.questions, runs, strict=True))
    for number, (question, run) in enumerate(pairs, 1):
        missing, left = _compare_calls(question.calls, run.steps)
        beyond = [told(step.tool, step.arguments) for step in left]
        found = list(_ending(run))
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


# ----------------------------------------------------------------------------- calls


def _compare_calls(
    calls: Sequence[Call], steps: Sequence[Step]
) -> tuple[list[str], list[Step]]:
    """Which calls were not made, in words, and the steps that are none of them."""
    missing: list[str] = []
    answered: dict[str, int] = {}  # the model call that asked for it last, by tool
    left = list(steps)
    for call in calls:
        same = [step for step in left if _same(call, step)]
        needed = max((answered.get(tool, 0) for tool in call.after), default=0)
        made = next((step for step in same if step.turn > needed), None)
        if made:
            left.remove(made)
            answered[call.tool] = max(made.turn, answered.get(call.tool, 0))
        elif same:
            names = " and ".join(call.after)
            missing.append(f"{call} was called before {names} had answered")
        else:
            missing.append(f"{call} was not called")
    return missing, left


def _same(call: Call, step: Step) -> bool:
    """Whether the step is the call: the same tool, which did its work and gives the
    same result. Where the tools could not be watched, its arguments tell."""
    if step.tool != call.tool or step.ok is False:
        return False
    if not isinstance(step.arguments, dict):
        return False
    wanted, got = outcome(call), outcome(Call(step.tool, step.arguments))
    if wanted.ok and got.ok and call.tool == "calculate":
        numbers = abs(float(wanted.content)), abs(float(got.content))
        return math.isclose(*numbers, rel_tol=1e-9)
    return wanted == got


def outcome(call: Call) -> ToolOutcome:
    """Return what the demo tools make of the call."""
    return _outcome(call.tool, json.dumps(call.arguments, ensure_ascii=False))


@cache
def _outcome(tool: str, arguments: str) -> ToolOutcome:
    defaults = Settings.model_construct(clock=CLOCK)  # whatever the environment says
    return run_tool(tool, json.loads(arguments), by_name(TOOLS), defaults)


# ---------------------------------------------------------------------------- answer


def _ending(run: Run) -> Iterator[str]:
    if run.status != "completed":
        yield f"it ended as {run.status}" + (f": {run.error}" if run.error else "")


def _answer(question: Question, answer: str) -> Iterator[str]:
    plain = unicodedata.normalize("NFKC", answer)
    for expected in question.answer:
        if isinstance(expected, Decimal):
            if not mentions(answer, expected):
                yield f"the answer lacks {expected}"
        elif not any(text.casefold() in plain.casefold() for text in expected):
            yield f"the answer lacks {expected[0]}"
    if question.wrong and (match := re.search(question.wrong, plain, re.IGNORECASE)):
        yield f"the answer says {match[0]!r}"


def _names(text: str) -> tuple[str, ...]:
    """All names of the city or company; the text itself where it is none."""
    for names in (*WEATHER, *STOCKS):
        if text in names:
            return (text, *(name for name in names if name != text))
    return (text,)


# ------------------------------------------------------------------------------ file


def read_cases(path: Path = FILE) -> list[Case]:
    """Return the cases of a file. ValueError names the case that cannot be one: a field
    that is not known, a call that the tools refuse, an id or a first question that
    stands there twice."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not YAML in UTF-8: {error}") from None
    if not isinstance(data, list) or not data:
        raise UsageError(f"{path} holds no list of cases")
    cases: list[Case] = []
    for number, entry in enumerate(data, 1):
        named = entry.get("id", number) if isinstance(entry, dict) else number
        try:
            case = _case(**entry)
            if case.id in {other.id for other in cases}:
                raise UsageError("the id is taken")
            firsts = {other.questions[0].ask: other.id for other in cases}
            if twin := firsts.get(case.questions[0].ask):
                raise UsageError(f"it begins with the same question as {twin}")
        except (TypeError, ValueError, re.error) as error:
            words = re.sub(r"^_\w+\(\) ", "", str(error))
            raise UsageError(f"{path}, case {named}: {words}") from None
        cases.append(case)
    return cases


def _case(*, id: str, kind: str, language: str, questions: list[Any]) -> Case:
    if kind not in KINDS:
        raise UsageError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    if language not in LANGUAGES:
        raise UsageError(f"language {language!r} is none of {', '.join(LANGUAGES)}")
    if not questions:
        raise UsageError("it has no questions")
    return Case(str(id), kind, language, tuple(_question(**each) for each in questions))


def _question(
    *,
    ask: str,
    calls: Sequence[Any] = (),
    answer: Sequence[Any] = (),
    wrong: str = "",
) -> Question:
    re.compile(wrong)
    expected = tuple(_call(*call) for call in calls)
    for index, call in enumerate(expected):
        if missing := set(call.after) - {other.tool for other in expected[:index]}:
            raise UsageError(f"{call} needs {', '.join(missing)}, which is not before")
    return Question(ask, expected, tuple(_expected(each) for each in answer), wrong)


def _call(tool: str, arguments: dict[str, Any], *after: str) -> Call:
    call = Call(tool, arguments, after)
    if not (tried := outcome(call)).ok:
        raise UsageError(f"{call} cannot work: {tried.content}")
    return call


def _expected(each: Any) -> Decimal | tuple[str, ...]:
    if isinstance(each, int | float) and not isinstance(each, bool):
        if each < 0:
            raise UsageError(f"{each}: a number has no sign here, write that as a text")
        return Decimal(str(each))
    texts = each if isinstance(each, list) else [each]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise UsageError(f"{each!r} is neither a number nor a text: put it in quotes")
    return tuple(name for text in texts for name in _names(text))
