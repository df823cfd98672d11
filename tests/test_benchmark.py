"""The benchmark: its cases, and what completes one."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmark_runs import CASES, TENCENT, WORTH, run, step
from langchain_core.tools import tool as lc_tool

from equivalence.cli import main
from equivalence.clock import now
from equivalence.runs.grounding import mentions
from equivalence.runs.record import Run, Step
from equivalence.score.cases import KINDS, Case, check, read_cases
from toolkit.policy import by_name
from tools import TOOLS

pytestmark = pytest.mark.usefixtures("folder")

# -------------------------------------------------------------------------- the data


def chinese(case: Case) -> bool:
    return bool(re.search("[一-鿿]", "".join(q.ask for q in case.questions)))


def test_the_benchmark_is_balanced() -> None:
    kinds = Counter(case.kind for case in CASES.values())
    assert kinds == {"one tool": 15, "several tools": 20, "none": 15, "follow-up": 8}
    assert set(kinds) == set(KINDS)
    for kind in KINDS:
        languages = Counter(chinese(c) for c in CASES.values() if c.kind == kind)
        assert abs(languages[True] - languages[False]) <= 1, kind
    used = {c.tool for case in CASES.values() for q in case.questions for c in q.calls}
    assert used == set(by_name(TOOLS))
    lengths = {len(c.questions) for c in CASES.values() if c.kind == "follow-up"}
    assert lengths == {2, 3}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_call_is_checked_by_its_answer(case: Case) -> None:
    for question in case.questions:
        assert bool(question.calls) <= bool(question.answer), "nothing is checked"
    if case.kind == "follow-up":
        assert any(question.calls for question in case.questions)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_right_answer_comes_from_the_tools_and_not_from_the_question(
    case: Case,
) -> None:
    results = ""
    for question in case.questions:
        results += "".join(f"{call.result}\n" for call in question.calls)
        for expected in question.answer:
            if isinstance(expected, float):
                assert mentions(results, expected)
                assert not mentions(question.ask, expected)
        assert not (question.wrong and re.search(question.wrong, results))


def entry(**changes: Any) -> dict[str, Any]:
    question = {"ask": "Beijing?", "calls": [["get_weather", {"city": "Beijing"}]]}
    fields = {"id": "a", "questions": [question]}
    inner = ("calls", "answer", "wrong")
    question |= {name: changes.pop(name) for name in inner if name in changes}
    return fields | changes


BEFORE = ["calculate", {"expression": "1"}, "get_weather"]


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ([], ": Expected `array` of length >= 1 - at `$.cases`"),
        (["just a text"], ", case 1: Expected `object`, got `str`"),
        ([entry(colour="red")], ", case a: Object contains unknown field `colour`"),
        ([entry(id=7)], ", case 7: Expected `str`, got `int` - at `$.id`"),
        ([entry(questions=[])], ", case a: Expected `array` of length >= 1"),
        ([entry(questions=[{}])], ", case a: Object missing required field `ask`"),
        ([entry(wrong="(")], ", case a: missing )"),
        ([entry(calls=[["get_weather"]])], ", case a: Expected `array` of length >= 2"),
        ([entry(calls=[["get_weather", 5]])], ", case a: Expected `object`, got `int`"),
        ([entry(calls=[["get_weather", {"city": "Oslo"}]])], "no weather for 'Oslo'"),
        (
            [entry(calls=[["get_weather", {"town": "Oslo"}]])],
            "get_weather(Oslo) cannot work: TypeError: get_weather() got an unexpected",
        ),
        (
            [entry(calls=[["fly", {}]])],
            ", case a: fly() cannot work: no tool is named 'fly'",
        ),
        (
            [entry(calls=[BEFORE])],
            ", case a: calculate(1) needs get_weather, not called before",
        ),
        ([entry(answer=[True])], ", case a: Expected"),
        ([entry(answer=[[]])], ", case a: Expected `array` of length >= 1"),
        ([entry(answer=[""])], ", case a: Expected `str` of length >= 1"),
        ([entry(answer=[-6])], ", case a: Expected `float` >= 0"),
        ([entry(), entry()], ", case a: the id is taken"),
        ([entry(), entry(id="b")], ", case b: it begins with the same question as a"),
    ],
)
def test_a_case_that_cannot_be_one_is_named(
    own: Path, cases: list[Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps({"cases": cases})
    printed = refused(own, text, capsys)
    assert printed.startswith("error: cases.yaml")
    assert words in printed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- id: [", "not YAML"),
        ("- id: a", "cases.yaml: Expected `object`, got `array`"),
        ("cases: [{}]\ncity: x", "unknown field `city`"),
        ("cases: [{}]\nnames: [[]]", "at `$.names[0]`"),
        ("cases: [{}]\npublished: {completed: 1}", "missing required field `note`"),
        ("cases: [{}]\npublished: {note: x, seconds: a}", "at `$.published.seconds`"),
    ],
)
def test_a_file_that_cannot_be_one_is_named(
    own: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(own, text, capsys)


@pytest.mark.parametrize("kind", ["plain", "async", "langchain"])
def test_tools_as_people_have_them(folder: Path, kind: str) -> None:
    def get_weather(city: str) -> dict[str, int]:
        """Look up the weather."""
        return {city: now().year}

    async def later(city: str) -> dict[str, int]:
        """Look up the weather, later."""
        return get_weather(city)

    later.__name__ = get_weather.__name__
    tools = {"plain": get_weather, "async": later, "langchain": lc_tool(get_weather)}
    (folder / "cases.yaml").write_text(json.dumps({"cases": [entry()]}), "utf-8")
    ((case,), _) = read_cases(folder / "cases.yaml", [tools[kind]])
    assert case.questions[0].calls[0].result == '{"Beijing": 2026}'


def refused(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    table = '[tool.equivalence]\ntools = "tools:TOOLS"\n'
    (folder / "pyproject.toml").write_text(table, encoding="utf-8")
    (folder / "cases.yaml").write_text(text, encoding="utf-8")
    assert main(["score", "--cases", "cases.yaml"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_without_cases_it_says_where_they_come_from(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score"]) == 2
    assert "no cases: give --cases FILE" in capsys.readouterr().err
    assert main(["score", "--cases", "not.yaml"]) == 2
    assert "error: not.yaml: No such file" in capsys.readouterr().err


def test_without_tools_calls_are_compared_by_their_arguments(folder: Path) -> None:
    text = json.dumps({"names": [["北京", "Beijing"]], "cases": [entry()]})
    (folder / "cases.yaml").write_text(text, encoding="utf-8")
    ((case,), published) = read_cases(folder / "cases.yaml", [])
    assert published is None
    for city, made in (("beijing", True), ("北京", True), ("上海", False)):
        call = {"city": city}
        unwatched = Step(1, "get_weather", call, json.dumps(call), None, None)
        assert check(case, [run(unwatched, answer="25")]).completed == made


def reasons(case: str, *runs: Run) -> tuple[str, ...]:
    return check(CASES[case], runs).reasons


# ------------------------------------------------------------- what completes a case


def test_the_published_chain_is_completed() -> None:
    found = check(CASES["time-price-value"], [run(*TENCENT, answer=WORTH)])
    assert found.completed
    assert found.extra_calls == ()


@pytest.mark.parametrize(
    "expression", ["385.6*100", "385.60 × 100", "3856 * 10", "(300 + 85.6) * 100"]
)
def test_a_calculation_is_compared_by_its_value(expression: str) -> None:
    steps = (*TENCENT[:2], step("calculate", expression=expression, turn=3))
    assert reasons("time-price-value", run(*steps, answer=WORTH)) == ()


def test_a_difference_may_be_taken_either_way() -> None:
    steps = [step("get_weather", city=city) for city in ("Tokyo", "新加坡")]
    steps.append(step("calculate", expression="21 - 32", turn=2))
    assert reasons("warmer-by-degrees", run(*steps, answer="Singapore, by 11")) == ()


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        ({"city": "Guangzhou"}, True),
        ({"city": " 广州市"}, True),
        ({"city": "广州", "unit": "celsius"}, True),  # unknown ones are dropped
        ({"city": "上海"}, False),
        ({"city": "Canton"}, False),
        ({}, False),
    ],
)
def test_a_city_is_compared_by_any_of_its_names(
    arguments: dict[str, Any], same: bool
) -> None:
    found = reasons(
        "weather-guangzhou", run(step("get_weather", **arguments), answer="31 °C")
    )
    assert found == (() if same else ("get_weather(广州) was not called",))


def test_companies_and_numbers_as_text_are_compared_by_value() -> None:
    price = run(step("get_stock_price", symbol="MSFT"), answer="USD 415.50")
    assert reasons("price-microsoft", price) == ()
    miles = step("unit_convert", value="26.20", from_unit="mile", to_unit="km")
    assert reasons("convert-miles", run(miles, answer="42.16")) == ()
    other = step("unit_convert", value=26.2, from_unit="km", to_unit="mile")
    assert reasons("convert-miles", run(other, answer="42.16")) == (
        "unit_convert(26.2, mile, km) was not called",
    )


def test_a_missing_call_is_named() -> None:
    in_the_head = run(*TENCENT[:2], answer=WORTH)
    assert reasons("time-price-value", in_the_head) == (
        "calculate(100 * 385.6) was not called",
    )
    wrong = (*TENCENT[:2], step("calculate", expression="300 * 100", turn=3))
    found = check(CASES["time-price-value"], [run(*wrong, answer=WORTH)])
    assert found.reasons == ("calculate(100 * 385.6) was not called",)
    assert found.extra_calls == ("calculate(300 * 100)",)


def test_a_call_that_failed_was_not_made() -> None:
    failed = run(step("get_weather", city="广州", ok=False), answer="31 °C")
    assert reasons("weather-guangzhou", failed) == ("get_weather(广州) was not called",)
    unwatched = run(step("get_weather", city="广州", ok=None), answer="31 °C")
    assert reasons("weather-guangzhou", unwatched) == ()
    unread = Step(1, "get_weather", "city: 广州", "city: 广州", None, None)
    assert reasons("weather-guangzhou", run(unread, answer="31 °C")) == (
        "get_weather(广州) was not called",
    )


def test_the_order_counts_where_data_depends_on_data() -> None:
    clock, price, worth = TENCENT
    worth = step("calculate", expression="100 * 385.6", turn=2)
    assert reasons("time-price-value", run(price, clock, worth, answer=WORTH)) == (
        "calculate(100 * 385.6) was called before get_stock_price had answered",
    )
    price, clock = step("get_stock_price", symbol="0700.HK"), step(clock.tool, turn=3)
    assert reasons("time-price-value", run(price, worth, clock, answer=WORTH)) == ()
    early = step("calculate", expression="100 * 385.6")  # and once more, rightly
    steps = (price, early, worth, clock)
    assert reasons("time-price-value", run(*steps, answer=WORTH)) == ()


def test_calls_beyond_the_expected_are_allowed_and_reported() -> None:
    steps = [step("get_weather", city=city) for city in ("广州", "香港", "Guangzhou")]
    found = check(CASES["weather-guangzhou"], [run(*steps, answer="31 °C")])
    assert found.completed
    assert found.extra_calls == ("get_weather(香港)", "get_weather(Guangzhou)")


def test_without_a_need_no_call_is_right() -> None:
    assert reasons("hamlet", run(answer="Shakespeare")) == ()
    assert reasons("hamlet", run(step("get_current_time"), answer="Shakespeare")) == (
        "get_current_time() was called, where no tool is needed",
    )
    assert reasons("hamlet", run(status="empty")) == ("it ended as empty",)


def test_a_run_that_did_not_end_well_is_not_completed() -> None:
    assert reasons("time-price-value", run(*TENCENT, status="step_limit")) == (
        "it ended as step_limit",
    )
    down = run(status="model_error")
    down.error = "the endpoint failed: cannot reach it"
    assert reasons("hello-zh", down) == (
        "it ended as model_error: the endpoint failed: cannot reach it",
    )


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ("38560", True),
        ("38560.0", True),
        ("38,560 港元", True),
        ("３８５６０", True),
        ("3.856 万港元", True),
        ("HKD 38,560.00", True),
        ("**38560**", True),
        ("38650", False),
        ("385600", False),
        ("138,560", False),
        ("about 38,600", False),
        ("30000", False),
        ("", False),
    ],
)
def test_a_number_is_found_whatever_its_format(answer: str, holds: bool) -> None:
    found = reasons(
        "time-price-value", run(*TENCENT, answer=f"9:30，385.6，{answer}。")
    )
    assert found == (() if holds else ("the answer lacks 38560",))


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ("154.324 磅", True),
        ("约 154.32 磅", True),
        ("154.3", True),
        ("大约是 70，154.32 磅", True),
        ("154", True),
        ("155", False),
        ("150", False),
        ("1.54", False),
    ],
)
def test_a_number_may_be_rounded(answer: str, holds: bool) -> None:
    pounds = step("unit_convert", value=70, from_unit="kg", to_unit="lb")
    assert bool(reasons("convert-kilograms", run(pounds, answer=answer))) != holds


def test_a_half_may_be_rounded_up_or_down() -> None:
    price = step("get_stock_price", symbol="微软")
    part = step("calculate", expression="0.15 * 415.5", turn=2)
    for answer in ("62.325", "62.33", "62.32"):
        assert reasons("share-of-a-price", run(price, part, answer=answer)) == ()
    assert reasons("share-of-a-price", run(price, part, answer="62.34")) != ()


@pytest.mark.parametrize(
    ("answer", "lacking"),
    [
        ("上海更暖和，28 °C。", ()),
        ("Shanghai is warmer.", ()),
        ("北京 25 °C，上海 28 °C，所以上海更暖和。", ()),
        ("上海比北京更暖和。", ()),
        ("比起北京，更暖和的是上海。", ()),
        ("北京更暖和，上海凉一些。", ("the answer says '北京更'",)),
        ("北京比上海暖和。", ("the answer says '北京比上海暖'",)),
        ("28 °C 的那个。", ("the answer lacks 上海",)),
    ],
)
def test_a_choice_is_told_by_its_name(answer: str, lacking: tuple[str, ...]) -> None:
    steps = [step("get_weather", city=city) for city in ("北京", "Shanghai")]
    assert reasons("warmer-shanghai", run(*steps, answer=answer)) == lacking


@pytest.mark.parametrize(
    ("answer", "completed"),
    [
        ("-6 °C", True),
        ("零下 6 度", True),
        ("minus 6 degrees", True),
        ("6 °C", False),
        ("-8 °C", False),
    ],
)
def test_a_sign_is_looked_for_on_its_own(answer: str, completed: bool) -> None:
    weather = step("get_weather", city="Harbin")
    assert (reasons("weather-harbin", run(weather, answer=answer)) == ()) == completed


def test_a_conversation_is_completed_when_all_of_its_questions_are() -> None:
    first = run(step("get_stock_price", symbol="腾讯"), answer="385.6 港元")
    right = run(step("calculate", expression="385.6 * 300"), answer="115,680 港元")
    wrong = run(step("get_stock_price", symbol="腾讯"), answer="30000 港元")
    assert reasons("price-then-holding", first, right) == ()
    assert reasons("price-then-holding", first, wrong) == (
        "question 2: calculate(300 * 385.6) was not called",
        "question 2: the answer lacks 115680",
    )
