"""The judge: each cause is named where it is planted, and nowhere else."""

from __future__ import annotations

import copy
import io
from functools import wraps

import pytest
from recordings import among
from rich.console import Console
from wire import LADDER

from config import Settings
from equivalence.gateway import Exchange, Gateway, Script
from equivalence.judge.compare import (
    CAUSES,
    RULES,
    Divergence,
    Judge,
    Rules,
    Verdict,
    compare,
    explain,
    judge,
)
from equivalence.judge.exit_codes import exit_code
from equivalence.runs.implementation import Implementation, load
from equivalence.runs.observe import Observed, observe
from equivalence.runs.record import Run, Step
from equivalence.show import terminal as show
from tools import TOOLS
from variants.faults import FAULTS

STAGE3 = load("stage3_pure_loop.agent:run_agent")


def call(name: str, arguments: str, identifier: str) -> dict:
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


BEIJING = call("get_weather", '{"city": "北京"}', "a")
SHANGHAI = call("get_weather", '{"city": "上海"}', "b")
NOWHERE = call("search_web", "{}", "c")

BOTH_CITIES = [{"message": {"tool_calls": [BEIJING, SHANGHAI]}}, "done"]
UNKNOWN_TOOL = [{"message": {"tool_calls": [NOWHERE]}}, "done"]
ENDLESS = [{"message": {"tool_calls": [BEIJING]}}]
DIRECT = ["done"]


def script(replies: list) -> Script:
    items = [{"message": {"content": r}} if isinstance(r, str) else r for r in replies]
    return Script(items)


@pytest.fixture
def watch(gateway: Gateway, offline_settings: Settings):
    """Run an agent against scripted replies; returns what was observed."""

    def run(agent, replies, *, name="agent", question="go", tools=TOOLS, **more):
        settings = offline_settings.model_copy(
            update={"max_steps": 3, **more.pop("settings", {})}
        )
        return observe(
            Implementation(name, agent=agent),
            question,
            settings,
            gateway,
            tools,
            upstream=script(replies),
            **more,
        )

    return run


# ------------------------------------------------- every planted fault by its cause

PLANTED = {  # fault: (replies, where it must show: model call and path)
    "system_message_last": (DIRECT, 1, "$.messages[0].content"),
    "system_message_twice": (DIRECT, 1, "$.messages[1].content"),
    "one_space_more": (DIRECT, 1, "$.messages[0].content"),
    "lost_result": (BOTH_CITIES, 2, "$.messages[4]"),
    "swapped_results": (BOTH_CITIES, 2, "$.messages[3].content"),
    "another_temperature": (DIRECT, 1, "$.temperature"),
    "one_key_more": (DIRECT, 1, "$.top_p"),
    "one_call_less": (ENDLESS, 3, "status"),
    "one_call_more": (ENDLESS, 4, "status"),
    "gives_up": (UNKNOWN_TOOL, 2, "status"),
    "reversed_execution": (BOTH_CITIES, 1, "steps[0].order"),
    "crashes": (UNKNOWN_TOOL, 2, "status"),
    "invented_answer": (DIRECT, 1, "answer"),
    "forgetful": (DIRECT, 1, "$.messages[1].content"),
}


def test_every_fault_is_planted_here():
    assert set(PLANTED) == set(FAULTS)


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_named_with_its_cause_and_place(watch, fault):
    replies, model_call, path = PLANTED[fault]
    after = watch(STAGE3, ["yes"], question="before") if fault == "forgetful" else None
    right = watch(STAGE3, replies, after=after).run
    broken = watch(load(f"variants.faults:{fault}"), replies, after=after).run
    found = compare(right, broken)
    assert found is not None
    assert (found.cause, found.model_call, found.path) == (
        FAULTS[fault],
        model_call,
        path,
    )
    assert found.left != found.right
    verdict = judge(right, broken)
    assert verdict.verdict == "different"
    assert explain(verdict) == CAUSES[FAULTS[fault]]
    mirrored = compare(broken, right)
    assert (mirrored.cause, mirrored.left, mirrored.right) == (
        found.cause,
        found.right,
        found.left,
    )


@pytest.mark.parametrize("fault", PLANTED)
def test_bytes_differ_wherever_a_request_does(watch, fault):
    replies, _, _ = PLANTED[fault]
    after = watch(STAGE3, ["yes"], question="before") if fault == "forgetful" else None
    agents = (STAGE3, load(f"variants.faults:{fault}"))
    right, broken = (watch(agent, replies, after=after) for agent in agents)
    assert (bodies(right) == bodies(broken)) == (
        FAULTS[fault] == "control"
        and len(right.run.exchanges) == len(broken.run.exchanges)
    )


def bodies(observed: Observed) -> list[bytes]:
    return [exchange.body for exchange in observed.run.exchanges]


def test_a_tool_that_answers_differently_is_the_tools_fault(watch):
    def reworded(function):
        @wraps(function)
        def tool(**arguments):
            return function(**arguments).replace("晴", "雨")

        return tool

    right = watch(STAGE3, BOTH_CITIES).run
    other = watch(STAGE3, BOTH_CITIES, tools=[reworded(t) for t in TOOLS]).run
    found = compare(right, other)
    assert (found.cause, found.model_call, found.path) == ("tool", 1, "steps[0].result")
    assert "晴" in found.left
    assert "雨" in found.right


def test_a_tool_that_raises_for_one_only_is_the_tools_fault(watch):
    def get_weather(city: str) -> str:
        raise ValueError("down")

    flaky = [get_weather, *TOOLS[1:]]
    get_weather.__doc__ = TOOLS[0].__doc__
    found = compare(watch(STAGE3, ENDLESS).run, watch(STAGE3, ENDLESS, tools=flaky).run)
    assert (found.cause, found.path) == ("tool", "steps[0].result")
    assert found.right == "ValueError: down"


def test_a_model_that_answers_differently_is_not_the_codes_fault(watch):
    a = watch(STAGE3, ["55.0"]).run
    b = watch(STAGE3, ["`55.0`"]).run
    assert compare(a, b) == Divergence(
        "reply", 1, "$.message.content", "55.0", "`55.0`"
    )


def test_a_model_that_swaps_factors_is_named_at_the_argument(watch):
    factors = [
        [{"message": {"tool_calls": [call("calculate", text, "a")]}}, "done"]
        for text in ('{"expression": "385.6 * 100"}', '{"expression": "100 * 385.6"}')
    ]
    a, b = (watch(STAGE3, replies).run for replies in factors)
    found = compare(a, b)
    assert found.cause == "reply"
    assert found.path == "$.message.tool_calls[0].function.arguments.expression"
    assert (found.left, found.right) == ("385.6 * 100", "100 * 385.6")


# ---------------------------------------------------------------- follow-up questions


@pytest.fixture
def talk(watch):
    """Run a conversation, questions "one" and "two"; returns both runs."""

    def run(agent, first, second, *, name="agent", tools=TOOLS):
        one = watch(agent, first, name=name, question="one", tools=tools)
        if agent is not STAGE3:  # a fault begins with the second question
            one = watch(STAGE3, first, name=name, question="one", tools=tools)
        two = watch(agent, second, name=name, question="two", after=one, tools=tools)
        return one.run, two.run

    return run


def judged(left, right):
    judge = Judge()
    return [judge(*couple) for couple in zip(left, right, strict=True)]


def test_code_is_not_blamed_for_what_a_model_replied_to_an_earlier_question(talk):
    a = talk(STAGE3, ["55.0"], DIRECT, name="a")
    b = talk(STAGE3, ["`55.0`"], DIRECT, name="b")
    assert judge(a[1], b[1]).divergence.cause == "request"  # all that it shows alone
    for verdict in (judged(a, b)[1], among([*a, *b])[1]):
        place = verdict.divergence
        assert (verdict.verdict, place.cause) == ("different", "reply")
        assert (place.model_call, place.path) == (1, "$.messages[2].content")
        assert (place.began, place.part) == ("one", "request")
        assert "'one'" in explain(verdict)
        assert CAUSES["reply"] in explain(verdict)
        assert verdict.to_json()["began"] == "one"


def test_a_third_question_still_names_where_it_began(watch):
    def three(answer, name):
        seen, runs = None, []
        for number, question in enumerate(["one", "two", "three"]):
            reply = [answer] if number == 0 else DIRECT
            seen = watch(STAGE3, reply, name=name, question=question, after=seen)
            runs.append(seen.run)
        return runs

    *_, verdict = judged(three("55.0", "a"), three("`55.0`", "b"))
    assert (verdict.divergence.cause, verdict.divergence.began) == ("reply", "one")


def test_a_tool_that_answered_an_earlier_question_otherwise_is_the_tools_fault(talk):
    def get_weather(city: str) -> str:
        return "rain"

    get_weather.__doc__ = TOOLS[0].__doc__
    a = talk(STAGE3, BOTH_CITIES, DIRECT, name="a")
    b = talk(STAGE3, BOTH_CITIES, DIRECT, name="b", tools=[get_weather, *TOOLS[1:]])
    causes = [verdict.divergence.cause for verdict in judged(a, b)]
    assert causes == ["tool", "tool"]


def test_a_conversation_that_was_equal_so_far_leaves_the_code(talk):
    forgetful = load("variants.faults:forgetful")
    a = talk(STAGE3, DIRECT, DIRECT, name="a")
    b = talk(forgetful, DIRECT, DIRECT, name="b")
    first, second = judged(a, b)
    assert first.verdict == "equivalent"
    assert (second.divergence.cause, second.divergence.began) == ("request", None)


def test_a_difference_beside_the_messages_did_not_come_from_earlier(watch):
    def two(faults, name):
        first, second = (load(fault) if fault else STAGE3 for fault in faults)
        one = watch(first, BOTH_CITIES, name=name, question="one")
        two = watch(second, DIRECT, name=name, question="two", after=one)
        return one.run, two.run

    faults = [f"variants.faults:{f}" for f in ("reversed_execution", "one_key_more")]
    first, second = judged(two([None, None], "a"), two(faults, "b"))
    assert (first.divergence.cause, first.divergence.path) == (
        "control",
        "steps[0].order",
    )
    assert (second.divergence.cause, second.divergence.began) == ("request", None)


def test_an_earlier_question_that_the_endpoint_failed_leaves_it_open(talk):
    a = talk(STAGE3, DIRECT, DIRECT, name="a")
    b = talk(STAGE3, [{"status": 400}], DIRECT, name="b")
    assert [v.verdict for v in judged(a, b)] == ["inconclusive", "inconclusive"]


def test_no_cause_is_named_between_equal_runs(watch):
    callers = [each for each in LADDER if each.protocol == "tool_calls"]
    for replies in (BOTH_CITIES, UNKNOWN_TOOL, ENDLESS, DIRECT):
        runs = [watch(each.load(), replies).run for each in callers]
        for run in runs[1:]:
            verdict = judge(runs[0], run)
            assert verdict.verdict == "equivalent", verdict


# --------------------------------------------------------- endings that are no verdict


def test_an_endpoint_that_fails_for_both_is_inconclusive(watch):
    runs = [watch(STAGE3, [{"status": 400}]).run for _ in range(2)]
    assert [run.status for run in runs] == ["model_error"] * 2
    assert judge(*runs).verdict == "inconclusive"


@pytest.mark.parametrize("by", ["requests", "steps"])
@pytest.mark.parametrize("answered", [0, 1, 2])
def test_an_endpoint_that_fails_for_one_is_inconclusive_not_different(
    watch, by: str, answered: int
):
    replies = [*BOTH_CITIES[:1], *BOTH_CITIES]
    fails = [*replies[:answered], {"status": 400}]
    runs = [watch(STAGE3, each).run for each in (replies, fails)]
    assert runs[0].status == "completed"
    verdict = judge(*runs, Rules(by=by))
    assert verdict.verdict == "inconclusive", verdict
    assert verdict.divergence.cause == "reply"


def test_a_failed_attempt_that_was_repeated_is_ignored(watch):
    once = {"settings": {"retries": 1}}
    a = watch(STAGE3, DIRECT, **once)
    b = watch(STAGE3, [{"status": 500}, "done"], **once)
    assert (len(a.run.exchanges), len(b.run.exchanges)) == (1, 2)
    assert judge(a.run, b.run).verdict == "equivalent"


def test_an_agent_with_tools_of_its_own_is_judged_by_the_wire_alone(watch):
    def own_tools(question, *, history=(), settings=None, tools=TOOLS):
        return STAGE3(question, history=history, settings=settings, tools=TOOLS)

    run = watch(own_tools, BOTH_CITIES).run
    assert [step.ok for step in run.steps] == [None, None]
    assert "25 °C" in run.steps[0].result
    assert judge(watch(STAGE3, BOTH_CITIES).run, run).verdict == "equivalent"


# ------------------------------------------------------- what is ignored, and not


def recorded(arguments="{}", identifier="a", **message) -> Run:
    """A run of two model calls as a record holds it."""
    asked = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("get_weather", arguments, identifier)],
        **message,
    }
    result = {"role": "tool", "tool_call_id": identifier, "content": "晴"}
    question = [{"role": "user", "content": "q"}]
    requests = [question, [*question, asked, result]]
    replies = [asked, {"role": "assistant", "content": "done"}]
    exchanges = [
        Exchange(
            {"model": "m", "messages": request},
            {"choices": [{"message": reply, "finish_reason": "stop"}]},
            200,
            began=2.0 * number,
            ms=1.0,
        )
        for number, (request, reply) in enumerate(zip(requests, replies, strict=True))
    ]
    step = Step(1, "get_weather", {}, arguments, "晴", True, 0)
    return Run(
        "x", "q", status="completed", answer="done", steps=[step], exchanges=exchanges
    )


EQUAL = [  # rule it needs, left arguments, right arguments
    ("arguments", '{"a":1,"b":2}', '{ "b": 2, "a": 1 }'),
    ("arguments", '{"city":"北京"}', '{"city": "\\u5317\\u4eac"}'),
    ("arguments", "", "{}"),
    ("arguments", {"a": 1}, '{"a": 1}'),
    ("arguments", '{"x":', '{"x":'),
    ("numbers", '{"x": 100}', '{"x": 100.0}'),
    ("numbers", '{"x": 1e2}', '{"x": 100}'),
]
UNEQUAL = [
    ('{"x": true}', '{"x": 1}'),
    ('{"x": false}', '{"x": 0}'),
    ('{"x": "100"}', '{"x": 100}'),
    ('{"x": 0.30000000000000004}', '{"x": 0.3}'),
    ('{"x": null}', "{}"),
    ('{"x":', '{"y":'),
    ('{"x": [1, 2]}', '{"x": [2, 1]}'),
    ('{"x": {"y": 1}}', '{"x": {"y": 1, "z": 2}}'),
]


@pytest.mark.parametrize(("rule", "left", "right"), EQUAL)
def test_equal_arguments(rule, left, right):
    assert rule in RULES
    assert compare(recorded(left), recorded(right)) is None


@pytest.mark.parametrize(("left", "right"), UNEQUAL)
def test_unequal_arguments(left, right):
    found = compare(recorded(left), recorded(right))
    assert found.cause == "reply"
    assert found.path.startswith("$.message.tool_calls[0].function.arguments")


def test_ids_are_matched_not_compared():
    assert (
        compare(recorded(identifier="call_1"), recorded(identifier="toolu_9")) is None
    )
    lost = recorded(identifier="a")
    lost.exchanges[1].request["messages"][2]["tool_call_id"] = "b"
    found = compare(recorded(), lost)
    assert (found.cause, found.path) == ("request", "$.messages[2].tool_call_id")


def test_the_envelope_of_a_reply_is_ignored():
    other = recorded()
    other.exchanges[0].reply |= {
        "id": "z",
        "created": 9,
        "usage": {"total_tokens": 5},
    }
    assert compare(recorded(), other) is None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_beside_a_reply_is_ignored(field):
    other = recorded()
    other.exchanges[1].reply["choices"][0]["message"][field] = "hm"
    assert compare(recorded(), other) is None


def test_the_finish_reason_counts():
    other = recorded()
    other.exchanges[1].reply["choices"][0]["finish_reason"] = "length"
    assert compare(recorded(), other).path == "$.finish_reason"


def test_comparing_changes_no_record():
    left, right = recorded('{"a":1}'), recorded('{"a": 1}', "b")
    before = copy.deepcopy((left, right))
    compare(left, right)
    assert (left, right) == before


# ---------------------------------------------------------- the place, to the character


def test_a_text_that_says_absent_is_not_absent():
    present = recorded()
    present.exchanges[0].request["messages"][0]["content"] = "(absent)"
    lacking = recorded()
    del lacking.exchanges[0].request["messages"][0]["content"]
    verdict = judge(present, lacking)
    assert verdict.verdict == "different"
    found = verdict.to_json()
    assert found["left_value"] == "(absent)"
    assert "right_value" not in found
    null = recorded()
    null.exchanges[0].request["messages"][0]["content"] = None
    assert judge(null, lacking).to_json()["left_value"] is None


@pytest.mark.parametrize(
    ("left", "right", "offset"),
    [
        ("x" * 700 + "a", "x" * 700 + "b", 700),
        ("same", "same and more", 4),
        ("", "x", 0),
        ("北京晴", "北京雨", 2),
    ],
)
def test_where_two_texts_begin_to_differ(left, right, offset):
    runs = [recorded(), recorded()]
    for run, text in zip(runs, (left, right), strict=True):
        run.exchanges[1].reply["choices"][0]["message"]["content"] = text
    verdict = judge(*runs)
    assert verdict.to_json()["offset"] == offset
    out = io.StringIO()
    show.verdict(Console(file=out, width=400), verdict)
    assert f"they part at character {offset}" in out.getvalue()
    assert "blanks alone" not in out.getvalue()


@pytest.mark.parametrize(
    ("cause", "path", "offset"),
    [
        *(("control", "status", None), ("control", "steps[0]", None)),
        *(("unknown", "status", None), ("control", "answer", 2)),
        *(("unknown", "answer", 2), ("tool", "steps[0].result", 2)),
    ],
)
def test_words_of_the_judge_do_not_part_at_a_character(cause, path, offset):
    place = Divergence(cause, 1, path, "executed", "exit")
    verdict = Verdict("a", "b", "q", "different", place)
    assert verdict.to_json().get("offset") == offset
    out = io.StringIO()
    show.verdict(Console(file=out, width=400), verdict)
    assert ("they part at character 2" in out.getvalue()) == (offset == 2)
    assert ("character" in out.getvalue()) == (offset is not None)


@pytest.mark.parametrize(
    ("cause", "path", "part"),
    [
        *(("request", "$.messages[0]", "request"), ("reply", "$.message", "reply")),
        *(("tool", "$.messages[3].content", "request"), ("control", "status", "run")),
        ("tool", "steps[0].result", "run"),
    ],
)
def test_the_part_into_which_the_path_leads(cause, path, part):
    assert Divergence(cause, 1, path, "a", "b").part == part


def test_a_difference_in_blanks_alone_is_named_as_that():
    runs = [recorded('{"e": "1+2"}'), recorded('{"e": "1 + 2"}')]
    verdict = judge(*runs)
    assert verdict.verdict == "different"
    out = io.StringIO()
    show.verdict(Console(file=out, width=400), verdict)
    assert "they part at character 1 (blanks alone)" in out.getvalue()


# ------------------------------------------------------- model calls under way together


def conversation(*texts, began, ms=10.0, reply="done"):
    """One model call of a conversation: who said what so far."""
    messages = [{"role": "user", "content": text} for text in texts]
    answer = {"choices": [{"message": {"content": reply}, "finish_reason": "stop"}]}
    return Exchange(
        {"model": "m", "messages": messages}, answer, 200, began=began, ms=ms
    )


def at_once(*exchanges):
    return Run("x", "q", status="completed", answer="a", exchanges=list(exchanges))


def test_calls_under_way_together_are_paired_by_the_conversation_they_continue():
    """Two sub-agents whose calls arrive in another order."""
    a = at_once(
        conversation("one", began=0),
        conversation("two", began=1),
        conversation("two", "more", began=20),
        conversation("one", "more", began=21),
    )
    b = at_once(
        conversation("two", began=0),
        conversation("one", began=1),
        conversation("one", "more", began=20),
        conversation("two", "more", began=21),
    )
    assert compare(a, b) is None
    assert compare(b, a) is None


def supervised(order):
    """A run of a supervisor (0) and its two sub-agents, no two calls overlapping."""
    said, calls = {}, []
    for number, who in enumerate(order):
        texts = said[who] = (*said.get(who, ()), f"{who} {len(said.get(who, ()))}")
        calls.append(conversation(*texts, began=number * 20))
    return at_once(*calls)


@pytest.mark.parametrize("other", ["021210", "011220", "022110", "012210"])
def test_conversations_that_take_turns_run_side_by_side(other):
    one, two = supervised("012120"), supervised(other)
    assert compare(one, two) is None
    assert compare(two, one) is None


def test_one_after_another_in_another_order_is_different():
    ab, ba = supervised("011220"), supervised("022110")
    assert compare(ab, ba).path == "$.messages[0].content"
    a = at_once(conversation("one", began=0), conversation("two", began=20))
    b = at_once(conversation("two", began=0), conversation("one", began=20))
    assert compare(a, b).path == "$.messages[0].content"


def test_a_reply_that_differs_among_calls_under_way_together_is_found():
    a = at_once(
        conversation("one", began=0, reply="1"), conversation("two", began=1, reply="2")
    )
    b = at_once(
        conversation("two", began=0, reply="2"), conversation("one", began=1, reply="!")
    )
    found = compare(a, b)
    assert (found.cause, found.left, found.right) == ("reply", "1", "!")
    assert (found.model_call, found.call_side) == (1, 2)


def test_a_call_too_many_among_those_under_way_together_is_control():
    a = at_once(conversation("one", began=0), conversation("two", began=1))
    b = at_once(*a.exchanges, conversation("three", began=2))
    assert compare(a, b).cause == "control"
    assert compare(b, a).cause == "control"


# ------------------------------------------------------------------------ exit codes


@pytest.mark.parametrize(
    ("verdicts", "statuses", "failed", "code"),
    [
        (["equivalent", "accepted"], ["completed"] * 3, False, 0),
        (["equivalent", "different", "inconclusive"], [], False, 1),
        (["equivalent", "inconclusive"], [], False, 3),
        (["indistinguishable"], [], False, 3),
        (["equivalent"], [], True, 3),
        ([], ["completed", "completed"], False, 0),
        ([], ["completed", "step_limit"], False, 1),
        ([], ["completed", "empty"], False, 1),
        ([], ["completed", "failed"], False, 3),
        ([], ["model_error"], False, 3),
        ([], [], False, 3),  # nothing was judged
    ],
)
def test_exit_codes(verdicts, statuses, failed, code):
    found = [Verdict("a", "b", "q", name) for name in verdicts]
    assert exit_code(found, statuses, failed=failed) == code


# ---------------------------------------------------- what was said earlier, to the end


@pytest.mark.parametrize("share", [True, False], ids=["records", "live"])
@pytest.mark.parametrize(
    ("old", "new"), [("晴", "雨"), ("a", "A"), (1, True), (0, False)]
)
def test_an_old_message_that_was_edited_is_found_with_its_place(share, old, new):
    """In a later request, of the same length; records share what is unchanged."""

    def run(edited):
        contents = [old, "b", "c"]
        exchanges = []
        messages = []
        for number, content in enumerate(contents):
            messages = [*messages, {"role": "user", "content": content}]
            sent = messages if share else copy.deepcopy(messages)
            if edited and number == 2:
                sent = [{"role": "user", "content": new}, *sent[1:]]
            exchanges.append(conversation(began=20.0 * number))
            exchanges[-1].request["messages"] = sent
        return at_once(*exchanges)

    assert compare(run(False), run(False)) is None
    assert compare(run(True), run(True)) is None
    for found in (compare(run(False), run(True)), compare(run(True), run(False))):
        assert (found.model_call, found.path) == (3, "$.messages[0].content")


@pytest.mark.parametrize(("late", "same"), [("other", True), ("a", False)])
def test_an_id_is_that_of_the_same_call_also_in_what_is_added_later(late, same):
    """Servers make ids up: one's second may be another's first."""

    def run(first, second, late):
        added = [
            [{"role": "user", "content": "q"}],
            [{"role": "assistant", "tool_calls": [call("look", "{}", first)]}],
            [{"role": "assistant", "tool_calls": [call("look", "{}", second)]}],
            [{"role": "tool", "tool_call_id": late, "content": "sunny"}],
        ]
        exchanges, messages = [], []
        for number, more in enumerate(added):
            messages = [*messages, *more]
            exchanges.append(conversation(began=20.0 * number))
            exchanges[-1].request["messages"] = messages
        return at_once(*exchanges)

    left, right = run("a", "b", late), run("b", "a", late)
    found = compare(left, right)
    if same:
        assert found is None
    else:
        assert (found.cause, found.model_call) == ("request", 4)
        assert found.path == "$.messages[3].tool_call_id"
