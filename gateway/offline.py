"""The offline model: a scripted stand-in that plans tool calls as a real one would.

It needs no key and no download. `reply` is a pure function of the request and a seed:

1. The request becomes a `View`: the question, the turns before it, the calls made so
   far with their results, the offered tools. Chat requests with tools and text-ReAct
   prompts become the same View.
2. offline_language says what the question needs.
3. Each need becomes tasks; a task may take the results of others as inputs.
4. Temperature 0: if any task of the plan takes the result of another, the calls go one
   a model call, in the order of the question; if none does, all go in one turn. A
   higher temperature now and then picks another strategy, seeded. One of them, eager,
   sends everything at once and makes up the numbers that it does not have yet.
5. When nothing is left to call, the results are put into words, in the language of the
   question. An error is told and never retried; what depends on it is not called.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import random
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.offline_language import (
    Arithmetic,
    Clock,
    Conversion,
    Holding,
    Lookup,
    Memory,
    Names,
    Need,
    Talk,
    is_chinese,
    known_names,
    understand,
)

REACT = "Action Input:"
TOOL_OF = {"weather": "get_weather", "price": "get_stock_price"}
ARGUMENT_OF = {"weather": "city", "price": "symbol"}


def reply(request: dict[str, Any], run_seed: int = 0) -> dict[str, Any]:
    """Return the assistant message with the next calls or the answer."""
    view = View.of(request, run_seed)
    names = Names(
        known_names(view.tools.get("get_weather", ""), "cities"),
        known_names(view.tools.get("get_stock_price", ""), "companies"),
    )
    memory = Memory()
    for turn in view.earlier:
        _, memory = understand(turn.question, names, memory)
    needs, _ = understand(view.question, names, memory, view.said())
    plan = Plan(view, needs, names)
    calls = plan.next_calls()
    chinese = is_chinese(view.question, names)
    if view.react:
        return _react_message(calls, plan, chinese)
    if not calls:
        return {"role": "assistant", "content": Answer(plan, chinese).text()}
    return {"role": "assistant", "content": None, "tool_calls": view.numbered(calls)}


# ---------------------------------------------------------------------- the request


@dataclass
class Call:
    """One tool call of the conversation, with its result once there is one."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    result: str | None = None


@dataclass
class Turn:
    """One question, and what followed it."""

    question: str
    calls: list[Call] = field(default_factory=list)
    answer: str = ""


@dataclass
class View:
    """What a request says, whichever form it has."""

    turns: list[Turn]
    tools: dict[str, str]  # name: description
    react: bool
    one_at_a_time: bool
    temperature: float
    seed: str

    @classmethod
    def of(cls, request: Mapping[str, Any], run_seed: int) -> View:
        messages = [m for m in _list(request.get("messages")) if isinstance(m, dict)]
        system = "\n".join(_text(m) for m in messages if m.get("role") == "system")
        tools = _list(request.get("tools"))
        react = not tools and REACT in system
        offered = (
            _tools_in(system) if react else [_dict(t).get("function") for t in tools]
        )
        if request.get("tool_choice") == "none":
            offered = []
        seed = request.get("seed")
        return cls(
            turns=_turns(messages, react),
            tools={
                str(tool.get("name")): str(tool.get("description", ""))
                for tool in offered
                if isinstance(tool, dict)
            },
            react=react,
            one_at_a_time=react or request.get("parallel_tool_calls") is False,
            temperature=_number(request.get("temperature")),
            seed=str(run_seed if seed is None else seed),
        )

    @property
    def question(self) -> str:
        return self.turns[-1].question

    @property
    def earlier(self) -> list[Turn]:
        return self.turns[:-1]

    @property
    def calls(self) -> list[Call]:
        return self.turns[-1].calls

    def said(self) -> list[str]:
        """The answers and results of the earlier turns, newest first."""
        return [
            text
            for turn in reversed(self.earlier)
            for text in (turn.answer, *(call.result for call in reversed(turn.calls)))
            if text
        ]

    def numbered(self, calls: Iterable[Call]) -> list[dict[str, Any]]:
        """The calls as they go over the wire, with ids new to the conversation."""
        taken = [call.id for turn in self.turns for call in turn.calls]
        number, out = len(taken), []
        for call in calls:
            number += 1
            while f"call_{number}" in taken:
                number += 1
            function = {"name": call.tool, "arguments": _json(call.arguments)}
            out.append(
                {"id": f"call_{number}", "type": "function", "function": function}
            )
        return out


def _turns(messages: list[dict[str, Any]], react: bool) -> list[Turn]:
    """The conversation as turns; never empty."""
    turns = [Turn("")]
    for message in messages:
        role, text = message.get("role"), _text(message)
        if role == "user" and react and text.lstrip().startswith("Observation:"):
            _attach(turns[-1].calls, None, text.split("Observation:", 1)[1].strip())
        elif role == "user":
            turns.append(Turn(text))
        elif role == "tool":
            _attach(turns[-1].calls, message.get("tool_call_id"), text)
        elif role == "assistant":
            calls = _react_calls(text) if react else _chat_calls(message)
            turns[-1].calls += calls
            if not calls:
                turns[-1].answer = text.rpartition("Final Answer:")[2].strip()
    return turns[1:] or turns


def _chat_calls(message: Mapping[str, Any]) -> list[Call]:
    calls = []
    for call in _list(message.get("tool_calls")):
        function = _dict(_dict(call).get("function"))
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            arguments = _parsed(arguments)
        call_id = str(_dict(call).get("id"))
        calls.append(Call(call_id, str(function.get("name")), _dict(arguments)))
    return calls


def _react_calls(text: str) -> list[Call]:
    found = re.search(r"Action:([^\n]*)\n\s*Action Input:(.*)", text, re.DOTALL)
    if found is None:
        return []
    return [Call("", found[1].strip(), _dict(_parsed(found[2].strip())))]


def _attach(calls: list[Call], call_id: object, result: str) -> None:
    """Give the result to its call: by id, else to the first that has none."""
    waiting = [call for call in calls if call.result is None]
    same = [call for call in waiting if call.id == call_id]
    for call in (same or waiting)[:1]:
        call.result = result


def _tools_in(system: str) -> list[Any]:
    lines = [line.strip().lstrip("-* ") for line in system.splitlines()]
    tools = [_dict(_parsed(line)) for line in lines if line.startswith("{")]
    return [tool for tool in tools if "name" in tool]


def _text(message: Mapping[str, Any]) -> str:
    """The text of a message, also of one whose content is a list of blocks."""
    content = message.get("content")
    if isinstance(content, list):
        texts = (b if isinstance(b, str) else _dict(b).get("text") for b in content)
        content = "".join(text for text in texts if isinstance(text, str))
    text = content if isinstance(content, str) else ""
    return text.encode("utf-8", "replace").decode("utf-8")


def _parsed(text: str) -> Any:
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _number(value: object) -> float:
    if isinstance(value, int | float) and 0 <= value <= 100:
        return float(value)
    return 0.0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------- the plan


@dataclass(frozen=True)
class Task:
    """One call that the plan wants; "{0}" in an argument is the number of an input."""

    tool: str
    arguments: tuple[tuple[str, str], ...] = ()
    inputs: tuple[Task, ...] = ()

    def filled(self, numbers: list[float]) -> dict[str, Any]:
        """The arguments with the numbers in their places."""
        if not self.inputs:
            return {
                k: float_or_int(v) if k == "value" else v for k, v in self.arguments
            }
        low, high = brief(min(numbers)), brief(max(numbers))
        texts = [brief(number) for number in numbers]
        if self.tool == "calculate":
            low, high, *texts = (
                f"({t})" if t[0] == "-" else t for t in (low, high, *texts)
            )
        return {
            key: float_or_int(numbers[0])
            if key == "value"
            else value.format(*texts, low=low, high=high)
            for key, value in self.arguments
        }


def lookup(kind: str, name: str) -> Task:
    return Task(TOOL_OF[kind], ((ARGUMENT_OF[kind], name),))


def calculation(expression: str, *inputs: Task) -> Task:
    return Task("calculate", (("expression", expression),), inputs)


def conversion(value: str, source: str, target: str, *inputs: Task) -> Task:
    units = (("from_unit", source), ("to_unit", target))
    return Task("unit_convert", (("value", value), *units), inputs)


OTHER_STRATEGIES = {
    "eager": 35,
    "independent first": 25,
    "swapped factors": 20,
    "head": 20,
}


def strategy(view: View) -> str:
    """The same for all model calls of a run; at temperature 0 always serial."""
    heat = view.temperature
    rng = random.Random(f"{view.seed}|{view.question}|{heat}")
    if rng.random() >= 1 - math.exp(-heat):
        return "serial"
    return rng.choices(list(OTHER_STRATEGIES), list(OTHER_STRATEGIES.values()))[0]


class Plan:
    """The tasks of a question, what is known of them, and what to call next."""

    def __init__(self, view: View, needs: list[Need], names: Names) -> None:
        self.view, self.needs, self.names = view, needs, names
        self.strategy = strategy(view)
        self.here = self._results(view.calls)
        self.before = self._results(call for t in view.earlier for call in t.calls)
        self.fresh = {
            lookup(need.kind, name)
            for need in needs
            if isinstance(need, Lookup) and need.fresh and need.plain
            for name in need.names
        }
        self.steps = list(dict.fromkeys(t for need in needs for t in self.tasks(need)))

    def _results(self, calls: Iterable[Call]) -> dict[str, str]:
        return {
            self._key(call.tool, call.arguments): call.result
            for call in calls
            if call.result is not None
        }

    def _key(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Equal for calls that mean the same: 腾讯 and Tencent, 18 and 18.0."""
        same = {
            key: self.names.same(value) if key in ARGUMENT_OF.values() else value
            for key, value in arguments.items()
            if isinstance(value, str)
        }
        others = {k: float_or_int(v) for k, v in arguments.items() if k not in same}
        return _json(
            [tool, sorted(same.items(), key=str), sorted(others.items(), key=str)]
        )

    # -- which tasks

    def tasks(self, need: Need) -> Iterator[Task]:
        """The tasks of a need, inputs before what takes them."""
        match need:
            case Clock():
                yield Task("get_current_time")
            case Arithmetic(expression):
                yield calculation(expression)
            case Conversion(value, source, target):
                yield conversion(value, source, target)
            case Holding():
                yield from (lookup("price", company) for _, company in need.parts)
                yield from self.worth(need)
            case Lookup():
                yield from (lookup(need.kind, name) for name in need.names)
                yield from self.derived(need)

    def worth(self, need: Holding) -> list[Task]:
        """One sum of what the shares are worth; one each when the currencies differ."""
        parts = [(count, lookup("price", company)) for count, company in need.parts]
        parts = [part for part in parts if not self.blocked(part[1])] or parts
        groups = [parts] if self.one_currency(need) else [[part] for part in parts]
        tasks = []
        for group in groups:
            sum_ = " + ".join(f"{n} * {{{i}}}" for i, (n, _) in enumerate(group))
            if need.change:
                sum_ = need.change.replace("{0}", f"({sum_})")
            tasks.append(calculation(sum_, *(price for _, price in group)))
        return tasks

    def derived(self, need: Lookup) -> list[Task]:
        """What is calculated and converted from the values looked up."""
        values = [lookup(need.kind, name) for name in need.names]
        out: list[Task] = []
        if need.operation in COMBINED and self.one_currency(need):
            slots = " + ".join(f"{{{i}}}" for i in range(len(values)))
            average = f"({slots}) / {len(values)}"
            forms = {"difference": "{high} - {low}", "average": average, "sum": slots}
            form = forms[need.operation]
            out = values = [calculation(form, *values)]
        if need.change:
            values = [calculation(need.change, value) for value in values]
            out = out + values
        if need.unit and need.operation not in ("difference", "sum"):
            values = [
                conversion("{0}", "celsius", need.unit, value) for value in values
            ]
            out = out + values
        return out

    def one_currency(self, need: Lookup | Holding) -> bool:
        """Whether the prices known so far can be added and subtracted."""
        names = need.names if isinstance(need, Lookup) else [c for _, c in need.parts]
        found = {self.unit(lookup("price", name)) for name in names}
        return len(found - {""}) < 2

    # -- what is known

    def arguments(self, task: Task, guess: bool = False) -> dict[str, Any] | None:
        """The arguments of the call; None while a number for them is missing."""
        numbers = [self.number(t, guess) for t in task.inputs]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            return None
        filled = task.filled(known)
        swap = self.strategy in ("swapped factors", "eager") and task.inputs
        if swap and "expression" in filled:
            factors = r"([\d.]+) \* ([\d.]+)"
            filled["expression"] = re.sub(factors, r"\2 * \1", filled["expression"])
        return filled

    def result(self, task: Task) -> str | None:
        arguments = self.arguments(task)
        if arguments is None:
            return None
        key = self._key(task.tool, arguments)
        looked_up = task.tool in TOOL_OF.values() and task not in self.fresh
        return self.here.get(key, self.before.get(key) if looked_up else None)

    def number(self, task: Task, guess: bool = False) -> float | None:
        """The number in the result; with `guess`, one made up while there is none."""
        if (text := self.result(task)) is not None:
            found = None if is_error(text) else NUMBER_IN[task.tool].findall(text)
            return float(found[-1].replace(",", "")) if found else None
        if guess or self.in_head(task):
            return self.invented(task) if guess else self.worked_out(task)
        return None

    def in_head(self, task: Task) -> bool:
        """Whether the number is worked out without a call: the strategy head, and eager
        once it sees the real values."""
        after_guess = self.strategy == "eager" and bool(self.view.calls)
        return after_guess or (self.strategy == "head" and task.tool == "calculate")

    def worked_out(self, task: Task, guess: bool = False) -> float | None:
        arguments = self.arguments(task, guess)
        if arguments is None:
            return None
        if task.tool == "calculate":
            return value_of(arguments["expression"])
        if task.tool == "unit_convert" and task.inputs:
            return float(arguments["value"]) * 9 / 5 + 32
        return None

    def invented(self, task: Task) -> float | None:
        """300 for Tencent; a round number that its name fixes for other companies."""
        if task.tool == "get_stock_price":
            name = self.names.same(task.arguments[0][1]).casefold()
            stable = zlib.crc32(name.encode()) % 40 * 10 + 50
            return 300.0 if name in ("腾讯", "tencent") else float(stable)
        return 20.0 if task.tool == "get_weather" else self.worked_out(task, guess=True)

    def unit(self, task: Task) -> str:
        """The unit of the number: °C, or the currency of a price."""
        if task.tool == "get_weather":
            return "°C"
        if task.tool == "get_stock_price":
            found = re.search(r"\d ([A-Z]{3})\b", self.result(task) or "")
            return found[1] if found else ""
        return self.unit(task.inputs[0]) if task.inputs else ""

    def blocked(self, task: Task) -> bool:
        """Whether it cannot be done: not offered, failed, or an input of it is."""
        if task.tool not in self.view.tools or any(map(self.blocked, task.inputs)):
            return True
        text = self.result(task)
        return text is not None and self.number(task) is None and task.tool != CLOCK

    # -- what to call next

    def next_calls(self) -> list[Call]:
        """The calls of the next turn; none when it is time to answer."""
        plan = [
            t for t in self.steps if t.tool in self.view.tools and not self.early(t)
        ]
        undone = [t for t in plan if self.undone(t)]
        if len(self.view.calls) >= 2 * len(plan):  # the results do not come back
            return []
        if self.strategy == "eager":
            if self.view.calls and not self.view.react:
                return []
            return self._calls(undone, guess=True)
        ready = [t for t in undone if self.arguments(t) is not None]
        chained = any(t in plan for task in plan for t in task.inputs)
        if chained and self.strategy == "independent first":
            return self._calls(ready)
        return self._calls(ready[:1] if chained else ready)

    def early(self, task: Task) -> bool:
        """Whether an earlier turn has looked it up already."""
        return (
            task not in self.fresh
            and task.tool in TOOL_OF.values()
            and (self._key(task.tool, dict(task.arguments)) in self.before)
        )

    def undone(self, task: Task) -> bool:
        head = self.strategy == "head" and task.tool == "calculate"
        return self.result(task) is None and not head and not self.blocked(task)

    def _calls(self, tasks: list[Task], guess: bool = False) -> list[Call]:
        pairs = ((task.tool, self.arguments(task, guess)) for task in tasks)
        calls = [
            Call("", tool, arguments)
            for tool, arguments in pairs
            if arguments is not None
        ]
        return calls[:1] if self.view.one_at_a_time else calls


# ----------------------------------------------------------------------- the answer


class Answer:
    """Puts the results into words, need by need, in the language of the question."""

    def __init__(self, plan: Plan, chinese: bool) -> None:
        self.plan, self.chinese = plan, chinese

    def text(self) -> str:
        told = [sentence for need in self.plan.needs for sentence in self.part(need)]
        sentences = list(dict.fromkeys(filter(None, [*told, self.correction()])))
        return ("" if self.chinese else " ").join(sentences)

    def say(self, chinese: str, english: str) -> str:
        return chinese if self.chinese else english

    def part(self, need: Need) -> Iterator[str]:
        """The sentences that answer one need: first what went wrong, if anything."""
        if isinstance(need, Talk):
            yield TALK[need.about][0 if self.chinese else 1]
            return
        troubles = [self.trouble(task) for task in self.plan.tasks(need)]
        yield from troubles
        match need:
            case Clock() if not any(troubles):
                yield self.clock()
            case Arithmetic() | Conversion() if not any(troubles):
                yield self.alone(need)
            case Holding():
                yield from self.holding(need)
            case Lookup():
                yield from self.lookup(need)

    def trouble(self, task: Task) -> str:
        """Why this task has no result; empty when it has, or another is to blame."""
        result, about = self.plan.result(task), self.about(task)
        if any(self.plan.number(t) is None for t in task.inputs):
            return ""
        if task.tool not in self.plan.view.tools:
            return self.say(
                f"没有提供 {task.tool} 工具，所以我无法得到{about}。",
                f"The tool {task.tool} is not offered, so I cannot get {about}.",
            )
        if result is None:
            done = self.plan.number(task) is not None
            missing = f"没有得到{about}的结果。", f"There is no result for {about}."
            return "" if done else self.say(*missing)
        if task.tool == CLOCK and not is_error(result):
            return ""
        if self.plan.number(task) is None:
            short = re.split(r" Known: | A correct ", result)[0].strip()[:200]
            return self.say(
                f"没有得到{about}，工具返回：{short.rstrip('.')}。",
                f"I could not get {about}: {short}",
            )
        return ""

    def about(self, task: Task) -> str:
        """What a task is after, as a noun."""
        name = task.arguments[0][1] if task.arguments else ""
        match task.tool:
            case "get_weather":
                return self.say(f"{name}的天气", f"the weather in {name}")
            case "get_stock_price":
                return self.say(f"{name}的股价", f"the share price of {name}")
            case "unit_convert":
                return self.say("换算结果", "the conversion")
            case "calculate":
                expression = (self.plan.arguments(task) or {}).get("expression", "")
                return self.say(
                    f"计算结果（{expression}）", f"the result of {expression}"
                )
        return self.say("当前时间", "the current time")

    def shown(self, task: Task) -> str:
        """The number of a task as people write it: 38,560."""
        text = (self.plan.result(task) or "").strip()
        if task.tool == "calculate" and re.fullmatch(r"-?\d+(?:\.\d+)?", text):
            return grouped(text)
        number = self.plan.number(task)
        return "?" if number is None else grouped(brief(number))

    def money(self, code: str) -> str:
        return self.say(
            {"HKD": "港元（HKD）", "USD": "美元（USD）"}.get(code, code), code
        )

    def clock(self) -> str:
        text = self.plan.result(Task(CLOCK)) or ""
        found = re.match(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d(?::\d\d)?) \((\w+)", text)
        if found is None:
            return self.say(f"现在是 {text}。", f"It is now {text}.")
        date, time, day = found.groups()
        day_zh = WEEKDAYS.get(day, day)
        return self.say(
            f"现在是 {date} {time}，{day_zh}。", f"It is {time} on {day}, {date}."
        )

    def alone(self, need: Arithmetic | Conversion) -> str:
        """An expression or a conversion of known numbers, and what comes out."""
        (task,) = self.plan.tasks(need)
        result, end = self.shown(task), self.say("。", ".")
        if isinstance(need, Arithmetic):
            shown = need.expression.replace("*", "×").replace(" / ", " ÷ ")
            return f"{shown} = {result} {need.unit}".rstrip() + end
        source, target = self.units(need.from_unit), self.units(need.to_unit)
        return f"{grouped(need.value)} {source} = {result} {target}{end}"

    def units(self, unit: str) -> str:
        chinese, english = UNIT_NAMES.get(unit, (unit, unit))
        return self.say(chinese, english)

    def holding(self, need: Holding) -> Iterator[str]:
        """What the shares are worth, with the price of one."""
        for task in self.plan.worth(need):
            if self.plan.number(task) is None:
                continue
            unit = self.plan.unit(task)
            prices = dict(self.named(task.inputs))
            held = [(n, c) for n, c in need.parts if c in prices]
            zh = "和".join(f" {grouped(n)} 股{c}（每股 {prices[c]}）" for n, c in held)
            en = " and ".join(
                f"{grouped(n)} shares of {c} ({prices[c]})" for n, c in held
            )
            worth = f"{self.shown(task)} {self.money(unit)}"
            total = self.say("合计", " in total") if len(held) > 1 else ""
            if need.change:
                steps = (self.plan.arguments(task) or {}).get("expression", "")
                worth = f"{steps.replace('*', '×')} = {worth}"
            yield self.say(
                f"持有{zh}，市值{total} {worth}。", f"{en} are worth {worth}{total}."
            )

    def named(self, tasks: Iterable[Task]) -> list[tuple[str, str]]:
        """Each name with its value and unit, for the tasks that have a number."""
        return [
            (task.arguments[0][1], f"{self.shown(task)} {self.plan.unit(task)}".strip())
            for task in tasks
            if self.plan.number(task) is not None
        ]

    def lookup(self, need: Lookup) -> Iterator[str]:
        """The values looked up and what was made of them."""
        tasks = [lookup(need.kind, name) for name in need.names]
        known = [task for task in tasks if self.plan.number(task) is not None]
        derived = self.plan.derived(need)
        if need.operation in ("highest", "lowest") and len(known) > 1:
            yield self.compared(need, known)
        elif known and derived and (need.change or need.operation != "each"):
            values = [f"{name} {value}" for name, value in self.named(known)]
            yield self.say("，".join(values), ", ".join(values)) + self.say("。", ".")
        elif known and not need.unit:
            yield from map(self.one, known)
        if (
            need.kind == "price"
            and need.operation != "each"
            and not self.plan.one_currency(need)
        ):
            yield self.say("货币不同，不能直接比较。", "The currencies differ.")
        yield from (self.outcome(need, task) for task in derived)

    def one(self, task: Task) -> str:
        """The weather of one city or the price of one company."""
        ((name, value),) = self.named([task])
        text = self.plan.result(task) or ""
        if task.tool == "get_weather":
            found = re.search(
                r"°C, (\S+) ([^,]+), humidity (\S+) %, wind (\S+) km/h", text
            )
            if found is None:
                return self.say(f"{name}现在 {value}。", f"{name}: {value}.")
            sky_zh, sky, humid, wind = found.groups()
            return self.say(
                f"{name}现在 {value}，{sky_zh}，湿度 {humid}%，风速 {wind} km/h。",
                f"{name} is at {value}, {sky}, humidity {humid} %, wind {wind} km/h.",
            )
        today = re.search(r"\(([-+][\d.]+) %", text)
        change = f"{today[1]} %" if today else ""
        return self.say(
            f"{name}股价 {value}" + (f"（今日 {change}）。" if change else "。"),
            f"{name} is at {value}" + (f" ({change} today)." if change else "."),
        )

    def compared(self, need: Lookup, known: list[Task]) -> str:
        """Which is first, and by what values."""
        sign = -1 if need.operation == "highest" else 1
        ranked = sorted(known, key=lambda task: sign * (self.plan.number(task) or 0))
        (name, value), *others = self.named(ranked)
        if self.plan.number(ranked[0]) == self.plan.number(ranked[1]):
            both = f"{name} {value} = {others[0][0]}"
            return self.say(f"一样：{both}。", f"They are the same: {both}.")
        zh, more, most = DEGREES[need.kind, need.operation]
        rest = "，".join(f"{n} {v}" for n, v in others)
        rest_en = ", ".join(
            f"{v} in {n}" if need.kind == "weather" else f"{n} {v}" for n, v in others
        )
        word = more if len(known) == 2 else f"the {most}"
        return self.say(
            f"{name}{'更' if len(known) == 2 else '最'}{zh}：{name} {value}，{rest}。",
            f"{name} is {word}: {value}, against {rest_en}.",
        )

    def outcome(self, need: Lookup, task: Task) -> str:
        """What a calculation or conversion on looked-up values gave."""
        if self.plan.number(task) is None:
            return ""
        number, unit, end = self.shown(task), self.plan.unit(task), self.say("。", ".")
        if task.tool == "unit_convert":
            name = dict(task.inputs[0].arguments).get("city", "")
            source = f"{name} {self.shown(task.inputs[0])}".strip()
            return f"{source} °C = {number} {self.units(need.unit or '')}{end}"
        steps = (self.plan.arguments(task) or {}).get("expression", "")
        if need.operation in COMBINED and len(task.inputs) > 1:
            zh, en = COMBINED[need.operation]
            return self.say(f"{zh} {number} {unit}。", f"{en}: {number} {unit}.")
        return f"{steps.replace('*', '×')} = {number} {unit}".rstrip() + end

    def correction(self) -> str:
        """Owns up to calls of the eager strategy that used an invented number."""
        plan = self.plan
        right = [plan.arguments(task) for task in plan.steps]
        guessed = [
            re.findall(FIGURE, call.result or "")[-1:]
            for call in plan.view.calls
            if call.tool in ("calculate", "unit_convert")
            and plan.strategy == "eager"
            and call.arguments not in right
            and None not in right
        ]
        listed = self.say("、", ", ").join(
            grouped(n) for found in guessed for n in found
        )
        return listed and self.say(
            f"（先前并行算出的 {listed} 用的是猜测的数，不作数，以上按真实数据更正。）",
            f"(The earlier {listed} used a guessed number; the above is corrected.)",
        )


# -------------------------------------------------------------------------- rendering


def _react_message(calls: list[Call], plan: Plan, chinese: bool) -> dict[str, Any]:
    """The same as text: one action, or the final answer."""
    if calls:
        call = calls[0]
        thought = (
            f"需要先调用 {call.tool}。" if chinese else f"I need {call.tool} first."
        )
        text = f"Action: {call.tool}\nAction Input: {_json(call.arguments)}"
    else:
        thought = "已经可以回答了。" if chinese else "I can answer now."
        text = f"Final Answer: {Answer(plan, chinese).text()}"
    return {"role": "assistant", "content": f"Thought: {thought}\n{text}"}


# ---------------------------------------------------------------------------- numbers

CLOCK = "get_current_time"
FIGURE = r"-?\d[\d,]*(?:\.\d+)?"
NUMBER_IN = {
    "get_weather": re.compile(rf"({FIGURE})\s*(?:°|℃|度)"),
    "get_stock_price": re.compile(rf"({FIGURE})\s*(?:[A-Z]{{3}}\b|港元|美元|元)"),
    "calculate": re.compile(FIGURE + r"(?:[eE][+-]?\d+)?"),
    "unit_convert": re.compile(FIGURE + r"(?:[eE][+-]?\d+)?"),
    CLOCK: re.compile(FIGURE),
}


def is_error(result: str) -> bool:
    return result.lstrip().startswith("Error")


def brief(number: float) -> str:
    """At most twelve digits and no ".0"."""
    return f"{number:.12g}"


def float_or_int(value: Any) -> Any:
    """A number without ".0", so that 18 and 18.0 are one; anything else as it is."""
    if isinstance(value, str | float):
        try:
            number = float(value)
        except ValueError:
            return value
        return int(number) if number.is_integer() else number
    return value


def grouped(number: str) -> str:
    """Thousands separators; a whole number without ".0"."""
    if not re.fullmatch(r"-?\d+(?:\.\d+)?", number):
        return number
    whole, _, fraction = number.partition(".")
    parts = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", whole)
    fraction = fraction.rstrip("0")
    return f"{parts}.{fraction}" if fraction else parts


_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: math.pow,
}


def value_of(expression: str) -> float | None:
    """The value of an expression, worked out in the head; None when there is none."""
    python = re.sub(r"%(?= [-+*/^]|\)|$)", "/100", expression).replace("^", "**")
    try:
        return _value(ast.parse(python, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError("not arithmetic")


# ------------------------------------------------------------------------------ words

WEEKDAYS = {
    "Monday": "星期一",
    "Tuesday": "星期二",
    "Wednesday": "星期三",
    "Thursday": "星期四",
    "Friday": "星期五",
    "Saturday": "星期六",
    "Sunday": "星期日",
}
UNIT_NAMES = {
    "km": ("公里", "km"),
    "m": ("米", "m"),
    "mile": ("英里", "miles"),
    "foot": ("英尺", "feet"),
    "kg": ("公斤", "kg"),
    "g": ("克", "g"),
    "lb": ("磅", "lb"),
    "celsius": ("°C", "°C"),
    "fahrenheit": ("°F", "°F"),
}
COMBINED = {
    "difference": ("相差", "Difference"),
    "average": ("平均", "Average"),
    "sum": ("合计", "Sum"),
}
DEGREES = {
    ("weather", "highest"): ("暖和", "warmer", "warmest"),
    ("weather", "lowest"): ("冷", "colder", "coldest"),
    ("price", "highest"): ("贵", "more expensive", "most expensive"),
    ("price", "lowest"): ("便宜", "cheaper", "cheapest"),
}
_ABLE_ZH = "查天气、当前时间和股价，做算术和单位换算"
_ABLE = "look up weather, the time and share prices, do arithmetic and convert units"
TALK = {
    "intro": (
        f"我是一个脚本化的离线替身，不是语言模型：我按固定规则调用工具，能{_ABLE_ZH}。",
        "I am a scripted offline stand-in, not a language model: by fixed rules I can"
        f" {_ABLE}, with the tools that are offered.",
    ),
    "hello": (f"你好！我能{_ABLE_ZH}。", f"Hello! I can {_ABLE}."),
    "thanks": ("不客气。", "You are welcome."),
    "which city": ("你想问哪个城市？", "Which city do you mean?"),
    "which company": ("你想问哪家公司？", "Which company do you mean?"),
    "other": (
        f"这个问题我答不了：我是脚本化的离线替身，不是语言模型，只能{_ABLE_ZH}。",
        "I cannot answer that: I am a scripted offline stand-in, not a language model."
        f" I can {_ABLE}.",
    ),
}
