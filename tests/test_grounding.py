"""Which numbers in a call were said before it, in digits or in words, zh and en."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from config import load_settings
from equivalence.runs.grounding import Said, mark, note
from equivalence.runs.implementation import LADDER, find, load
from equivalence.runs.record import Run, Step
from equivalence.runs.session import Subject, run_each
from equivalence.show import terminal as show
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
        # in words
        ("一百二十股", {"expression": "120 * 2"}, []),
        ("三万五千米", {"value": 35000}, []),
        ("1.5万股", {"value": 15000}, []),
        ("两百股", {"value": 200}, []),
        ("二〇二五年", {"value": 2025}, []),
        ("one hundred and twenty shares", {"value": 120}, []),
        ("a dozen eggs at 3 each", {"expression": "12 * 3"}, []),
        ("twenty-five miles", {"value": 25}, []),
        ("3 million people", {"value": 3_000_000}, []),
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
    ("steps", "answer", "real", "arrived", "outcome"),
    [
        # the published trace: all in one turn, the answer puts it right
        ([(1, *CLOCK), (1, *PRICE), (1, *GUESS)], "38,560", "385.6", 1, "corrected"),
        ([(1, *PRICE), (1, *GUESS)], "值 30,000 港元", None, 1, "used"),
        ([(1, *GUESS), (2, *PRICE)], "约 38,560 港元", "385.6", 2, "corrected"),
        ([(1, *GUESS), (2, *PRICE), (3, *RIGHT)], "约 38,560", "385.6", 2, "corrected"),
        ([(1, *PRICE), (1, *GUESS), (2, *RIGHT)], "不知道", "385.6", 1, "unused"),
        ([(1, *PRICE), (1, *GUESS), (2, *RIGHT)], "", "385.6", 1, "none"),
        ([(1, *GUESS)], "约 30000 港元", None, None, "used"),
        # the number itself comes later, by chance
        ([(1, *GUESS), (2, "t", {}, "at 300 m")], "30000", None, 2, "used"),
        ([(1, *CLOCK), (1, *GUESS)], "不知道", None, None, "unused"),
    ],
)  # fmt: skip
def test_when_the_real_value_came_and_what_the_answer_made_of_it(
    steps: list[Any], answer: str, real: str | None, arrived: int | None, outcome: str
) -> None:
    run = Run("mine", QUESTION, answer=answer, steps=[step(*each) for each in steps])
    mark(run)
    (found,) = [found for each in run.steps for found in each.ungrounded]
    assert found == {
        "number": "300",
        "argument": "expression",
        "real": real,
        "arrived": arrived,
        "answer": outcome,
    }
    assert run.warnings == [f"turn {_turn(run)}, calculate: {note(found)}"]


def _turn(run: Run) -> int:
    return next(each.turn for each in run.steps if each.ungrounded)


def test_a_converted_guess() -> None:
    weather = ("get_weather", {"city": "北京"}, "北京 Beijing: 25 °C, 晴 sunny")
    guess = {"value": 20, "from_unit": "celsius", "to_unit": "fahrenheit"}
    converted = ("unit_convert", guess, "20 celsius = 68 fahrenheit")
    run = Run("mine", "Beijing in Fahrenheit?", answer="It is 77 °F.")
    run.steps = [step(1, *weather), step(1, *converted)]
    mark(run)
    assert run.steps[1].ungrounded[0]["real"] == "25"
    assert run.steps[1].ungrounded[0]["answer"] == "corrected"


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


def test_an_earlier_question_and_its_answer_ground_a_follow_up() -> None:
    messages = [
        {"role": "system", "content": "for example 999"},
        {"role": "user", "content": "Beijing?"},
        {"role": "assistant", "content": "25 °C"},
        {"role": "user", "content": "double it"},
    ]
    run = Run("mine", "double it", history=["Beijing?"])
    run.exchanges = [{"request": {"messages": messages}}]
    run.steps = [step(1, "calculate", {"expression": "25 * 2 + 999"}, "1049")]
    mark(run)
    assert [found["number"] for found in run.steps[0].ungrounded] == ["999"]


@pytest.mark.parametrize("name", [each.name for each in LADDER])
def test_the_traces_of_the_ladder_show_the_published_guess(name: str) -> None:
    """Stage 5 asks for one call at a time and waits: it has nothing to guess."""
    agent = Subject(name, load(find(name).target))
    settings = load_settings(temperature=1.5, _env_file="")
    runs = list(run_each([agent], [[PUBLISHED]], settings, TOOLS, repeats=25))
    for run in runs:
        guessed = [s for s in run.steps if "300" in str(s.arguments)]
        assert [s for s in run.steps if s.ungrounded] == guessed
        assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run
    guesses = [run for run in runs if any(s.ungrounded for s in run.steps)]
    assert bool(guesses) == (name != "stage5")
    if name == "stage5":
        return
    out = StringIO()
    show.side_by_side(Console(file=out, width=120), guesses[:1])
    assert "! 300 is from nowhere" in out.getvalue()
    (found,) = next(s for s in guesses[0].steps if s.ungrounded).ungrounded
    assert (found["real"], found["answer"]) == ("385.6", "corrected")
