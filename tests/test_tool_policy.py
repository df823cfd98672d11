"""The one policy by which every implementation runs a tool."""

from __future__ import annotations

import contextvars
import functools
import gc
import json
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import convert_to_messages
from pydantic import BaseModel
from stage4_replies import asks, call
from tool_runs import NOON, SETTINGS, run
from wire import EXACT, LADDER, implementations

from config import Settings
from equivalence.clock import clock
from equivalence.errors import UsageError
from equivalence.gateway import Gateway, Script
from equivalence.runs.call import call_id
from equivalence.runs.implementation import load
from equivalence.runs.observe import observe
from stage4_mini_framework.registry import Registry
from toolkit.langchain_tool import tool as langchain_tool
from toolkit.policy import ToolError, by_name, map_calls, run_tool
from tools import TOOLS, calculate, get_current_time, get_weather, unit_convert

# ---------------------------------------------------------------------- the policy


def test_a_call_that_works() -> None:
    assert run(get_weather, {"city": "北京"}) == (get_weather("北京"), True)


def choose(colour: Literal["red", "green"], count: int = 1, note: str | None = None):
    """Choose a colour."""
    return [colour, count, note]


CORRECT = "Correct this and call it again."


@pytest.mark.parametrize(
    ("tool", "arguments", "content"),
    [
        # missing, misnamed, null, of a wrong type, one of many
        (
            get_weather,
            {},
            f"Error: get_weather was not run: city: Field required. {CORRECT}",
        ),
        (
            get_weather,
            {"location": "北京"},
            f"Error: get_weather was not run: city: Field required. {CORRECT}",
        ),
        (
            get_weather,
            {"city": None},
            "Error: get_weather was not run: city: Input should be a valid string."
            f" {CORRECT}",
        ),
        (
            get_weather,
            {"city": ["北京"]},
            "Error: get_weather was not run: city: Input should be a valid string."
            f" {CORRECT}",
        ),
        (
            get_weather,
            {"city": 123},
            "Error: get_weather was not run: city: Input should be a valid string."
            f" {CORRECT}",
        ),
        (
            choose,
            {"colour": "blue", "count": "many"},
            "Error: choose was not run: colour: Input should be 'red' or 'green';"
            " count: Input should be a valid integer, unable to parse string as an"
            f" integer. {CORRECT}",
        ),
        # what the gateway passes on and nobody may execute
        (
            get_weather,
            {"invalid_arguments": '{"city"', "reason": "its arguments are not JSON"},
            "Error: get_weather was not run: its arguments are not JSON."
            " Call it again.",
        ),
        (
            get_weather,
            {"invalid_arguments": "", "reason": "it was cut off"},
            "Error: get_weather was not run: it was cut off. Call it again.",
        ),
    ],
)
def test_what_does_not_fit_is_not_run(
    tool: Callable[..., Any], arguments: dict[str, Any], content: str
) -> None:
    ran = []

    @functools.wraps(tool)
    def watched(**given: Any) -> Any:
        ran.append(given)
        return tool(**given)

    assert run(watched, arguments) == (content, False)
    assert ran == []


@pytest.mark.parametrize(
    ("tool", "arguments", "content"),
    [
        (get_weather, {"city": "北京", "flag": True}, get_weather("北京")),
        (get_current_time, {"zone": 1}, "2024-02-29 12:00:00 (Thursday, UTC+0800)"),
        (
            unit_convert,
            {"value": "18", "from_unit": "celsius", "to_unit": "fahrenheit"},
            "18 celsius = 64.4 fahrenheit",
        ),
        (choose, {"colour": "red"}, '["red", 1, null]'),
        (choose, {"colour": "red", "count": "2"}, '["red", 2, null]'),
        (choose, {"colour": "red", "count": 2.0, "note": "好"}, '["red", 2, "好"]'),
    ],
)
def test_what_can_be_understood_is_run(
    tool: Callable[..., Any], arguments: dict[str, Any], content: str
) -> None:
    assert run(tool, arguments, clock=NOON) == (content, True)


@pytest.mark.parametrize("name", ["search_web", "", "Get_Weather", "__import__"])
def test_an_unknown_tool_is_told_the_known_ones_in_order(name: str) -> None:
    told = run_tool(name, {"q": 1}, by_name(TOOLS), SETTINGS)
    assert told == (
        f"Error: there is no tool named {name!r}. Tools: get_weather,"
        " get_current_time, calculate, get_stock_price, unit_convert.",
        False,
    )


ERRORS = [
    ValueError("boom"),
    KeyError("boom"),
    ZeroDivisionError("boom"),
    TimeoutError("boom"),
    RecursionError("boom"),
    MemoryError("boom"),
    StopIteration("boom"),
    AssertionError("boom"),
    LookupError("boom \ud83d"),
    ExceptionGroup("boom", [ValueError("inner")]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_exception_becomes_a_text_without_traceback(error: Exception) -> None:
    def fail() -> str:
        raise error

    told = run(fail)
    assert told.ok is False
    assert told.content.startswith(f"Error: fail failed with {type(error).__name__}: ")
    assert "boom" in told.content
    for furniture in ("Traceback", "line ", Path(__file__).name, str(Path.cwd())):
        assert furniture not in told.content
    told.content.encode("utf-8")


def test_a_deep_recursion_becomes_a_text() -> None:
    def recurse() -> str:
        return recurse()

    assert "RecursionError" in run(recurse).content


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_program_passes(stop: type[BaseException]) -> None:
    def fail() -> str:
        raise stop

    with pytest.raises(stop):
        run(fail, clock=NOON)
    assert clock.get() is None


class Opaque:
    def __repr__(self) -> str:
        return "Opaque"


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (100.0, "100.0"),
        (float("inf"), "Infinity"),
        ([1, "二"], '[1, "二"]'),
        ({"城市": "北京", "ok": True}, '{"城市": "北京", "ok": true}'),
        ({1: {2: 3}}, '{"1": {"2": 3}}'),
        ((1, 2), "[1, 2]"),
        ({7}, "[7]"),
        ([], "[]"),
        (b"\xe5\x8c\x97", '"北"'),
        (NOON, '"2024-02-29T12:00:00+08:00"'),
        (Opaque(), '"Opaque"'),
        ("", ""),
        ("a\nb", "a\nb"),
        ("half \ud83d of one", "half ? of one"),
        ({"half": "\udcff"}, '{"half": "?"}'),
    ],
    ids=repr,
)
def test_a_result_that_is_no_text_becomes_readable_json(
    result: Any, content: str
) -> None:
    def give() -> Any:
        return result

    assert run(give) == (content, True)


def test_a_result_that_json_cannot_hold_is_given_as_python_shows_it() -> None:
    circle: list[Any] = []
    circle.append(circle)

    def give(kind: str) -> Any:
        return circle if kind == "circle" else b"\xff\xfe"

    assert run(give, {"kind": "circle"}) == ("[[...]]", True)
    assert run(give, {"kind": "bytes"}) == (r"b'\xff\xfe'", True)


def test_a_model_that_writes_the_marker_itself_is_taken_at_its_word() -> None:
    marker = {"invalid_arguments": "x", "reason": "y"}
    outcome = run(get_weather, {"city": "北京", **marker})
    assert outcome.ok


def test_an_error_text_of_the_tool_is_no_success() -> None:
    def look() -> str:
        return ToolError("Error: not there.")

    assert run(look) == ("Error: not there.", False)


@pytest.mark.parametrize("character", ["长", "e", "😀", "\u0301"])
def test_a_long_result_is_cut_between_characters_with_a_note(character: str) -> None:
    def give() -> str:
        return character * 200_000

    told = run(give)
    assert told.ok
    assert told.content == (
        character * 8000 + "\n[cut: the first 8000 of 200000 characters]"
    )


def test_a_result_at_the_limit_is_not_cut() -> None:
    def give() -> str:
        return "x" * 50

    assert run(give, tool_result_limit=50).content == "x" * 50
    assert run(give, tool_result_limit=49).content.startswith("x" * 49 + "\n[cut: ")


def test_a_long_json_result_and_a_long_error_are_cut_too() -> None:
    def give() -> list[str]:
        return ["长" * 500]

    def fail() -> str:
        raise ValueError("长" * 500)

    cut = run(give, tool_result_limit=100)
    assert cut == ('["' + "长" * 98 + "\n[cut: the first 100 of 504 characters]", True)
    told = run(fail, tool_result_limit=100)
    assert len(told.content) < 160
    assert told.content.endswith(" characters]")
    assert told.ok is False


# ------------------------------------------------------------- a call's identity


class Line(BaseModel):
    sku: str
    qty: int


def order(line: Line) -> str:
    """Order ONE line."""
    return "ordered"


def ask(city: str) -> str:
    """Ask for ONE city."""
    return f"{city.strip()}: fine"


def _calls(*arguments: Any, name: str = "order", ids: str = "abcdef") -> dict[str, Any]:
    return asks(
        *(
            call(name, json.dumps(each), identifier)
            for each, identifier in zip(arguments, ids, strict=False)
        )
    )


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize(
    "implementation", [one for one in LADDER if one.protocol == "tool_calls"], ids=str
)
def test_a_refused_call_is_not_recorded_as_the_other_ones_execution(
    implementation: Any,
    concurrency: int,
    gateway: Gateway,
    offline_settings: Settings,
) -> None:
    """A2: validation turns the arguments into a model, equal to nothing on the wire."""
    many, two = {"line": {"sku": "A", "qty": "many"}}, {"line": {"sku": "B", "qty": 2}}
    script = Script(
        [_calls(many, two), _calls(two, many), {"message": {"content": "ok"}}]
    )
    settings = offline_settings.model_copy(update={"tool_concurrency": concurrency})
    run = observe(implementation, "go", settings, gateway, [order], upstream=script).run
    assert run.status == "completed", run.error
    seen = [(step.turn, step.arguments, step.ok, step.order) for step in run.steps]
    assert seen == [(1, many, False, None), (1, two, True, 0)] + [
        (2, two, True, 1),
        (2, many, False, None),
    ]
    assert [step.result == "ordered" for step in run.steps] == [
        False,
        True,
        True,
        False,
    ]


@implementations
@pytest.mark.parametrize("concurrency", [1, 2])
def test_who_watches_a_tool_is_told_the_call(
    implementation: Any,
    concurrency: int,
    gateway: Gateway,
    offline_settings: Settings,
) -> None:
    told = []

    def ask(city: str) -> str:
        """Ask for ONE city."""
        told.append((city, call_id.get()))
        return "fine"

    message = _calls({"city": "a"}, {"city": "b"}, name="ask")["message"]
    calls = [("a", "a"), ("b", "b")]
    if implementation.protocol == "text":  # it makes its ids itself
        message = {"content": 'Action: ask\nAction Input: {"city": "a"}'}
        calls = [("a", "call_1")]
    script = Script([{"message": message}, {"message": {"content": "Final Answer: x"}}])
    settings = offline_settings.model_copy(update={"tool_concurrency": concurrency})
    observe(implementation, "go", settings, gateway, [ask], upstream=script)
    assert sorted(told) == calls
    assert call_id.get() is None


@pytest.mark.parametrize("implementation", LADDER[:4], ids=str)
def test_calls_alike_are_told_apart_by_their_ids(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    """Each ran at another time, and a server gave the ids of turn 1 again in turn 2."""
    alike = _calls({"city": "a"}, {"city": "a"}, {"city": "a "}, name="ask")
    script = Script([alike, alike, {"message": {"content": "ok"}}])
    run = observe(
        implementation, "go", offline_settings, gateway, [ask], upstream=script
    ).run
    assert [(step.turn, step.order) for step in run.steps] == [
        *((1, 0), (1, 1), (1, 2)),
        *((2, 3), (2, 4), (2, 5)),
    ]


# ------------------------------------------------------------------- interrupted turns


@implementations
@pytest.mark.parametrize("results", [0, 1])
@pytest.mark.parametrize("later", [[], ["user"]], ids=["at the end", "in between"])
def test_a_history_with_a_call_without_result_is_one_error_in_all(
    implementation: Any,
    results: int,
    later: list[str],
    gateway: Gateway,
    offline_settings: Settings,
) -> None:
    """B21: an interrupted turn, continued; before any request."""
    calls = _calls({"city": "a"}, {"city": "b"}, name="ask")["message"]["tool_calls"]
    history: list[Any] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "fine"},
        {"role": "tool", "tool_call_id": "b", "content": "fine"},
        {"role": "assistant", "content": "done"},
    ]
    interrupted = history[: 2 + results]
    interrupted += [{"role": role, "content": "and?"} for role in later]
    if implementation.name in EXACT:
        history, interrupted = map(convert_to_messages, (history, interrupted))
    agent = load(implementation.target)
    with gateway.open_run() as wire:
        settings = offline_settings.model_copy(update={"gateway_url": wire.url})
        with pytest.raises(UsageError, match="no result of the call of ask"):
            agent("17 * 23", history=interrupted, settings=settings, tools=[ask])
        assert wire.exchanges == []
        agent("17 * 23", history=history, settings=settings, tools=[ask])
        assert wire.exchanges


# ----------------------------------------------------------- what a tool may look like


async def later(city: str) -> str:
    """Answer later."""
    return city


def around(city: str) -> Any:
    """Answer with what another one will answer."""
    return later(city)


@pytest.mark.filterwarnings("error")
@implementations
def test_what_nobody_awaited_is_no_success(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    """B15: a plain function around an async one."""
    written = 'Action: around\nAction Input: {"city": "a"}'
    message = {
        "content": written,
        "tool_calls": _calls({"city": "a"}, name="around")["message"]["tool_calls"],
    }
    if implementation.protocol == "text":
        del message["tool_calls"]
    script = Script(
        [{"message": message}, {"message": {"content": "Final Answer: ok"}}]
    )
    observed = observe(
        implementation, "go", offline_settings, gateway, [around], upstream=script
    )
    (step,) = observed.run.steps
    assert step.ok is False
    told = "Error: around failed with TypeError: it returned a coroutine, "
    sent = json.dumps(observed.run.exchanges[-1].request)
    assert told in sent
    assert "coroutine object" not in sent


NAMES = ["args", "kwargs", "callbacks", "run_manager", "v__args", "model_config"]


@implementations
@pytest.mark.parametrize("name", [*NAMES, "model_dump", "_city", "*cities", "**cities"])
def test_a_parameter_that_is_not_the_same_in_all_is_refused_in_all(
    implementation: Any, name: str, gateway: Gateway, offline_settings: Settings
) -> None:
    """B16: in one line that names it, before any request."""
    scope: dict[str, Any] = {}
    exec(f"def look(city: str, {name}) -> str:\n    'Look ONE city up.'", scope)
    with gateway.open_run() as wire:
        settings = offline_settings.model_copy(update={"gateway_url": wire.url})
        with pytest.raises(UsageError, match=f"'look'.*'{name.strip('*')}'") as caught:
            load(implementation.target)("go", settings=settings, tools=[scope["look"]])
        assert wire.exchanges == []
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------ what is made only once


def test_a_tool_is_converted_once_whoever_watches_it() -> None:
    def watch(tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        def watched(**given: Any) -> Any:
            return tool(**given)

        return watched

    first, second = watch(ask), watch(ask)
    assert langchain_tool(first) is langchain_tool(second) is langchain_tool(ask)
    run_of = weakref.ref(first)
    del first
    gc.collect()
    assert run_of() is None, "something of a run is held"


def test_a_tool_described_or_named_anew_is_converted_anew() -> None:
    def look(city: str) -> str:
        """Look."""
        return city

    assert langchain_tool(look).description == "Look."
    look.__doc__ = "Look again."
    assert langchain_tool(look).description == "Look again."
    assert Registry([look]).schemas[0]["function"]["description"] == "Look again."
    look.__name__ = "see"
    assert langchain_tool(look).name == "see"

    @functools.wraps(look)
    def renamed(city: str) -> str:
        return city

    renamed.__name__ = "renamed"
    assert langchain_tool(renamed).name == "renamed"


@implementations
def test_each_run_runs_its_own_tools(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    """Two at a time, of the same function, each watched for its own run."""
    agent = load(implementation.target)
    ran: dict[int, list[int]] = {0: [], 1: []}
    both = threading.Barrier(2)

    def go(number: int) -> int:
        @functools.wraps(calculate)
        def watched(expression: str) -> str:
            both.wait(10)
            ran[number].append(number)
            return calculate(expression)

        with gateway.open_run() as wire:
            settings = offline_settings.model_copy(update={"gateway_url": wire.url})
            agent("17 * 23", settings=settings, tools=[watched])
            return len(wire.exchanges)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(go, [0, 1])) == [2, 2]
    assert ran == {0: [0], 1: [1]}


# ------------------------------------------------------- names, order, concurrency


def test_tools_by_name_keep_their_order() -> None:
    assert list(by_name(TOOLS)) == [tool.__name__ for tool in TOOLS]
    assert list(by_name(reversed(TOOLS))) == [t.__name__ for t in reversed(TOOLS)]
    assert by_name([]) == {}


def test_two_tools_of_one_name_are_refused() -> None:
    def twin(a: int) -> int:
        return a

    one = twin

    def twin(b: int) -> int:
        return b

    with pytest.raises(ValueError, match="two tools are named 'twin'"):
        by_name([get_weather, one, twin])


def test_an_async_tool_is_refused_however_it_is_wrapped() -> None:
    async def later() -> str:
        return "later"

    @functools.wraps(later)
    def wrapped() -> Any:
        return later()

    for tool in (later, wrapped):
        with pytest.raises(ValueError, match="'later' is async"):
            by_name([tool])


@implementations
def test_two_tools_of_one_name_end_before_any_request(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    agent = load(implementation.target)
    with gateway.open_run() as log:
        settings = offline_settings.model_copy(update={"gateway_url": log.url})
        with pytest.raises(ValueError, match="calculate"):
            agent("1+1", settings=settings, tools=[calculate, get_weather, calculate])
        assert log.exchanges == []
        agent("1+1", settings=settings, tools=[calculate, get_weather])
        assert log.exchanges


@implementations
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_passes_through_the_agent(
    implementation: Any,
    stop: type[BaseException],
    gateway: Gateway,
    offline_settings: Settings,
) -> None:
    def calculate(expression: str) -> str:
        """Evaluate ONE arithmetic expression exactly."""
        raise stop

    settings = offline_settings.model_copy(update={"gateway_url": gateway.url})
    with pytest.raises(stop):
        load(implementation.target)("1 + 1", settings=settings, tools=[calculate])


def test_results_come_in_call_order_whichever_ends_first() -> None:
    ended: list[int] = []
    turns = [threading.Event() for _ in range(4)]
    turns[3].set()

    def work(number: int) -> int:  # each waits for the one after it
        assert turns[number].wait(10)
        ended.append(number)
        if number:
            turns[number - 1].set()
        return number * 10

    assert map_calls(work, [0, 1, 2, 3], 4) == [0, 10, 20, 30]
    assert ended == [3, 2, 1, 0]


def test_one_at_a_time_is_in_order_and_in_this_thread() -> None:
    ran: list[tuple[int, int]] = []

    def work(number: int) -> None:
        ran.append((number, threading.get_ident()))

    map_calls(work, [2, 0, 1], 1)
    assert ran == [(number, threading.get_ident()) for number in (2, 0, 1)]


def test_never_more_at_a_time_than_allowed() -> None:
    lock, running, most = threading.Lock(), 0, 0
    pairs = threading.Barrier(2)

    def work(number: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pairs.wait(10)  # breaks if two never run together
        with lock:
            running -= 1

    map_calls(work, range(6), 2)
    assert most == 2


def test_each_concurrent_call_has_the_context_of_the_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("outer")
    both = threading.Barrier(2)

    def work(name: str) -> str:
        seen = variable.get()
        variable.set(name)
        both.wait(10)
        return f"{seen}, then {variable.get()}"

    assert map_calls(work, ["a", "b"], 2) == ["outer, then a", "outer, then b"]
    assert variable.get() == "outer"


@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_ends_the_program_passes_through_map_calls(concurrency: int) -> None:
    def work(number: int) -> int:
        if number == 1:
            raise KeyboardInterrupt
        return number

    with pytest.raises(KeyboardInterrupt):
        map_calls(work, [0, 1, 2], concurrency)


@pytest.mark.parametrize("concurrency", [1, 5])
def test_map_calls_of_nothing_is_nothing(concurrency: int) -> None:
    assert map_calls(str, [], concurrency) == []


THREE = "北京、上海和广州的天气"


@implementations
@pytest.mark.parametrize("concurrency", [1, 3])
def test_calls_of_one_turn_run_as_the_setting_says(
    implementation: Any,
    concurrency: int,
    gateway: Gateway,
    offline_settings: Settings,
) -> None:
    ran: list[str] = []
    together = threading.Barrier(concurrency)

    @functools.wraps(get_weather)
    def watched(city: str) -> str:
        together.wait(10)
        ran.append(city)
        return get_weather(city)

    if concurrency > 1 and implementation.protocol == "text":
        pytest.skip("its model asks for one call a turn")
    with gateway.open_run() as log:
        more = {"gateway_url": log.url, "tool_concurrency": concurrency}
        settings = offline_settings.model_copy(update=more)
        load(implementation.target)(THREE, settings=settings, tools=[watched])
    if concurrency == 1:
        assert ran == ["北京", "上海", "广州"]
    assert sorted(ran) == sorted(["北京", "上海", "广州"])
    sent = json.dumps(log.exchanges[-1].request, ensure_ascii=False)
    results = [sent.rindex(get_weather(city)) for city in ("北京", "上海", "广州")]
    assert results == sorted(results)  # in call order, each once
