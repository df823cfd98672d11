"""The demo tools."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from tool_runs import NOON, run

from equivalence.clock import clock
from toolkit.policy import ToolError
from tools import (
    STOCKS,
    TOOLS,
    WEATHER,
    calculate,
    get_current_time,
    get_stock_price,
    get_weather,
    unit_convert,
)

# ------------------------------------------------------------------ the demo tools


@pytest.mark.parametrize(
    ("city", "report"),
    [
        ("北京", "北京 Beijing: 25 °C, 晴 sunny, humidity 40 %, wind 12 km/h"),
        ("北京市", "北京 Beijing: 25 °C, 晴 sunny, humidity 40 %, wind 12 km/h"),
        ("Beijing", "北京 Beijing: 25 °C, 晴 sunny, humidity 40 %, wind 12 km/h"),
        (" beijing ", "北京 Beijing: 25 °C, 晴 sunny, humidity 40 %, wind 12 km/h"),
        ("北京 Beijing", "北京 Beijing: 25 °C, 晴 sunny, humidity 40 %, wind 12 km/h"),
        ("上海", "上海 Shanghai: 28 °C, 多云 cloudy, humidity 65 %, wind 15 km/h"),
        (
            "Harbin",
            "哈尔滨 Harbin: -6 °C, 小雪 light snow, humidity 60 %, wind 18 km/h",
        ),
    ],
)
def test_weather(city: str, report: str) -> None:
    assert get_weather(city) == report


@pytest.mark.parametrize(
    ("symbol", "price"),
    [
        ("腾讯", "腾讯 Tencent 0700.HK: 385.6 HKD (+1.2 % today)"),
        ("TENCENT", "腾讯 Tencent 0700.HK: 385.6 HKD (+1.2 % today)"),
        (" 0700.hk", "腾讯 Tencent 0700.HK: 385.6 HKD (+1.2 % today)"),
        ("阿里巴巴", "阿里巴巴 Alibaba 9988.HK: 82.35 HKD (-0.8 % today)"),
        ("aapl", "苹果 Apple AAPL: 189.84 USD (+0.6 % today)"),
        ("贵州茅台", "贵州茅台 Moutai 600519.SS: 1688.0 CNY (+0.3 % today)"),
    ],
)
def test_price(symbol: str, price: str) -> None:
    assert get_stock_price(symbol) == price


@pytest.mark.parametrize(
    ("value", "from_unit", "to_unit", "text"),
    [
        (18, "celsius", "fahrenheit", "18 celsius = 64.4 fahrenheit"),
        (64.4, "fahrenheit", "celsius", "64.4 fahrenheit = 18 celsius"),
        (-40, "celsius", "fahrenheit", "-40 celsius = -40 fahrenheit"),
        (0, "fahrenheit", "celsius", "0 fahrenheit = -17.7778 celsius"),
        (1, "mile", "km", "1 mile = 1.60934 km"),
        (5, "km", "mile", "5 km = 3.10686 mile"),
        (6, "foot", "m", "6 foot = 1.8288 m"),
        (1.8288, "m", "foot", "1.8288 m = 6 foot"),
        (2, "kg", "lb", "2 kg = 4.40925 lb"),
        (1, "lb", "g", "1 lb = 453.592 g"),
        (7.5, "kg", "kg", "7.5 kg = 7.5 kg"),
    ],
)
def test_conversion(value: float, from_unit: Any, to_unit: Any, text: str) -> None:
    assert unit_convert(value, from_unit, to_unit) == text


def test_a_conversion_and_back_gives_the_same_value() -> None:
    kinds = [("km", "m", "mile", "foot"), ("kg", "g", "lb"), ("celsius", "fahrenheit")]
    pairs = [pair for kind in kinds for pair in itertools.permutations(kind, 2)]
    for unit, other in pairs:
        there = unit_convert(12, unit, other)
        back = unit_convert(float(there.split()[-2]), other, unit)
        assert float(back.split()[-2]) == pytest.approx(12, rel=1e-4), (unit, other)


@pytest.mark.parametrize(("one", "other"), [("km", "kg"), ("celsius", "m")])
def test_units_of_two_quantities_are_refused(one: Any, other: Any) -> None:
    for pair in ((one, other), (other, one)):
        told = unit_convert(1, *pair)
        assert isinstance(told, ToolError)
        assert all(unit in told for unit in pair)


@pytest.mark.parametrize(
    ("tool", "table"), [(get_weather, WEATHER), (get_stock_price, STOCKS)]
)
@pytest.mark.parametrize("name", ["亚特兰蒂斯", "Atlantis", "", "  ", "京"])
def test_an_unknown_name_gets_the_known_ones(
    tool: Callable[..., str], table: dict[tuple[str, ...], Any], name: str
) -> None:
    told = tool(name)
    assert isinstance(told, ToolError)
    assert told.startswith("Error: ")
    assert repr(name) in told
    for names in table:
        assert " ".join(names) in told


@pytest.mark.parametrize(
    ("tool", "table"), [(get_weather, WEATHER), (get_stock_price, STOCKS)]
)
def test_each_name_in_the_table_is_found(
    tool: Callable[..., str], table: dict[tuple[str, ...], Any]
) -> None:
    for names in table:
        for name in names:
            assert tool(name).startswith(" ".join(names) + ": ")


@pytest.mark.parametrize(
    ("tool", "table", "label"),
    [(get_weather, WEATHER, "cities"), (get_stock_price, STOCKS, "companies")],
)
def test_the_docstring_lists_the_table(
    tool: Callable[..., str], table: dict[tuple[str, ...], Any], label: str
) -> None:
    text = " ".join((tool.__doc__ or "").split())
    listed = re.search(rf"Known {label}: (.*)\.$", text)
    assert listed, text
    assert listed[1] == ", ".join(" ".join(names) for names in table)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_the_docstring_is_the_same_bytes_on_every_python(tool: Any) -> None:
    assert tool.__doc__ == inspect.cleandoc(tool.__doc__)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("1/0", "The expression has a division by zero."),
        ("5//0", "The expression has a division by zero."),
        ("5%0", "The expression has a division by zero."),
        ("0**-1", "The expression has a division by zero."),
        ("", "The expression is empty."),
        ("   ", "The expression is empty."),
        ("9**9**9", "A number on the way is beyond 1.7e308."),
        ("(1+2", "The expression is incomplete or malformed, check operators and "),
        ("LCM(2, 5)", "Only numbers such as 1,234.5 or 1e6, brackets and "),
        ("128乘以6的结果是768", "Only numbers such as 1,234.5 or 1e6, brackets and "),
        ("__import__('os').system('id')", "Only numbers such as 1,234.5 or 1e6, "),
        ("1+" * 300 + "1", "The expression is longer than 500 characters."),
    ],
)
def test_calculate_says_why_and_shows_a_correct_example(
    expression: str, reason: str
) -> None:
    told = calculate(expression)
    assert isinstance(told, ToolError)
    assert told.startswith(f"Error: {reason}")
    assert told.endswith('A correct example: "(1 + 2) * 3.5".')
    assert len(told) < 250
    assert run(calculate, {"expression": expression}) == (told, False)
    assert calculate("(25 + 15) * 8 / 4") == "80.0"


# ----------------------------------------------------------------------- the clock


def test_the_clock_is_fixed_by_a_setting() -> None:
    told = run(get_current_time, clock=NOON)
    assert told == ("2024-02-29 12:00:00 (Thursday, UTC+0800)", True)


def test_the_fixed_clock_ends_with_the_call() -> None:
    run(get_current_time, clock=NOON)
    assert clock.get() is None
    started = datetime.now().astimezone().replace(microsecond=0)
    told = run(get_current_time).content
    moment, day, zone = re.fullmatch(r"(.*) \((\w+), UTC(.*)\)", told).groups()
    said = datetime.strptime(moment + zone, "%Y-%m-%d %H:%M:%S%z")
    assert started <= said <= datetime.now().astimezone()
    assert day == said.strftime("%A")


def test_the_clock_ends_with_a_call_that_fails() -> None:
    def fail() -> str:
        assert clock.get() == NOON
        raise ValueError("no")

    assert "ValueError: no" in run(fail, clock=NOON).content
    assert clock.get() is None
