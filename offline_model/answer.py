"""The answer: the results in words, in Chinese or English, need by need."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .plan import Plan, Task, brief, last_number, lookups
from .scan import Token
from .understand import Arithmetic, Clock, Conversion, Lookup, Need, Talk
from .view import CLOCK
from .words import DEGREES, MONEY, UNITS

DAYS = ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")
COMBINED = {
    "difference": ("相差", "Difference:"),
    "average": ("平均", "Average:"),
    "sum": ("合计", "Sum:"),
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
    "which weather": ("你想问哪个城市？", "Which city do you mean?"),
    "which price": ("你想问哪家公司？", "Which company do you mean?"),
    "currencies": ("货币不同，不能直接比较。", "The currencies differ."),
    "other": (
        f"这个问题我答不了：我是脚本化的离线替身，不是语言模型，只能{_ABLE_ZH}。",
        "I cannot answer that: I am a scripted offline stand-in, not a language model."
        f" I can {_ABLE}.",
    ),
}


FAILURES = {  # what our tools report, and how a Chinese answer tells it
    r"no weather for '(.*)'": r"没有“\1”的天气数据",
    r"no price for '(.*)'": r"没有“\1”的股价数据",
    r".*division by zero.*": "除数为零",
    r".*beyond 1\.7e308.*": "中间或最后的数太大",
    r".*longer than (\d+) characters.*": r"算式超过 \1 个字符",
    r".*not a real number.*": "结果不是实数",
    r".*measure different things.*": "两个单位量的不是同一种东西，无法换算",
    r".*(?:malformed|are allowed|is empty).*": "算式不完整或写法有误",
}


def answer(plan: Plan, left_out: list[Token], chinese: bool) -> str:
    """The text of the answer, with what the plan did not use of the question."""
    writer = _Writer(plan, chinese)
    told = [sentence for need in plan.needs for sentence in writer.part(need)]
    told += [writer.correction(), writer.left_out(left_out)]
    return ("" if chinese else " ").join(dict.fromkeys(filter(None, told)))


class _Writer:
    def __init__(self, plan: Plan, chinese: bool) -> None:
        self.plan, self.chinese = plan, chinese

    def say(self, chinese: str, english: str) -> str:
        return chinese if self.chinese else english

    def part(self, need: Need) -> Iterator[str]:
        """The sentences that answer one need: first what went wrong, if anything."""
        if isinstance(need, Talk):
            yield self.say(*TALK[need.about])
            return
        troubles = [self.trouble(task) for task in self.plan.tasks(need)]
        yield from troubles
        match need:
            case Clock() if not any(troubles):
                yield self.clock()
            case Arithmetic() | Conversion() if not any(troubles):
                yield from self.alone(need)
            case Lookup(shares=[_, *_]):
                yield from self.held(need)
            case Lookup():
                yield from self.lookup(need)

    # -- what went wrong

    def trouble(self, task: Task) -> str:
        """Why this task has no number; empty when it has, or another is to blame."""
        inputs_missing = any(self.plan.number(t) is None for t in task.inputs)
        if inputs_missing or self.plan.number(task) is not None:
            return ""
        about, tool, result = self.about(task), task.tool, self.plan.result(task)
        if not self.plan.offered(task):
            why = f"没有提供 {tool} 工具", f"The tool {tool} is not offered"
            if tool in self.plan.view.tools:
                why = f"{tool} 不是我认识的那个工具", f"This {tool} is not one I know"
            return self.say(
                f"{why[0]}，所以我无法得到{about}。",
                f"{why[1]}, so I cannot get {about}.",
            )
        if result is None:
            return self.say(
                f"没有得到{about}的结果。", f"There is no result for {about}."
            )
        short = re.split(r" Known: | A correct ", result)[0].strip()[:200]
        short = short.removeprefix("Error:").strip().rstrip(".。")
        for form, chinese in FAILURES.items() if self.chinese else ():
            if found := re.fullmatch(form, short, re.DOTALL):
                return f"没有得到{about}：{found.expand(chinese)}。"
        return self.say(
            f"没有得到{about}，工具给出的错误原文是“{short}”。",
            f"I could not get {about}: {short}.",
        )

    def about(self, task: Task) -> str:
        """What a task is after, as a noun."""
        name = self.expression(task) or "".join(task.values[:1])
        nouns = {
            "get_weather": (f"{name}的天气", f"the weather in {name}"),
            "get_stock_price": (f"{name}的股价", f"the share price of {name}"),
            "unit_convert": ("换算结果", "the conversion"),
            "calculate": (f"计算结果（{name}）", f"the result of {name}"),
            CLOCK: ("当前时间", "the current time"),
        }
        return self.say(*nouns[task.tool])

    def correction(self) -> str:
        """Owns up to calls of the eager strategy that used an invented number."""
        numbers = map(last_number, self.plan.wrong_results())
        listed = self.say("、", ", ").join(grouped(brief(n)) for n in numbers if n)
        return listed and self.say(
            f"（先前并行算出的 {listed} 用的是猜测的数，不作数，以上按真实数据更正。）",
            f"(The earlier {listed} used a guessed number; the above is corrected.)",
        )

    def left_out(self, tokens: list[Token]) -> str:
        """Names the words of the question that the plan does not use."""
        units = {self.plan.unit(task) for task in self.plan.steps}
        priced = not units.isdisjoint({"HKD", "USD", "CNY"})
        words = [
            token.text.strip()
            for token in tokens
            if not (token.means("money") and (units & {*token.marks} or not priced))
        ]
        listed = self.say("、", ", ").join(dict.fromkeys(words))
        told = self.say(f"没有用到：{listed}。", f"I left out: {listed}.")
        notes = [told] if words else []
        clocks = [need for need in self.plan.needs if isinstance(need, Clock)]
        elsewhere = any(token.means("name", "elsewhere") for token in tokens)
        if clocks and (elsewhere or clocks[0].place):
            notes.insert(
                0, self.say("我只知道本地时间。", "I only know the local time.")
            )
        if any(token.means("not-now") for token in tokens):
            notes.insert(
                0, self.say("我只知道现在的情况。", "I only know the present.")
            )
        return ("" if self.chinese else " ").join(notes)

    # -- numbers in words

    def expression(self, task: Task) -> str:
        """The expression of a calculation, empty for anything else."""
        values = self.plan.values(task) if task.tool == "calculate" else None
        return signs(str(values[0])) if values else ""

    def shown(self, task: Task) -> str:
        """The number of a task as people write it: 38,560."""
        text = (self.plan.result(task) or "").strip()
        if task.tool == "calculate" and re.fullmatch(r"-?\d+", text):
            return grouped(text)
        number = self.plan.number(task)
        return "?" if number is None else grouped(brief(number))

    def measure(self, number: str, unit: str) -> str:
        """A number with its unit, in the singular for one: 1 mile."""
        known = UNITS[unit]
        english = known.one if number == "1" else known.many
        return f"{number} {self.say(known.chinese, english)}"

    def named(self, task: Task) -> tuple[str, str]:
        """The name that a task is about, and its number with its unit."""
        source = task.inputs[0] if task.inputs else task
        return source.values[0], f"{self.shown(task)} {self.plan.unit(task)}".strip()

    # -- need by need

    def clock(self) -> str:
        text = self.plan.result(Task(CLOCK)) or ""
        found = re.match(rf"(\S+) (\S+) \(({'|'.join(DAYS)})day", text)
        if found is None:
            return self.say(f"现在是 {text}。", f"It is now {text}.")
        date, time, day = found.groups()
        day_zh = "星期" + "一二三四五六日"[DAYS.index(day)]
        return self.say(
            f"现在是 {date} {time}，{day_zh}。", f"It is {time} on {day}day, {date}."
        )

    def alone(self, need: Arithmetic | Conversion) -> Iterator[str]:
        """An expression or a conversion of known numbers, and what comes out."""
        task, *changed = self.plan.tasks(need)
        result, end = self.shown(task), self.say("。", ".")
        if isinstance(need, Arithmetic):
            yield f"{signs(need.expression)} = {result} {need.unit}".rstrip() + end
            return
        source = self.measure(grouped(need.value), need.from_unit)
        yield f"{source} = {self.measure(result, need.to_unit)}{end}"
        for task in changed:
            number = self.measure(self.shown(task), need.to_unit)
            yield f"{self.expression(task)} = {number}{end}"

    def held(self, need: Lookup) -> Iterator[str]:
        """What the shares are worth, with the price of one."""
        tasks = [t for t in self.plan.derived(need) if self.plan.number(t) is not None]
        shares = dict(zip(need.names, map(grouped, need.shares), strict=True))
        for task in tasks:
            held = [(shares[name], name, p) for name, p in map(self.named, task.inputs)]
            zh = "和".join(f" {n} 股{name}（每股 {price}）" for n, name, price in held)
            en = " and ".join(
                f"{n} {'share' if n == '1' else 'shares'} of {name} ({price})"
                for n, name, price in held
            )
            verb = "is" if en.startswith("1 ") and len(held) == 1 else "are"
            total = self.say("合计", " in total") if len(held) > 1 else ""
            unit = self.plan.unit(task)
            worth = f"{self.shown(task)} {self.say(MONEY.get(unit, unit), unit)}"
            if need.change:
                worth = f"{self.expression(task)} = {worth}"
            yield self.say(
                f"持有{zh}，市值{total} {worth}。", f"{en} {verb} worth {worth}{total}."
            )
        if len(tasks) > 1:
            mixed = not self.plan.one_currency(need)
            yield self.say(*TALK["currencies"]) if mixed else self.compared(need, tasks)

    def lookup(self, need: Lookup) -> Iterator[str]:
        """The values looked up and what was made of them."""
        tasks = lookups(need.kind, need.names)
        known = [task for task in tasks if self.plan.number(task) is not None]
        one_currency = self.plan.one_currency(need)
        if need.degree and len(known) > 1 and one_currency:
            yield self.compared(need, known)
        elif known and (need.operation or need.degree or need.change):
            listed = [" ".join(self.named(task)) for task in known]
            yield self.say("，".join(listed) + "。", ", ".join(listed) + ".")
        else:
            yield from map(self.one, known)
        if not one_currency and (need.operation or need.degree):
            yield self.say(*TALK["currencies"])
        yield from (self.outcome(need, task) for task in self.plan.derived(need))

    def one(self, task: Task) -> str:
        """The weather of one city or the price of one company."""
        name, value = self.named(task)
        text = self.plan.result(task) or ""
        if task.tool == "get_stock_price":
            today = re.search(r"\(([-+][\d.]+ %)", text)
            day = today[1] if today else ""
            added = (f"（今日 {day}）", f" ({day} today)") if day else ("", "")
            return self.say(
                f"{name}股价 {value}{added[0]}。", f"{name} is at {value}{added[1]}."
            )
        more = re.search(r"°C, (\S+) ([^,]+), humidity (\S+) %, wind (\S+) km/h", text)
        if more is None:
            return self.say(f"{name}现在 {value}。", f"{name} is at {value}.")
        sky_zh, sky, humid, wind = more.groups()
        return self.say(
            f"{name}现在 {value}，{sky_zh}，湿度 {humid}%，风速 {wind} km/h。",
            f"{name} is at {value}, {sky}, humidity {humid} %, wind {wind} km/h.",
        )

    def compared(self, need: Lookup, tasks: list[Task]) -> str:
        """Which is first, and by what values."""
        degree = DEGREES[need.degree]
        sign = 1 if degree.lowest else -1
        tasks = sorted(tasks, key=lambda task: sign * (self.plan.number(task) or 0))
        (name, value), *others = map(self.named, tasks)
        if self.plan.number(tasks[0]) == self.plan.number(tasks[1]):
            both = f"{name} {value} = {others[0][0]}"
            return self.say(f"一样：{both}。", f"They are the same: {both}.")
        rest_zh = "，".join(f"{n} {v}" for n, v in others)
        rest = ", ".join(
            f"{v} in {n}" if need.kind == "weather" else f"{n} {v}" for n, v in others
        )
        word_zh, word = "更" + degree.chinese, degree.more
        if others[1:]:
            word_zh, word = "最" + degree.chinese, degree.most
        return self.say(
            f"{name}{word_zh}：{name} {value}，{rest_zh}。",
            f"{name} is {word}: {value}, against {rest}.",
        )

    def outcome(self, need: Lookup, task: Task) -> str:
        """What a calculation or conversion on looked-up values gave."""
        if self.plan.number(task) is None:
            return ""
        number, unit, end = self.shown(task), self.plan.unit(task), self.say("。", ".")
        if task.tool == "unit_convert":
            (source,) = task.inputs
            name = source.values[0] if source.tool == "get_weather" else ""
            return f"{name} {self.shown(source)} °C = {number} °F{end}".strip()
        if need.operation in COMBINED and len(task.inputs) > 1:
            return (
                f"{self.say(*COMBINED[need.operation])} {number} {unit}".rstrip() + end
            )
        return f"{self.expression(task)} = {number} {unit}".rstrip() + end


def signs(expression: str) -> str:
    """The expression as people write it: × and ÷."""
    return expression.replace(" * ", " × ").replace(" / ", " ÷ ")


def grouped(number: str) -> str:
    """With thousands separators: 38,560."""
    if not re.fullmatch(r"-?\d+(?:\.\d+)?", number):
        return number
    whole, _, fraction = number.partition(".")
    whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", whole)
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".")
