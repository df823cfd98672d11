"""The benchmark: its data, what completes a case, and the figures."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from equivalence import record
from equivalence.benchmark import (
    FILE,
    KINDS,
    Case,
    check,
    outcome,
    read_cases,
)
from equivalence.cli import main
from equivalence.grounding import mentions
from equivalence.implementations import LADDER
from equivalence.observe import observe
from equivalence.record import Run, Step
from equivalence.score import (
    PUBLISHED,
    Answered,
    Benchmark,
    Score,
    ask,
    context,
    score,
)
from equivalence.trace import UNREAD
from equivalence.trial import subjects
from gateway import Gateway, Script
from gateway.repairs import REPAIRS
from tokens import message_tokens, tokens
from tools import TOOLS, by_name

ROOT = Path(__file__).parent.parent
CASES = {case.id: case for case in read_cases()}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -------------------------------------------------------------------------- the data


def test_the_benchmark_is_balanced() -> None:
    kinds = Counter(case.kind for case in CASES.values())
    assert kinds == {"one tool": 15, "several tools": 20, "none": 15, "follow-up": 8}
    for kind in KINDS:
        languages = Counter(c.language for c in CASES.values() if c.kind == kind)
        assert abs(languages["zh"] - languages["en"]) <= 1, kind
    used = {c.tool for case in CASES.values() for q in case.questions for c in q.calls}
    assert used == set(by_name(TOOLS))
    lengths = {len(c.questions) for c in CASES.values() if c.kind == "follow-up"}
    assert lengths == {2, 3}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_case_is_what_it_says(case: Case) -> None:
    calls = [len(question.calls) for question in case.questions]
    if case.kind == "follow-up":
        assert len(calls) > 1
        assert sum(calls) > 0
    else:
        (number,) = calls
        assert (case.kind == "none", case.kind == "one tool") == (
            not number,
            number == 1,
        )
    said = "".join(question.ask for question in case.questions)
    assert (case.language == "zh") == bool(re.search("[一-鿿]", said))
    for question in case.questions:
        assert bool(question.calls) <= bool(question.answer), "nothing is checked"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_right_answer_comes_from_the_tools_and_not_from_the_question(
    case: Case,
) -> None:
    results = ""
    for question in case.questions:
        results += "".join(f"{outcome(call).content}\n" for call in question.calls)
        for expected in question.answer:
            if isinstance(expected, Decimal):
                assert mentions(results, expected)
                assert not mentions(question.ask, expected)
        assert not (question.wrong and re.search(question.wrong, results))


def entry(**changes: Any) -> str:
    question = {"ask": "Beijing?", "calls": [["get_weather", {"city": "Beijing"}]]}
    fields = {"id": "a", "kind": "one tool", "language": "en", "questions": [question]}
    question |= {
        k: changes.pop(k) for k in ("calls", "answer", "wrong") if k in changes
    }
    return json.dumps(fields | changes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- id: [", "not YAML"),
        ("id: a", "no list of cases"),
        ("[]", "no list of cases"),
        ("- just a text", "case 1: "),
        (
            f"- {entry(kind='two tools')}",
            "case a: kind 'two tools' is none of one tool",
        ),
        (f"- {entry(language='de')}", "language 'de'"),
        (f"- {entry(colour='red')}", "unexpected keyword argument 'colour'"),
        (f"- {entry(questions=[])}", "no questions"),
        (f"- {entry(questions=[{}])}", "'ask'"),
        (f"- {entry(wrong='(')}", "case a: missing )"),
        (
            f"- {entry(calls=[['get_weather', {'city': 'Oslo'}]])}",
            "no weather for 'Oslo'",
        ),
        (
            f"- {entry(calls=[['fly', {}]])}",
            "fly() cannot work: Error: there is no tool",
        ),
        (
            f"- {entry(calls=[['calculate', {'expression': '1'}, 'get_weather']])}",
            "calculate(1) needs get_weather, which is not before",
        ),
        (f"- {entry(answer=[True])}", "True is neither a number nor a text"),
        (f"- {entry(answer=[[]])}", "[] is neither a number nor a text"),
        (f"- {entry(answer=[-6])}", "-6: a number has no sign here"),
        (f"- {entry()}\n- {entry()}", "case a: the id is taken"),
        (
            f"- {entry()}\n- {entry(id='b')}",
            "case b: it begins with the same question as a",
        ),
    ],
)
def test_a_case_that_cannot_be_one_is_named(
    folder: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "cases.yaml"
    file.write_text(text, encoding="utf-8")
    assert main(["score", "--cases", "cases.yaml"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: cases.yaml")
    assert words in printed.err
    assert printed.err.count("\n") == 1


# ------------------------------------------------------------- what completes a case


def step(tool: str, *, turn: int = 1, ok: bool | None = True, **arguments: Any) -> Step:
    return Step(turn, tool, arguments, json.dumps(arguments), "", ok)


def run(*steps: Step, answer: str = "", status: str = "completed") -> Run:
    return Run("stage9", "", steps=list(steps), answer=answer, status=status)


TENCENT = (
    step("get_current_time"),
    step("get_stock_price", symbol="腾讯", turn=2),
    step("calculate", expression="100 * 385.6", turn=3),
)
WORTH = "现在 09:30，股价 385.6 港元，市值 38,560 港元。"


def reasons(case: str, *runs: Run) -> tuple[str, ...]:
    return check(CASES[case], runs).reasons


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
    unread = Step(1, "get_weather", "city: 广州", "city: 广州", "", None)
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
        ("三万八千五百六十", True),
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
        ("minus six degrees", True),
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


# ----------------------------------------------------------------------- the figures


def exchange(prompt_tokens: int | None = None, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "x"}
    reply: dict[str, Any] = {"choices": [{"message": message, "finish_reason": "stop"}]}
    if prompt_tokens is not None:
        reply["usage"] = {"prompt_tokens": prompt_tokens}
    request = {"messages": [{"role": "user", "content": "go"}]}
    fields = {"request": request, "reply": reply, "status": 200, "repairs": []}
    return {**fields, "ms": 1.0, "attempt": 0, **more}


def answered(
    case: str, *runs: Run, seconds: tuple[float, ...] = (), name: str = "stage9"
) -> Answered:
    return Answered(name, CASES[case], runs, seconds or (1.0,) * len(runs))


def test_the_figures_of_known_runs() -> None:
    right = run(*TENCENT, answer=WORTH)
    right.exchanges = [exchange(900), exchange(1000), exchange(1100), exchange(1200)]
    wrong = run(step("get_weather", city="Oslo", ok=False), answer="no idea")
    repeated = exchange(2000, attempt=1)
    wrong.exchanges = [exchange(800), exchange(1500), repeated]
    wrong.unread = [2]
    none = run(answer="hello")
    none.exchanges = [exchange(700)]
    first = run(step("get_weather", city="北京"), answer="25 °C")
    first.exchanges = [exchange(), exchange(850)]
    down = run(status="model_error")
    down.exchanges = [exchange(status=502, reply={"error": {"message": "down"}})]
    gathered = [
        answered("time-price-value", right, seconds=(4.0,)),
        answered("weather-guangzhou", wrong, seconds=(2.0,)),
        answered("hello-zh", none, seconds=(1.0,)),
        answered("beijing-then-shanghai", first, down, seconds=(2.0, 3.0)),
        answered("hello-zh", none, name="another"),
    ]
    assert score("stage9", gathered) == Score(
        implementation="stage9",
        by_kind={
            "one tool": (0, 1),
            "several tools": (1, 1),
            "none": (1, 1),
            "follow-up": (0, 1),
        },
        completed=50.0,
        calls_worked=80.0,  # 4 of 5
        extra_calls=1,
        model_calls=2.0,  # 4 + 2 + 1 + 2 + 1 in 5 questions
        seconds=2.4,  # 12 in 5
        peak_context=2000,
        peak_estimated=False,
        unread=pytest.approx(100 / 9),  # of 9 replies
    )


def test_where_there_is_nothing_there_is_no_figure() -> None:
    nothing = score("stage9", [])
    assert nothing.by_kind == dict.fromkeys(KINDS, (0, 0))
    assert nothing.completed is nothing.calls_worked is nothing.model_calls is None
    assert nothing.seconds is nothing.peak_context is nothing.unread is None


def test_a_context_nobody_counted_is_estimated() -> None:
    messages = [{"role": "user", "content": "北京天气怎么样？"}]
    tools = [{"type": "function", "function": {"name": "get_weather"}}]
    asked = {"messages": messages, "tools": tools}
    listed = tokens(json.dumps(tools, ensure_ascii=False))
    assert listed > 0
    assert context(exchange(request=asked)) == (message_tokens(messages) + listed, True)
    assert context(exchange(1234, request=asked)) == (1234, False)
    blocks = [
        {"role": "user", "content": [{"type": "text", "text": "北京天气怎么样？"}]}
    ]
    assert context(exchange(request={"messages": blocks})) == (
        message_tokens(messages),
        True,
    )


# ------------------------------------------------- replies that could not be read


def watched(
    name: str, gateway: Gateway, settings: Settings, replies: list[Any], **more: Any
) -> Run:
    (subject,) = subjects([name])
    settings = settings.model_copy(update={"max_steps": 6})
    script = Script([{"message": message} for message in replies])
    return observe(
        name, subject.agent, "go", settings, gateway, TOOLS, upstream=script, **more
    ).run


def call(arguments: str) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {"tool_calls": [{"id": "a", "type": "function", "function": function}]}


def test_the_repairs_that_count_are_repairs() -> None:
    assert set(REPAIRS) > UNREAD


@pytest.mark.parametrize(
    "name", [each.name for each in LADDER if each.name != "stage5"]
)
def test_unread_with_tool_calls(
    name: str, gateway: Gateway, offline_settings: Settings
) -> None:
    replies = [
        call('{"city": "北京"'),  # broken
        {"content": '{"name": "get_weather", "arguments": {"city": "北京"}}'},  # text
        call('{"city": "北京"}'),
        call(""),  # the server's way to say: none
        {"content": "<think>so</think>done"},
    ]
    assert watched(name, gateway, offline_settings, replies).unread == [1, 2]


def test_unread_in_text(gateway: Gateway, offline_settings: Settings) -> None:
    replies = [
        {"content": "It must be warm."},
        {"content": "Action: unit_convert\nAction Input: 18 °C to °F"},
        {"content": 'Action: get_weather\nAction Input: {"city": "北京"}'},
        {"content": "Final Answer: 25 °C"},
    ]
    found = watched("stage5", gateway, offline_settings, replies)
    assert found.status == "completed"
    assert found.unread == [1, 2]
    assert Run.from_json(json.loads(json.dumps(found.to_json()))).unread == [1, 2]
    given_up = watched("stage5", gateway, offline_settings, replies[:1])
    assert given_up.status == "malformed"
    assert given_up.unread == [1, 2, 3]


# --------------------------------------------- everything, on the offline model


@pytest.mark.parametrize("name", [each.name for each in LADDER])
def test_every_implementation_completes_every_case(
    name: str, offline_settings: Settings
) -> None:
    benchmark = Benchmark(list(CASES.values()))
    for each, seconds in ask(subjects([name]), benchmark.cases, offline_settings):
        benchmark.add(each, seconds)
    assert len(benchmark.answered) == len(CASES)
    failed = {
        a.case.id: a.outcome.reasons for a in benchmark.answered if a.outcome.reasons
    }
    assert failed == {}
    found = score(name, benchmark.answered)
    assert found.completed == found.calls_worked == 100
    assert found.unread == 0
    assert 1 < (found.model_calls or 0) < 3
    assert found.peak_estimated
    assert found.peak_context == max(
        context(exchange)[0]
        for each in benchmark.answered
        for run in each.runs
        for exchange in run.exchanges
    )
    if name != "stage5":  # its memory may have let go of what is asked about
        assert found.extra_calls == 0


def few(folder: Path, *ids: str) -> str:
    """A file of some of the cases."""
    parts = re.split(r"\n(?=- id: )", FILE.read_text(encoding="utf-8"))
    chosen = [
        part for part in parts if part.startswith(tuple(f"- id: {i}\n" for i in ids))
    ]
    assert len(chosen) == len(ids)
    text = "\n".join(chosen)
    (folder / "few.yaml").write_text(text, encoding="utf-8")
    return "few.yaml"


FEW = ("two-cities", "weather-guangzhou", "beijing-then-shanghai", "hello-zh")
LOST = "equivalence.faults:lost_result"


def test_the_command_draws_a_table(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    names = ["--implementation", "stage4", "--implementation", "stage5"]
    cases = few(folder, *FEW)
    arguments = ["score", *names, *names, "--cases", cases, "--out", "runs.jsonl"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    lines = {line[:28].strip(): line[28:].split() for line in printed.splitlines()}
    assert "stage4 stage5 published" in " ".join(printed.split())
    assert lines["cases completed"] == ["100", "%", "100", "%", "88", "%"]
    assert lines["one tool"] == ["1/1", "1/1"]
    assert lines["follow-up"] == ["1/1", "1/1"]
    assert lines["tool calls that worked"] == ["100", "%", "100", "%", "94.7", "%"]
    assert lines["model calls a question"] == ["1.8", "2.0", "2.3"]
    assert lines["peak context, tokens"][-1] == "1,850"
    assert lines["peak context, tokens"][0].startswith("≈")
    assert lines["replies that did not parse"] == ["0", "%", "0", "%", "4.2", "%"]
    said = " ".join(printed.split())
    assert "Seconds are this machine's, with the offline model." in said
    assert "≈ is estimated" in said
    assert "Other cases and another model" in said
    assert "not completed" not in said
    runs = record.read(folder / "runs.jsonl")
    assert Counter(run.implementation for run in runs) == {"stage4": 5, "stage5": 5}


def test_a_broken_implementation_is_found_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It loses a result; what the model says then, it says without the tool."""
    cases = few(folder, *FEW)
    arguments = ["score", "--implementation", "stage3", "--implementation", LOST]
    assert main([*arguments, "--cases", cases, "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert "3 times a case was not completed; --failed lists them" in printed.err
    good, lost = document["scores"]
    assert (good["implementation"], good["completed"]) == ("stage3", 100)
    assert (lost["implementation"], lost["completed"]) == (LOST, 25)
    assert lost["by_kind"]["none"] == [1, 1]
    assert document["published"]["figures"] == PUBLISHED
    assert len(document["outcomes"]) == 8
    failed = [o for o in document["outcomes"] if not o["completed"]]
    assert {o["implementation"] for o in failed} == {LOST}
    assert {o["case"] for o in failed} == set(FEW) - {"hello-zh"}
    for each in document["outcomes"]:
        assert bool(each["reasons"]) != each["completed"]
        assert all(seconds > 0 for seconds in each["seconds"])

    assert main([*arguments, "--cases", cases, "--failed"]) == 1
    printed = capsys.readouterr()
    said = " ".join(printed.out.split())
    assert f"{LOST}, weather-guangzhou 广州今天天气怎么样？ →" in said
    assert "✗ the answer lacks 31" in said
    assert "stage3, " not in said


def test_one_wrong_answer_is_not_completed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "liar.py").write_text(
        "from stage4_mini_framework.agent import run_agent as honest\n"
        "def run_agent(question, **more):\n"
        "    *before, last = honest(question, **more)\n"
        "    text = last['content'].replace('31', '13')\n"
        "    return [*before, {**last, 'content': text}]\n",
        encoding="utf-8",
    )
    arguments = ["score", "--implementation", "liar:run_agent", "--failed"]
    assert main([*arguments, "--cases", few(folder, *FEW)]) == 1
    said = capsys.readouterr().out
    assert said.count("✗") == 1
    assert "the answer lacks 31" in said


def test_a_model_that_is_not_there_ends_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_RETRIES", "0")
    arguments = ["score", "--implementation", "stage4", "--base-url", "127.0.0.1:9/v1"]
    assert main([*arguments, "--model", "m"]) == 2  # no http://
    capsys.readouterr()
    arguments[-1] = "http://127.0.0.1:9/v1"
    assert main([*arguments, "--model", "m"]) == 1
    printed = capsys.readouterr()
    assert "cannot reach" in printed.err
    assert "3 of 58 answered cases" in printed.err
    assert "Is the server running?" in printed.err
    assert "0/3" in printed.out


def test_the_settings_reach_the_model(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "LLM_CLOCK", "2030-01-01T00:00:00+00:00"
    )  # the cases have theirs
    arguments = ["score", "--implementation", "stage4", "--cases", few(folder, *FEW)]
    more = ["--max-steps", "1", "--temperature", "0.5", "--model", "another"]
    assert main([*arguments, *more, "--out", "runs.jsonl"]) == 1
    for each in record.read(folder / "runs.jsonl"):
        assert len(each.model_calls) == 1
        assert each.exchanges[0]["request"]["temperature"] == 0.5
        assert each.exchanges[0]["request"]["model"] == "another"
        assert each.settings["clock"].startswith("2026-01-05T09:30")


def test_ctrl_c_keeps_what_was_gathered(folder: Path) -> None:
    """The last case never ends; the table tells of the three before it."""
    (folder / "slow.py").write_text(
        "import time\n"
        "from stage4_mini_framework.agent import run_agent as quick\n"
        "def run_agent(question, **more):\n"
        "    if question == '北京今天多少度？':\n"
        "        open('here', 'w', encoding='utf-8').close()\n"
        "        time.sleep(60)\n"
        "    return quick(question, **more)\n",
        encoding="utf-8",
    )
    arguments = ["score", "--implementation", "slow:run_agent", "--json"]
    started = subprocess.Popen(
        [sys.executable, "-m", "equivalence", *arguments, "--cases", few(folder, *FEW)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    deadline = time.monotonic() + 50
    while not (folder / "here").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    out, error = started.communicate(timeout=30)
    assert started.returncode == 130, error
    assert json.loads(out)["scores"][0]["completed"] == 100
    assert "interrupted; the figures rest on 3 of 4 answered cases" in error
    assert "Traceback" not in error
