"""The plan: needs become tasks, and tasks become the next calls.

A task may take the results of others as inputs. If any task of the plan does, the calls
go one a model call, in the order of the question; if none does, all go in one turn.
"""

from __future__ import annotations

import math
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from toolkit.arithmetic import CannotEvaluate, evaluate

from .scan import Names
from .understand import Arithmetic, Clock, Conversion, Lookup, Need
from .view import CLOCK, LOOKS_UP, Call, Turn, View
from .words import UNITS

WEIGHTS = {  # how a run may drift above temperature 0
    "eager": 35,  # everything at once, with made-up numbers for what is not known yet
    "independent first": 25,  # at once what needs nothing, then the rest
    "swapped factors": 20,  # 385.6 * 100 instead of 100 * 385.6
    "head": 20,  # works the last step out without a call
}

UNIT_AFTER = {  # what stands behind the number in a result that has several
    "get_weather": r"\s*(?:°|℃|度)",
    "get_stock_price": r"\s*(?:[A-Z]{3}\b|港元|美元|元)",
}


@dataclass(frozen=True)
class Task:
    """One call that the plan wants. "{0}" in a value stands for the number of the first
    input, "{low}" and "{high}" for the least and the greatest of all."""

    tool: str
    values: tuple[str, ...] = ()
    inputs: tuple[Task, ...] = ()

    def filled(self, numbers: list[float]) -> tuple[object, ...]:
        """The values with the numbers in their places."""
        values = self.values
        if numbers:
            low, high, *texts = map(brief, (min(numbers), max(numbers), *numbers))
            if self.tool == "calculate":
                low, high, *texts = (
                    f"({t})" if t[0] == "-" else t for t in (low, high, *texts)
                )
            values = tuple(v.format(*texts, low=low, high=high) for v in values)
        return tuple(map(as_number, values)) if self.tool == "unit_convert" else values


def lookups(kind: str, names: Iterable[str]) -> list[Task]:
    """The task of looking up each of the names."""
    return [Task(LOOKS_UP[kind], (name,)) for name in names]


class Plan:
    """The tasks of a question, what is known of them, and what to call next."""

    def __init__(self, view: View, needs: list[Need], names: Names) -> None:
        self.view, self.needs, self.names = view, needs, names
        self.strategy = _strategy(view)
        self.here = self._results([view.turn])
        self.before = self._results(view.earlier)
        self.fresh: set[Task] = set()  # looked up again, whatever was said before
        for need in needs:
            if isinstance(need, Lookup) and need.fresh and not self.derived(need):
                self.fresh.update([] if need.degree else lookups(need.kind, need.names))
        self.steps = list(dict.fromkeys(t for need in needs for t in self.tasks(need)))

    def _results(self, turns: Iterable[Turn]) -> dict[object, str]:
        return {
            self.key(call.tool, call.values): call.result
            for turn in turns
            for call in turn.calls
            if call.result is not None
        }

    def key(self, tool: str, values: Iterable[object]) -> object:
        """Equal for calls that mean the same: 腾讯 and Tencent, 18 and 18.0."""
        return tool, *(self.names.same(str(as_number(value))) for value in values)

    # -- which tasks

    def tasks(self, need: Need) -> Iterator[Task]:
        """The tasks of a need, inputs before what takes them."""
        match need:
            case Clock():
                yield Task(CLOCK)
            case Arithmetic(expression):
                yield Task("calculate", (expression,))
            case Conversion(value, source, target, change):
                converted = Task("unit_convert", (value, source, target))
                yield converted
                if change:
                    yield Task("calculate", (change,), (converted,))
            case Lookup():
                yield from lookups(need.kind, need.names)
                yield from self.derived(need)

    def derived(self, need: Lookup) -> list[Task]:
        """What is calculated and converted from the values looked up."""
        values = lookups(need.kind, need.names)
        if need.shares:
            return self._worth(need, values)
        out: list[Task] = []
        slots = " + ".join(f"{{{i}}}" for i in range(len(values)))
        average = f"({slots}) / {len(values)}"
        forms = {"difference": "{high} - {low}", "average": average, "sum": slots}
        units = "{0}", "celsius", "fahrenheit"
        if need.fahrenheit and need.operation != "average":
            values = [Task("unit_convert", units, (value,)) for value in values]
            out += values
        if need.operation and self.one_currency(need):
            values = [Task("calculate", (forms[need.operation],), tuple(values))]
            out += values
        if need.fahrenheit and need.operation == "average":
            values = [Task("unit_convert", units, (value,)) for value in values]
            out += values
        if need.change:
            values = [Task("calculate", (need.change,), (value,)) for value in values]
            out += values
        return out

    def _worth(self, need: Lookup, prices: list[Task]) -> list[Task]:
        """One sum of what the shares are worth; one each when they are compared or the
        currencies differ."""
        parts = list(zip(need.shares, prices, strict=True))
        parts = [part for part in parts if not self.blocked(part[1])] or parts
        whole = not need.degree and self.one_currency(need)
        tasks = []
        for group in [parts] if whole else [[part] for part in parts]:
            form = " + ".join(f"{n} * {{{i}}}" for i, (n, _) in enumerate(group))
            if need.change:
                form = need.change.replace("{0}", f"({form})")
            tasks.append(Task("calculate", (form,), tuple(price for _, price in group)))
        return tasks

    def one_currency(self, need: Lookup) -> bool:
        """Whether the values known so far can be compared, added and subtracted."""
        return len({self.unit(t) for t in lookups(need.kind, need.names)} - {""}) < 2

    # -- what is known

    def values(self, task: Task) -> tuple[object, ...] | None:
        """The values to call it with; None while a number for them is missing."""
        numbers = [self.number(t) for t in task.inputs]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            return None
        filled = task.filled(known)
        swap = self.strategy in ("swapped factors", "eager")
        if swap and numbers and task.tool == "calculate":
            return tuple(_swapped(str(value)) for value in filled)
        return filled

    def result(self, task: Task) -> str | None:
        values = self.values(task)
        if values is None:
            return None
        key = self.key(task.tool, values)
        remembered = task.tool in LOOKS_UP.values() and task not in self.fresh
        return self.here.get(key, self.before.get(key) if remembered else None)

    def number(self, task: Task) -> float | None:
        """The number in the result; some strategies make one up or work it out."""
        if (text := self.result(task)) is not None:
            failed = text.lstrip().startswith("Error")
            after = UNIT_AFTER.get(task.tool, "")
            return None if failed else last_number(text, after)
        if self.strategy not in ("eager", "head") or not self.offered(task):
            return None
        if self.strategy == "eager" and not self.view.turn.calls and not task.inputs:
            return _invented(task.tool, self.names.same("".join(task.values[:1])))
        values = self.values(task)
        if values is not None and task.tool == "calculate":
            try:
                return float(evaluate(str(values[0])))
            except CannotEvaluate:
                return None
        if values is not None and task.tool == "unit_convert" and task.inputs:
            return float(str(values[0])) * 9 / 5 + 32
        return None

    def unit(self, task: Task) -> str:
        """The unit of the number: °C, lb, or the currency of a price."""
        if task.tool == "get_weather":
            return "°C"
        if task.tool == "unit_convert":
            return UNITS[task.values[2]].many
        if task.tool == "get_stock_price":
            found = re.search(r"\d ([A-Z]{3})\b", self.result(task) or "")
            return found[1] if found else ""
        return self.unit(task.inputs[0]) if task.inputs else ""

    def offered(self, task: Task) -> bool:
        """Whether the request offers the tool, with parameters that we know."""
        tool = self.view.tools.get(task.tool)
        return tool is not None and tool.parameters is not None

    def blocked(self, task: Task) -> bool:
        """Whether it cannot be done: not offered, failed, or an input of it is."""
        if not self.offered(task) or any(map(self.blocked, task.inputs)):
            return True
        return self.result(task) is not None and self.number(task) is None

    def wrong_results(self) -> list[str]:
        """The results of calls that the plan would not make now: they used a guess."""
        right = {self.key(task.tool, self.values(task) or ()) for task in self.steps}
        calls = [call for call in self.view.turn.calls if self.strategy == "eager"]
        return [
            c.result or "" for c in calls if self.key(c.tool, c.values) not in right
        ]

    # -- what to call next

    def next_calls(self) -> list[Call]:
        """The calls of the next turn; none when it is time to answer."""
        plan = [task for task in self.steps if self.offered(task)]
        undone = [task for task in plan if self._undone(task)]
        if len(self.view.turn.calls) >= 2 * len(plan):  # the results do not come back
            return []
        if self.strategy == "eager" and self.view.turn.calls:
            return []
        ready = [(task.tool, self.values(task)) for task in undone]
        calls = [Call(tool, values) for tool, values in ready if values is not None]
        chained = any(task.inputs for task in plan)
        at_once = self.strategy in ("eager", "independent first") or not chained
        return calls if at_once and not self.view.one_at_a_time else calls[:1]

    def _undone(self, task: Task) -> bool:
        in_head = self.strategy == "head" and self.number(task) is not None
        return self.result(task) is None and not in_head and not self.blocked(task)


# ------------------------------------------------------------------------- strategies


def _strategy(view: View) -> str:
    """The strategy: the same for all requests of a run; at temperature 0 "serial"."""
    heat = view.temperature
    rng = random.Random(f"{view.seed}|{view.turn.question}|{heat}")
    if rng.random() >= 1 - math.exp(-heat):
        return "serial"
    chosen = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    return "serial" if chosen == "eager" and view.one_at_a_time else chosen


def _invented(tool: str, name: str) -> float | None:
    """20 °C anywhere; 300 for Tencent, a round number for each other company."""
    if tool == "get_stock_price" and name in ("腾讯", "Tencent"):
        return 300.0
    stable = zlib.crc32(name.encode()) % 40 * 10 + 50.0
    return {"get_weather": 20.0, "get_stock_price": stable}.get(tool)


def _swapped(expression: str) -> str:
    """The expression with the factors of each product in the other order."""
    return re.sub(r"([\d.]+) \* ([\d.]+)", r"\2 * \1", expression)


# ---------------------------------------------------------------------------- numbers


def last_number(text: str, before: str = "") -> float | None:
    """The last number of the text, or the last that stands before such a pattern."""
    figure = r"-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
    found = re.findall(f"({figure}){before}", text)
    number = float(found[-1].replace(",", "")) if found else math.inf
    return number if math.isfinite(number) else None


def brief(number: float) -> str:
    """At most twelve digits and no ".0"."""
    return f"{number:.12g}"


def as_number(value: object) -> object:
    """A number without ".0", so that 18, 18.0 and "18" are one; else the value."""
    if not isinstance(value, str | float):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else number
