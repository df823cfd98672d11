"""The vocabulary: what the offline model knows of Chinese and English.

Patterns that only one step of the understanding needs stand with that step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


def any_case(pattern: str) -> re.Pattern[str]:
    """The pattern, capitals or not."""
    return re.compile(pattern, re.IGNORECASE)


def one_of(words: Mapping[str, str], prefix: str = "") -> str:
    """A pattern with one named group a word, which tells which of them it was."""
    named = "|".join(f"(?P<{prefix}{key}>{value})" for key, value in words.items())
    return f"(?:{named})(?![A-Za-z])"


HAN = r"[\u4e00-\u9fff]"
NUMBER = r"\d{1,15}(?:,\d{3})*(?:\.\d{1,15})?"

# ------------------------------------------------------------------- units and money


class Unit(NamedTuple):
    """How a unit is written: by the user (a pattern), and in the answer."""

    pattern: str
    quantity: str
    chinese: str
    one: str
    many: str


_SIGN = r"(?:°\s?|degrees? )?"
UNITS = {
    "km": Unit(r"km|kilomet(?:er|re)s?|公里|千米", "length", "公里", "km", "km"),
    "m": Unit(r"m|met(?:er|re)s?|米", "length", "米", "m", "m"),
    "mile": Unit(r"miles?|mi|英里", "length", "英里", "mile", "miles"),
    "foot": Unit(r"foot|feet|ft|英尺", "length", "英尺", "foot", "feet"),
    "kg": Unit(r"kgs?|kilograms?|kilos?|公斤|千克", "mass", "公斤", "kg", "kg"),
    "g": Unit(r"g|grams?|克", "mass", "克", "g", "g"),
    "lb": Unit(r"lbs?|pounds?|磅", "mass", "磅", "lb", "lb"),
    "celsius": Unit(_SIGN + "(?:celsius|centigrade|C)|摄氏度?", "heat", *["°C"] * 3),
    "fahrenheit": Unit(_SIGN + "(?:fahrenheit|F)|华氏度?", "heat", *["°F"] * 3),
}
WRITTEN = {key: unit.pattern for key, unit in UNITS.items()}
SIGNED = rf"(?P<sign>零下|minus |(?<![\d)])-)?(?P<value>{NUMBER})\s?"
MONEY = {"HKD": "港元（HKD）", "USD": "美元（USD）"}  # in a Chinese answer


def same_quantity(one: str, other: str) -> bool:
    """Whether one of the units can be converted into the other."""
    return UNITS[one].quantity == UNITS[other].quantity


# -------------------------------------------------------------------------- topics

KINDS = ("weather", "price")  # of things to look up
OPERATIONS = {"difference", "average", "sum", "compare"}  # on several of them
TOPICS = {
    "time": any_case(
        r"几点|什么时间|[前在]的?时间|时间是|星期几|周几|礼拜几|几号|日期|什么时候了"
        r"|what time|(?:current|local|the) (?:local )?time\b|time is it|time now"
        r"|^ ?(?:time\b|时间)|(?:what|which) (?:week)?day\b|\bdate\b"
        r"|day is (?:it|today)"
    ),
    "weather": any_case(
        r"天气|气温|温度|温差|多少度|几度|[冷热暖凉]|湿度|刮风|风速|下[雨雪]|雨伞|带伞"
        r"|weather|temperature|\b(?:warm|cold|hot|cool|humid|wind|rain|snow|sunn)"
        r"|umbrella|how many degrees"
    ),
    "price": any_case(
        r"股价|股票|多少钱|价格|价差|报价|市价|市值|价值|值多少|值钱|贵(?!州)|便宜"
        r"|\b(?:stock|share|price|quote|worth|value|how much|expensive|cheap)"
        r"|trading at"
    ),
    "difference": any_case(
        r"温差|相差|差多少|价差|差价|差距|之差|[高低贵热冷暖]多少|[高低]几度"
        r"|\bdifference|by how (?:much|many)"
        r"|how much (?:warmer|colder|hotter|cooler|more|higher|lower|cheaper)"
    ),
    "sum": any_case(r"加起来|之和|总和|加在一起|\bsum of|add(?:ed)? up"),
    "average": any_case(r"平均|\baverage|\bmean (?:temp|price)"),
    "compare": any_case(
        r"更|最|比|[哪谁].{0,4}[冷热暖凉高低贵]|对比|\bthan\b|compare"
        r"|\b(?:warm|cold|hott|cool|cheap|high|low)(?:er|est)"
        r"|\b(?:more|most) (?:exp|val)|\bworth (?:more|less|the most)"
    ),
    "intro": any_case(
        r"介绍一?下?(?:你|自己)|自我介绍|你是谁|你是什么|你能做|你会[做什]|你可以做"
        r"|who are you|what are you\b|introduce yourself|about yourself|what can you do"
        r"|are you (?:a |an )?(?:real|human|language|ai|bot|robot|model|llm)"
    ),
}
SMALL_TALK = {
    "hello": any_case(
        r"^\W*(?:[你您]好|早上好|晚上好|嗨|(?:hello|hi|hey|good (?:morning|evening))\b)"
    ),
    "thanks": any_case(r"谢谢|多谢|感谢|\bthank|再见|\bbye"),
}
STOCK = any_case(r"股|\bstock|\bshare")
MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
DATE = r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{4}"
OTHER_DAY = any_case(
    rf"{DATE}|\d年|\d月\d|[明昨后前]天|tomorrow|yesterday|\b(?:{MONTHS})[a-z]* \d"
)
PRONOUN = any_case(
    r"[它他这那]|刚才|刚刚|\b(?:it|its|they|them|their|that|this|those)\b"
)
MENTIONED = any_case(
    r"刚才|刚刚|之前|\bmentioned|\bearlier|\bprevious|\byou (?:just )?said"
)


class Degree(NamedTuple):
    """A word that compares, as asked (a pattern) and as answered."""

    pattern: str
    chinese: str
    more: str
    most: str
    lowest: bool = False


_HIGH_LOW = {
    "high": Degree(r"高|\bhigh", "高", "higher", "the highest"),
    "low": Degree(r"低|\blow", "低", "lower", "the lowest", True),
}
DEGREES = {
    "weather": {
        "warm": Degree(r"暖|\bwarm", "暖和", "warmer", "the warmest"),
        "hot": Degree(r"热|\bhot", "热", "hotter", "the hottest"),
        "cold": Degree(r"冷|\bcold", "冷", "colder", "the coldest", True),
        "cool": Degree(r"凉|\bcool", "凉快", "cooler", "the coolest", True),
        **_HIGH_LOW,
    },
    "price": {
        "dear": Degree(r"贵|\bexp", "贵", "more expensive", "the most expensive"),
        "cheap": Degree(r"便宜|\bcheap", "便宜", "cheaper", "the cheapest", True),
        "worth": Degree(
            r"值钱|\bworth|\bvalua", "值钱", "worth more", "worth the most"
        ),
        **_HIGH_LOW,
    },
}
USUAL_DEGREE = {"weather": "warm", "price": "dear"}
DEGREE = {
    kind: any_case("|".join(f"(?P<{key}>{d.pattern})" for key, d in degrees.items()))
    for kind, degrees in DEGREES.items()
}

_N = rf"({NUMBER}%?)"
CHANGES = {  # what is done to a value that is looked up or was mentioned
    rf"{_N} ?(?:\*|\btimes\b|乘以?) ?(?!\d)": "{n} * {{0}}",
    rf"(?:涨|rises?|increases?|\bup)(?:了| by)? ?({NUMBER}%)": "{{0}} * (1 + {n})",
    rf"(?:跌|falls?|drops?|\bdown)(?:了| by)? ?({NUMBER}%)": "{{0}} * (1 - {n})",
    rf"(?:乘以?|\*|\btimes\b|multipl\w+ (?:\w+ ){{0,3}}by) ?{_N}": "{{0}} * {n}",
    rf"(?:除以|(?<!\d)/|divided? (?:\w+ ){{0,3}}by) ?{_N}": "{{0}} / {n}",
    rf"(?:加上?|\+|\bplus\b|\badd) ?{_N}": "{{0}} + {n}",
    rf"(?:减去?|(?<![\d)])-|\bminus\b|\bsubtract) ?{_N}": "{{0}} - {n}",
    rf"({NUMBER}%) of\b": "{n} * {{0}}",
    rf"的 ?({NUMBER}%)|({NUMBER}) ?倍": "{{0}} * {n}",
    r"\bdouble|\btwice|两倍|翻[倍番]": "{{0}} * 2",
    r"\bhalf (?:of|the|that|it)|\bhalve|一半": "{{0}} / 2",
}
