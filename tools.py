"""The demo tools, and the one policy by which every implementation runs a tool.

A tool is a plain typed function. Its name, signature and docstring become the JSON
Schema that the model reads, so the docstring is a contract: verb first, when to use
it, when not. The data is made up and never changes, so that runs can be compared.
"""

from __future__ import annotations

import contextvars
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_type_hints

from arithmetic import CannotEvaluate, evaluate
from usage import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from config import Settings

Tool = Callable[..., Any]


class ToolError(str):
    """What a tool returns when it could not do its work: a text for the model."""


# ---------------------------------------------------------------- the demo tools

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

clock: contextvars.ContextVar[datetime | None] = contextvars.ContextVar(
    "clock", default=None
)


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
    now = clock.get() or datetime.now().astimezone()
    return now.strftime("%Y-%m-%d %H:%M:%S (%A, UTC%z)")


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


# ---------------------------------------------------------------- the tool policy

INVALID_ARGUMENTS = "invalid_arguments"
"""Key by which the gateway passes on arguments that must not be executed: the text as
the model wrote it; beside it, under "reason" and alone with it, why."""


class ToolOutcome(NamedTuple):
    """The tool message for the model, and whether the tool did its work."""

    content: str
    ok: bool


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return the tools by name, in order. UsageError: a duplicate, or an async one."""
    named: dict[str, Tool] = {}
    for tool in tools:
        if tool.__name__ in named:
            raise UsageError(f"two tools are named {tool.__name__!r}: rename one")
        if inspect.iscoroutinefunction(inspect.unwrap(tool)):
            raise UsageError(f"tool {tool.__name__!r} is async: pass a plain function")
        named[tool.__name__] = tool
    return named


def run_tool(
    name: str,
    arguments: Mapping[str, Any],
    tools: Mapping[str, Tool],
    settings: Settings,
) -> ToolOutcome:
    """Run one call and return what the model gets to read. It never raises for a
    mistake of the model or the tool: those become an error text that helps the model
    to correct itself, without traceback. KeyboardInterrupt and SystemExit pass.
    """
    if name not in tools:
        return _refused(f"there is no tool named {name!r}. Tools: {', '.join(tools)}.")
    if arguments.keys() == {INVALID_ARGUMENTS, "reason"}:
        return _refused(f"{name} was not run: {arguments['reason']}. Call it again.")
    tool = tools[name]
    try:
        accepted = _accept(tool, arguments)
    except Exception as error:  # hints that do not resolve are the tool's mistake
        problem = _words(error)
        return _refused(
            f"{name} was not run: {problem}. Correct this and call it again."
        )
    token = clock.set(settings.clock)
    try:
        result = tool(**accepted)
        content = _as_text(result)
    except Exception as error:
        text = f"{name} failed with {type(error).__name__}: {_words(error)}"
        return _refused(_cut(text, settings.tool_result_limit))
    finally:
        clock.reset(token)
    return ToolOutcome(
        _cut(content, settings.tool_result_limit), not isinstance(result, ToolError)
    )


_T = TypeVar("_T")
_R = TypeVar("_R")


def map_calls(
    function: Callable[[_T], _R], calls: Sequence[_T], concurrency: int
) -> list[_R]:
    """Apply `function` to the calls of one turn, at most `concurrency` at a time; the
    results are in call order whichever finishes first."""
    if concurrency == 1 or len(calls) < 2:
        return [function(call) for call in calls]
    contexts = [contextvars.copy_context() for _ in calls]
    with ThreadPoolExecutor(concurrency) as pool:
        return list(
            pool.map(lambda run, call: run.run(function, call), contexts, calls)
        )


def _words(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # an exception can fail at being shown
        return "(no words)"


def _refused(text: str) -> ToolOutcome:
    return ToolOutcome(_encodable(f"Error: {text}"), False)


def _accept(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments validated against the signature; unknown ones are dropped.
    ValueError names each parameter that does not fit."""
    from pydantic import ValidationError

    model = arguments_model(inspect.unwrap(tool))
    try:
        valid = model.model_validate(dict(arguments))
    except ValidationError as error:
        raise ValueError(
            "; ".join(
                f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_context=False)
            )
        ) from None
    return {field: getattr(valid, field) for field in type(valid).model_fields}


@lru_cache(maxsize=256)
def arguments_model(tool: Tool) -> type[BaseModel]:
    """Return the model of the arguments: one field for each parameter."""
    from pydantic import create_model

    hints = get_type_hints(tool, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints.get(name, Any), ... if p.default is p.empty else p.default)
        for name, p in inspect.signature(tool).parameters.items()
    }
    return create_model(tool.__name__, **fields)


def _as_text(result: Any) -> str:
    """Text as it is; anything else as JSON that keeps 北京 readable."""
    if isinstance(result, str):
        return _encodable(result)
    from pydantic_core import to_jsonable_python

    try:
        plain = to_jsonable_python(result, fallback=str, inf_nan_mode="constants")
    except ValueError:  # bytes that are no text, a list that holds itself
        return _encodable(str(result))
    return _encodable(json.dumps(plain, ensure_ascii=False))


def _encodable(text: str) -> str:
    """Replace lone surrogates, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: the first {limit} of {len(text)} characters]"
