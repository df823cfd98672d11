"""The five demo tools: plain typed functions, and their made-up data.

A tool's name, signature and docstring become the JSON Schema that the model reads, so
the docstring is a contract: verb first, when to use it, when not. The data never
changes, so that runs can be compared.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

from equivalence.clock import now
from toolkit.arithmetic import CannotEvaluate, evaluate
from toolkit.policy import Tool, ToolError

Names = tuple[str, ...]

# names of the city: °C, sky, humidity in %, wind in km/h
WEATHER: dict[Names, tuple[int, str, int, int]] = {
    ("北京", "Beijing"): (25, "晴 sunny", 40, 12),
    ("上海", "Shanghai"): (28, "多云 cloudy", 65, 15),
    ("广州", "Guangzhou"): (31, "雷阵雨 thunderstorms", 80, 10),
    ("西安", "Xi'an"): (24, "晴 sunny", 35, 9),
    ("哈尔滨", "Harbin"): (-6, "小雪 light snow", 60, 18),
    ("香港", "Hong Kong"): (29, "多云 cloudy", 75, 20),
    ("东京", "Tokyo"): (21, "晴 sunny", 55, 11),
    ("新加坡", "Singapore"): (32, "雷阵雨 thunderstorms", 84, 7),
    ("伦敦", "London"): (15, "小雨 light rain", 82, 22),
    ("巴黎", "Paris"): (18, "多云 cloudy", 60, 13),
    ("纽约", "New York"): (20, "晴 sunny", 50, 17),
    ("旧金山", "San Francisco"): (17, "雾 fog", 72, 19),
}

# names of the company and its ticker: price, currency, day's change in %
STOCKS: dict[Names, tuple[float, str, float]] = {
    ("腾讯", "Tencent", "0700.HK"): (385.6, "HKD", 1.2),
    ("阿里巴巴", "Alibaba", "9988.HK"): (82.35, "HKD", -0.8),
    ("美团", "Meituan", "3690.HK"): (118.9, "HKD", 2.1),
    ("小米", "Xiaomi", "1810.HK"): (18.74, "HKD", 0.5),
    ("贵州茅台", "Moutai", "600519.SS"): (1688.0, "CNY", 0.3),
    ("苹果", "Apple", "AAPL"): (189.84, "USD", 0.6),
    ("微软", "Microsoft", "MSFT"): (415.5, "USD", 0.9),
    ("英伟达", "Nvidia", "NVDA"): (121.4, "USD", 3.2),
    ("特斯拉", "Tesla", "TSLA"): (177.9, "USD", -2.4),
}

LENGTH = {"km": 1000.0, "m": 1.0, "mile": 1609.344, "foot": 0.3048}  # in metres
MASS = {"kg": 1.0, "g": 0.001, "lb": 0.45359237}  # in kilograms
Unit = Literal["km", "m", "mile", "foot", "kg", "g", "lb", "celsius", "fahrenheit"]


def get_weather(city: str) -> str:
    """Look up the weather of ONE city now: temperature, sky, humidity, wind.

    Use it for any question about weather or temperature; call it once for each city.
    Do not use it for forecasts or past days.
    city: the name as the user wrote it.
    Known cities: 北京 Beijing, 上海 Shanghai, 广州 Guangzhou, 西安 Xi'an,
    哈尔滨 Harbin, 香港 Hong Kong, 东京 Tokyo, 新加坡 Singapore, 伦敦 London,
    巴黎 Paris, 纽约 New York, 旧金山 San Francisco.
    """
    names = _find(city.strip().removesuffix("市"), WEATHER)
    if names is None:
        return ToolError(f"Error: no weather for {city!r}. Known: {_list(WEATHER)}.")
    celsius, sky, humidity, wind = WEATHER[names]
    place = " ".join(names)
    return f"{place}: {celsius} °C, {sky}, humidity {humidity} %, wind {wind} km/h"


def get_current_time() -> str:
    """Tell the current local date, weekday and time.

    Use it whenever the answer depends on now or today. Do not use it for other time
    zones.
    """
    return now().strftime("%Y-%m-%d %H:%M:%S (%A, UTC%z)")


def calculate(expression: str) -> str:
    """Evaluate ONE arithmetic expression exactly.

    Use it for every calculation, with numbers you know: look up prices and
    temperatures first. Do not use it for units.
    expression: numbers with + - * / // % ^ and brackets, for example
    "(1 + 2) * 3.5". ^ is power, 15% is 0.15, 10 % 3 is the remainder.
    """
    try:
        return evaluate(expression)
    except CannotEvaluate as error:
        return ToolError(f'Error: {error} A correct example: "(1 + 2) * 3.5".')


def get_stock_price(symbol: str) -> str:
    """Look up the latest share price of ONE company, its currency and the day's change.

    Use it for any question about a share price or the value of shares.
    Do not use it for past prices or exchange rates.
    symbol: a name or ticker as the user wrote it.
    Known companies: 腾讯 Tencent 0700.HK, 阿里巴巴 Alibaba 9988.HK,
    美团 Meituan 3690.HK, 小米 Xiaomi 1810.HK, 贵州茅台 Moutai 600519.SS,
    苹果 Apple AAPL, 微软 Microsoft MSFT, 英伟达 Nvidia NVDA, 特斯拉 Tesla TSLA.
    """
    names = _find(symbol.strip(), STOCKS)
    if names is None:
        return ToolError(f"Error: no price for {symbol!r}. Known: {_list(STOCKS)}.")
    price, currency, change = STOCKS[names]
    return f"{' '.join(names)}: {price} {currency} ({change:+} % today)"


def unit_convert(value: float, from_unit: Unit, to_unit: Unit) -> str:
    """Convert ONE value to another unit of length, mass or temperature.

    Use it with a value you know: look up a temperature first. Do not use it for
    currencies.
    """
    if from_unit == to_unit:
        result = value
    elif (from_unit, to_unit) == ("celsius", "fahrenheit"):
        result = value * 9 / 5 + 32
    elif (from_unit, to_unit) == ("fahrenheit", "celsius"):
        result = (value - 32) * 5 / 9
    else:
        for scale in (LENGTH, MASS):
            if from_unit in scale and to_unit in scale:
                result = value * scale[from_unit] / scale[to_unit]
                break
        else:
            return ToolError(
                f"Error: {from_unit} and {to_unit} measure different things, so"
                " nothing can be converted. Choose two units of one quantity."
            )
    return f"{_digits(value)} {from_unit} = {_digits(result)} {to_unit}"


TOOLS: tuple[Tool, ...] = (
    get_weather,
    get_current_time,
    calculate,
    get_stock_price,
    unit_convert,
)
for _tool in TOOLS:  # Python strips a docstring's indentation only from 3.13 on, but
    _tool.__doc__ = inspect.getdoc(_tool)  # the model must read the same bytes on all


def _find(name: str, table: Mapping[Names, Any]) -> Names | None:
    """The key of `table` that has `name` among its names, or None."""
    wanted = name.casefold()
    for names in table:
        if wanted in (n.casefold() for n in (*names, " ".join(names))):
            return names
    return None


def _digits(number: float) -> str:
    """Six digits, or as many as stand before the point: never 1.2e+06."""
    return f"{number:.6g}" if abs(number) < 1e6 else f"{number:.15g}"


def _list(table: Mapping[Names, Any]) -> str:
    return ", ".join(" ".join(names) for names in table)
