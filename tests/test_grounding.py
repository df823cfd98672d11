"""Which numbers in a call were said before it."""

from __future__ import annotations

import json
import time
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from wire import implementations

from equivalence.gateway import Exchange
from equivalence.runs.files import from_line, to_line
from equivalence.runs.grounding import MOST, Said, mark, note
from equivalence.runs.implementation import Implementation
from equivalence.runs.plan import Plan
from equivalence.runs.record import Run, Step
from equivalence.runs.session import gather
from equivalence.settings import Settings
from equivalence.show import terminal as show
from offline_model import OfflineModel
from tools import TOOLS

PUBLISHED = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"


@pytest.mark.parametrize(
    ("said", "arguments", "missing"),
    [
        # the same number in another format
        ("18 °C in Fahrenheit", {"value": 18.0}, []),
        ("18℃是多少华氏度", {"value": 18}, []),
        ("市值 38,560 港元", {"expression": "38560.0 * 2"}, []),
        ("38560.0 HKD", {"expression": "38,560 * 2"}, []),
        ("持有１００股", {"expression": "100 * 2"}, []),
        ("买100，200股", {"expression": "100 + 200"}, []),
        ("1e3 metres", {"value": 1000}, []),
        ("-6 °C", {"value": -6}, []),
        ("HKD385.6", {"value": 385.6}, []),
        ("0.5 kg", {"expression": ".5 * 2"}, []),
        # scaled
        ("1.5万股", {"value": 15000}, []),
        ("1.5 万股", {"value": 15000}, []),
        ("3 million people", {"value": 3_000_000}, []),
        # in words, which are not read: it may be that number
        ("一百二十股", {"expression": "120 * 2"}, []),
        ("三万五千米", {"value": 35000}, []),
        ("两百股", {"value": 200}, []),
        ("二〇二五年", {"value": 2025}, []),
        ("百分之十五", {"value": 0.15}, []),
        ("半价", {"value": 0.5}, []),
        ("one hundred and twenty shares", {"value": 120}, []),
        ("a dozen eggs at 3 each", {"expression": "12 * 3"}, []),
        ("twenty-five miles", {"value": 25}, []),
        # no numbers in words
        ("两个城市一共多少，哪一个更高？", {"value": 300}, ["300"]),
        ("星期三十分热，多少千米？", {"value": 300}, ["300"]),
        ("1.5 万股和 3 million", {"value": 300}, ["300"]),
        ("Someone often eats before the weight", {"value": 300}, ["300"]),
        ("one of the two", {"value": 300}, ["300"]),
        # per cent
        ("15% of 240", {"expression": "240 * 0.15"}, []),
        ("15% of 240", {"expression": "15% * 240"}, []),
        ("15 percent of 240", {"expression": "240 * 15 / 100"}, []),
        ("百分之15", {"expression": "0.15 * 1"}, []),
        ("the factor is 0.15", {"expression": "15% * 2"}, []),
        # small numbers of a formula, and codes
        ("how warm?", {"expression": "(1 + 2) / 2 * 0"}, []),
        ("price of Tencent", {"symbol": "0700.HK"}, []),
        ("price of Moutai", {"symbol": "600519.SS"}, []),
        ("the paper Q3", {"name": "Q3", "place": "mp3_4"}, []),
        ("anything", {"flag": True, "none": None}, []),
        # from nowhere
        ("持有 100 股", {"expression": "300 * 100"}, ["300"]),
        ("Hold 100 shares", {"expression": "385.6 * 100"}, ["385.6"]),
        ("18 °C", {"value": 20}, ["20"]),
        ("18 °C", {"expression": "18 * 9 / 5 + 32"}, ["9", "5", "32"]),
        ("385.6 and 100", {"expression": "38560 / 2"}, ["38560"]),  # in its head
        ("385.6", {"expression": "386 * 2"}, ["386"]),  # rounded is not said
        ("100 shares", {"value": 100.5}, ["100.5"]),
        ("240", {"expression": "240 * 15%"}, ["15"]),
        ("1234", {"value": 234}, ["234"]),
        ("2.5", {"deep": {"values": [2.5, 7.5]}}, ["7.5"]),
        ("持有 100 股", "300 * 100", ["300"]),  # arguments that did not parse
    ],
)
def test_what_is_missing(said: str, arguments: Any, missing: list[str]) -> None:
    assert [number.text for number in Said(said).missing(arguments)] == missing


def test_an_average_may_count_the_results() -> None:
    said = Said("the average temperature")
    for result in ("25 °C", "28 °C", "31 °C"):
        said.learn(result)
    assert said.missing({"expression": "(25 + 28 + 31) / 3"}) == []
    assert [n.text for n in said.missing({"expression": "25 / 4"})] == ["4"]


def step(turn: int, tool: str, arguments: Any, result: str, ok: bool = True) -> Step:
    return Step(turn, tool, arguments, json.dumps(arguments), result, ok, 0)


PRICE = (
    "get_stock_price",
    {"symbol": "腾讯"},
    "腾讯 Tencent 0700.HK: 385.6 HKD (+1.2 %)",
)
CLOCK = ("get_current_time", {}, "2026-01-05 09:30:00 (Monday, UTC+0800)")
GUESS = ("calculate", {"expression": "300 * 100"}, "30000")
RIGHT = ("calculate", {"expression": "385.6 * 100"}, "38560.0")
QUESTION = "腾讯多少钱？持有 100 股值多少？"


@pytest.mark.parametrize(
    ("steps", "answer", "arrived", "again", "in_answer"),
    [
        # the published trace: all in one turn
        ([(1, *CLOCK), (1, *PRICE), (1, *GUESS)], "38,560", 1, None, False),
        ([(1, *PRICE), (1, *GUESS)], "值 30,000 港元", 1, None, True),
        ([(1, *GUESS), (2, *PRICE)], "约 38,560 港元", 2, None, False),
        ([(1, *GUESS), (2, *PRICE), (3, *RIGHT)], "38,560", 2, 3, False),
        ([(1, *PRICE), (1, *GUESS), (2, *RIGHT)], "不知道", 1, 2, False),
        ([(1, *PRICE), (1, *GUESS), (2, *RIGHT)], "", 1, 2, False),
        ([(1, *GUESS)], "约 3 万港元", None, None, True),
        ([(1, "t", {}, "no digits"), (1, *GUESS)], "30000.0", None, None, True),
    ],
)  # fmt: skip
def test_what_became_of_it(
    steps: list[Any],
    answer: str,
    arrived: int | None,
    again: int | None,
    in_answer: bool,
) -> None:
    run = Run("mine", QUESTION, answer=answer, steps=[step(*each) for each in steps])
    mark(run)
    ((turn, found),) = [(s.turn, each) for s in run.steps for each in s.ungrounded]
    assert found == {
        "number": "300",
        "argument": "expression",
        "arrived": arrived,
        "again": again,
        "result": "30000",
        "in_answer": in_answer,
    }
    assert run.warnings == [f"turn {turn}, calculate: {note(found)}"]


def test_a_call_that_failed_came_to_nothing() -> None:
    failed = step(1, "calculate", {"expression": "300 /"}, "Error: see 7", ok=False)
    run = Run("mine", "how much?", answer="300", steps=[failed])
    mark(run)
    (found,) = failed.ungrounded
    assert found["result"] is None
    assert note(found) == "300 was made up: in no question and no earlier result"


def test_one_note_for_the_numbers_of_a_call() -> None:
    guess = step(1, "calculate", {"expression": "300 * 40 + 300"}, "12300")
    price = step(2, *PRICE)
    run = Run("mine", "how much?", answer="12,300", steps=[guess, price])
    mark(run)
    assert run.warnings == [
        "turn 1, calculate: 300, 40 were made up: in no question and no earlier result;"
        " other results came in turn 2; what came of it, 12300, is in the answer"
    ]


def test_a_result_of_the_same_turn_comes_too_late() -> None:
    weather = ("get_weather", {"city": "北京"}, "北京 Beijing: 25 °C, 晴 sunny")
    doubled = ("calculate", {"expression": "25 * 2"}, "50")
    run = Run("mine", "Beijing, doubled?", answer="50")
    run.steps = [step(1, *weather), step(1, *doubled)]
    mark(run)
    assert [found["number"] for found in run.steps[1].ungrounded] == ["25"]
    run.steps[1].turn = 2
    mark(run)
    assert run.steps[1].ungrounded == []


def test_the_result_of_a_call_does_not_ground_it() -> None:
    run = Run(
        "mine", "hm", steps=[step(1, "calculate", {"expression": "7 * 6"}, "42 7")]
    )
    mark(run)
    assert [found["number"] for found in run.steps[0].ungrounded] == ["7", "6"]


def said(*messages: tuple[str, Any]) -> Exchange:
    told = [{"role": role, "content": content} for role, content in messages]
    return Exchange({"messages": told}, status=200)


def test_a_result_in_a_user_message_was_read() -> None:
    """So agents in text hand on results: no step knows them."""
    asked = ("user", "Tencent, 100 shares?")
    guess = ("assistant", "Suppose it were 300.")
    result = ("user", [{"type": "text", "text": "Observation: 385.6 HKD"}])
    run = Run("mine", "Tencent, 100 shares?", protocol="text")
    run.exchanges = [said(asked), said(asked, guess, result)]
    run.steps = [
        Step(1, "price", {"symbol": "Tencent"}, "", None, None),
        Step(2, "calculate", {"expression": "385.6 * 100 - 300"}, "", None, None),
    ]
    mark(run)
    assert [found["number"] for found in run.steps[1].ungrounded] == ["300"]
    run.steps[1].turn = 1
    mark(run)
    assert [found["number"] for found in run.steps[1].ungrounded] == ["385.6", "300"]


@pytest.mark.parametrize(
    ("question", "expression"),
    [
        ("1e2000000 % of 5", "1e2000000 % 5"),
        ("一" * 5000, "一" * 5000 + " + 7"),
        ("亿" * 20_000, "亿" * 20_000 + " + 7"),
        ("9" * 100_000, "8" * 100_000 + " % 7"),
        ("111," * 20_000, "1,111," * 20_000),
        ("7." * 50_000, ".7" * 50_000),
        (" " * 100_000, " " * 100_000 + "7"),
        ("hundred " * 20_000, "7 % " * 20_000),
    ],
    ids=lambda text: text[:8],
)
def test_no_number_takes_long_or_fails(question: str, expression: str) -> None:
    began = time.process_time()
    run = Run("mine", question, answer=question)
    run.steps = [step(1, "calculate", {"expression": expression}, expression)]
    mark(run)
    assert time.process_time() - began < 2
    assert len(run.steps[0].ungrounded) <= MOST


def test_deep_and_many_arguments_are_bounded() -> None:
    deep: Any = 7
    for _ in range(5000):
        deep = [deep]
    many = {"deep": deep, "many": list(range(100, 100_000)), "odd": [float("nan")]}
    found = Said("how much?").missing(many)
    assert [number.text for number in found[:2]] == ["7", "100"]
    assert len(found) == MOST


def test_an_earlier_question_and_its_answer_ground_a_follow_up() -> None:
    run = Run("mine", "double it, VAT", history=["Beijing?"])
    told = [("system", "VAT is 19 %"), ("user", "Beijing?"), ("assistant", "25 °C")]
    run.exchanges = [said(*told, ("user", "double it, VAT"))]
    run.steps = [step(1, "calculate", {"expression": "25 * 2 * 1.19 * 19%"}, "59.5")]
    mark(run)
    assert [found["number"] for found in run.steps[0].ungrounded] == ["1.19"]


@pytest.mark.slow
@implementations
def test_the_traces_of_the_ladder_show_the_published_guess(
    implementation: Implementation, offline_settings: Settings
) -> None:
    """Stage 5 asks for one call at a time and waits: it has nothing to guess."""
    settings = offline_settings.model_copy(update={"temperature": 1.5})
    plan = Plan([implementation], [[PUBLISHED]], settings, TOOLS, repeats=25)
    runs = list(gather(plan, lambda number: OfflineModel(run_seed=number)))
    for run in runs:
        guessed = [s for s in run.steps if "300" in str(s.arguments)]
        assert [s for s in run.steps if s.ungrounded] == guessed
        assert from_line(to_line(run)).steps == run.steps
    guesses = [run for run in runs if any(s.ungrounded for s in run.steps)]
    assert bool(guesses) == (implementation.name != "stage5")
    if not guesses:
        return
    out = StringIO()
    show.side_by_side(Console(file=out, width=120), guesses[:1])
    assert "! 300 was made up" in out.getvalue()
    (found,) = next(s for s in guesses[0].steps if s.ungrounded).ungrounded
    assert (found["arrived"], found["result"]) == (1, "30000")
