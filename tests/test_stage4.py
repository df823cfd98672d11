"""Stage 4: schemas like LangChain's, requests like stage 3's, without LangChain."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Optional

import openai
import pytest
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field
from stage4_replies import asks, call, says
from tool_runs import run as run_by_policy
from wire import ROOT

from equivalence.gateway import Script
from equivalence.matrix.player import Player
from equivalence.matrix.scenarios import Scenario, read_scenarios
from equivalence.matrix.tools import SCENARIO_TOOLS, give
from equivalence.runs.implementation import Implementation, load
from equivalence.runs.observe import observe
from equivalence.runs.plan import read_questions
from equivalence.table import read_table
from stage4_mini_framework.agent import run_agent
from stage4_mini_framework.framework import Agent
from stage4_mini_framework.registry import Registry
from tools import TOOLS

TABLE = read_table(ROOT)
STAGE3 = load("stage3_pure_loop.agent:run_agent")


def canonical(body: bytes) -> str:
    return json.dumps(json.loads(body), sort_keys=True)


class Sky(enum.Enum):
    SUNNY = "sunny"
    CLOUDY = "cloudy"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(BaseModel):
    """A place on the map."""

    x: float
    y: float = 0.0
    title: str = Field("", description="what it is called")


class Route(BaseModel):
    start: Point
    stops: list[Point] = []
    end: Optional[Point] = None  # noqa: UP045


class Tree(BaseModel):
    name: str
    children: list[Tree] = []
    by_name: dict[str, Tree] = {}


def nothing() -> str:
    """Take nothing."""


def plain(text: str, number: int, share: float, flag: bool) -> str:
    """Take one of each plain type."""


def defaults(text: str = "a", number: int = 1, share: float = 0.5, on: bool = True):
    """Take defaults."""


def untyped(anything, more=None):
    """Take what has no type."""


def lists(texts: list[str], pairs: list[tuple[int, str]], any_list: list, s: set[int]):
    """Take lists."""


def dicts(counts: dict[str, int], any_dict: dict, nested: dict[str, list[float]]):
    """Take dicts."""


def optional(old: Optional[str] = None, new: int | None = None, must: str | None = ""):  # noqa: UP045
    """Take what may be missing."""


def unions(either: int | str, lists_too: list[int] | str | None = None):
    """Take one or the other."""


def literals(
    unit: Literal["km", "mile"], level: Literal[1, 2] = 1, one: Literal["a"] = "a"
):
    """Take one of a few."""


def enums(sky: Sky, level: Level = Level.LOW, skies: list[Sky] | None = None):
    """Take members of enumerations."""


def nested(point: Point, route: Route, maybe: Point | None = None):
    """Take models within models."""


def recursive(tree: Tree):
    """Take a model that holds itself."""


def annotated(
    city: Annotated[str, "the name of the city"],
    days: Annotated[int, Field(ge=1, le=7, description="how many days")] = 1,
    point: Annotated[Point | None, "where it is"] = None,
):
    """Take described parameters."""


def named_title(title: str, properties: dict[str, str], description: str = "d"):
    """Take parameters named like words of JSON Schema."""


def long_docstring(text: str) -> str:
    """Take a text.

    The contract goes on here,
        with an indented line, and 中文.

    Args:
        text: What it takes.
    """


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str = Field(examples=["Rex"])


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def traits(
    pet: Pet,
    frm: Annotated[str, Field(alias="from")],
    via: Annotated[str, Field(validation_alias="by", examples=["北京"])],
    pets: list[Pet] = [],  # noqa: B006
    old: Annotated[int, Field(deprecated=True, json_schema_extra={"x": 1})] = 1,
    city: str = Field("北京", description="where", alias="place"),
) -> str:
    """Take what schemas can say beyond types."""
    return f"{type(pet).__name__} {frm} {via} {len(pets)} {old} {city}"


def keyword_only(*, text: str, number: int = 3) -> str:
    """Take keywords alone."""


SIGNATURES = [
    nothing,
    plain,
    defaults,
    untyped,
    lists,
    dicts,
    optional,
    unions,
    literals,
    enums,
    nested,
    recursive,
    annotated,
    named_title,
    long_docstring,
    traits,
    keyword_only,
    *SCENARIO_TOOLS.values(),
]


# ------------------------------------------------------------- schemas like LangChain's


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda f: f.__name__)
def test_the_schema_is_langchains(function: Any) -> None:
    ours = Registry([function]).schemas[0]
    theirs = convert_to_openai_tool(tool(function))
    assert json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)


def test_what_obeys_the_schema_is_accepted() -> None:
    """B17: of a discriminated union, and of parameters with an alias."""
    told = run_by_policy(
        traits,
        {"pet": {"kind": "dog", "name": "R"}, "frm": "a", "via": "b", "city": "c"},
    )
    assert told == ("Dog a b 0 1 c", True)
    assert (
        "'cat'"
        in run_by_policy(
            traits, {"pet": {"kind": "cow"}, "frm": "a", "via": "b"}
        ).content
    )


def refused(*functions: Any) -> str:
    with pytest.raises(ValueError, match=r"tool|name") as caught:
        Registry(functions)
    return str(caught.value)


def test_a_wrong_tool_is_refused_as_it_is_registered() -> None:
    def bare(city: str) -> str: ...

    def unresolved(city: Nowhere) -> str:  # noqa: F821
        """Take a type that does not exist."""

    def many(*cities: str) -> str:
        """Take any number."""

    def keywords(**cities: str) -> str:
        """Take any keywords."""

    def socket(line: object) -> str:
        """Take what JSON has not."""

    def hidden(_city: str) -> str:
        """Take a private name."""

    async def later(city: str) -> str:
        """Take its time."""

    socket.__annotations__["line"] = subprocess.Popen
    assert "'bare' has no docstring" in refused(bare)
    assert "'unresolved' has no JSON Schema: name 'Nowhere'" in refused(unresolved)
    assert "'many': a model cannot pass 'cities' by name" in refused(many)
    assert "'keywords': a model cannot pass 'cities'" in refused(keywords)
    assert "'socket' has no JSON Schema" in refused(socket)
    assert "'hidden': a model cannot pass '_city'" in refused(hidden)
    assert "'later' is async" in refused(later)
    assert "has no name" in refused(lambda city: city)
    assert "has no name" in refused(42)
    assert "two tools are named 'give'" in refused(give, give)


def test_two_tools_of_one_name_send_no_request(watch) -> None:
    observed = watch([says("done")], tools=[give, give])
    assert observed.run.error == "two tools are named 'give': rename one"
    assert not observed.run.exchanges


SCENARIOS = read_scenarios()


ENDS = "unrepaired, stage 3 ends here; stage 4 lets the tool policy answer"


EXCEPTIONS = {
    "raw_malformed_arguments": ENDS,
    "raw_malformed_then_a_question_on_that_history": ENDS,
    "raw_arguments_as_an_object": ENDS,
    "raw_id_null": "unrepaired, stage 3 fails at the id; stage 4 echoes it as it came",
    "raw_name_of_the_assistant": "stage 4 echoes nothing but text and calls",
}
"""Scenarios in which stage 4 cannot send what stage 3 sends, each with the reason."""


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    with Player() as player:
        yield player


# ----------------------------------------------------------- requests like stage 3's


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_the_requests_are_stage_3s(scenario: Scenario, player: Player) -> None:
    bodies = [
        [canonical(body) for body in player.play(scenario, TABLE.find(name)).bodies]
        for name in ("stage3", "stage4")
    ]
    if scenario.name in EXCEPTIONS:
        assert bodies[0] != bodies[1], "no longer so: take it out of EXCEPTIONS"
    else:
        assert bodies[0] == bodies[1]


def test_exceptions_name_scenarios() -> None:
    assert set(EXCEPTIONS) <= {scenario.name for scenario in SCENARIOS}


@pytest.fixture
def watch(gateway, offline_settings):
    """Let stage 4, or another agent, answer; returns what was observed."""

    def run(replies=None, *, agent=run_agent, question="go", tools=TOOLS, **more):
        upstream = replies if not isinstance(replies, list) else Script(replies)
        settings = offline_settings.model_copy(update=more.pop("settings", {}))
        return observe(
            Implementation("stage4", agent=agent),
            question,
            settings,
            gateway,
            tools,
            upstream=upstream,
            **more,
        )

    return run


@pytest.mark.parametrize(
    "settings",
    [
        {"seed": 7},
        {"max_tokens": 50, "extra_body": {"enable_thinking": False}},
        {"stream": True},
        {"temperature": 0.7, "model": "another"},
    ],
    ids=str,
)
def test_every_setting_reaches_the_wire_like_stage_3s(settings, watch) -> None:
    replies = [
        asks(
            call("get_weather", '{"city":"北京"}', "a"),
            call("calculate", '{"expression": "1+1"}', "b"),
        ),
        says("done"),
    ]
    runs = [
        watch(replies, agent=agent, settings=settings) for agent in (STAGE3, run_agent)
    ]
    bodies = [[canonical(e.body) for e in observed.run.exchanges] for observed in runs]
    assert bodies[0] == bodies[1]
    assert [run.run.answer for run in runs] == ["done", "done"]
    assert json.loads(runs[1].run.exchanges[0].body)["stream"] is ("stream" in settings)


def test_without_tools_none_are_sent(watch) -> None:
    request = watch([says("done")], tools=[]).run.exchanges[0].request
    assert "tools" not in request


RAW_REPLIES = {  # what may come when the gateway repairs nothing
    "broken arguments": asks(call("get_weather", '{"city": "北', "a")),
    "a list": asks(call("get_weather", "[1]", "a")),
    "text": asks(call("get_weather", '"北京"', "a")),
    "an object": {
        "message": {
            "tool_calls": [
                {"id": "a", "function": {"name": "get_weather", "arguments": {"c": 1}}}
            ]
        }
    },
    "NaN": asks(call("get_weather", '{"city": NaN}', "a")),
    "half a character": asks(call("get_weather", '{"city": "\\ud83d"}', "a")),
    "too deep": asks(call("get_weather", "[" * 5000, "a")),
}


@pytest.mark.parametrize("reply", RAW_REPLIES.values(), ids=RAW_REPLIES)
def test_arguments_that_do_not_parse_are_answered_even_raw(reply, watch) -> None:
    with Player() as player:
        scenario = Scenario("raw", "", "", [reply, "done"], raw=True)
        played = player.play(scenario, TABLE.find("stage4"))
    (run,) = played.runs
    assert run.status == "completed", run.error
    assert not played.script.refusals
    assert [step.order for step in run.steps] == [None]
    assert "get_weather was not run: its arguments" in run.steps[0].result


@pytest.mark.parametrize("arguments", ["", "null", None, " {}"], ids=repr)
def test_no_arguments_are_empty_ones_even_raw(arguments) -> None:
    reply = asks(call("get_current_time", arguments, "a"))
    scenario = Scenario(
        "raw", "", "", [reply, "done"], raw=True, tools=["get_current_time"]
    )
    with Player() as player:
        played = [
            player.play(scenario, TABLE.find(name)) for name in ("stage3", "stage4")
        ]
    bodies = [[canonical(body) for body in each.bodies] for each in played]
    assert bodies[0] == bodies[1]
    assert played[1].runs[0].steps[0].ok


@pytest.mark.parametrize(
    "body",
    ["<html>", {}, {"choices": []}, {"choices": [None]}, {"choices": [{"message": 1}]}],
    ids=str,
)
def test_no_message_is_the_endpoints_failure_even_raw(body, watch) -> None:
    with Player() as player:
        scenario = Scenario("raw", "", "", [{"body": body}], raw=True)
        (run,) = player.play(scenario, TABLE.find("stage4")).runs
    assert run.status == "model_error"
    assert run.error == "the endpoint failed: the server answered without a message"


def test_a_failing_endpoint_raises_the_clients_own_exception(
    gateway, offline_settings
) -> None:
    with gateway.open_run(Script([{"status": 401}])) as failing:
        settings = offline_settings.model_copy(update={"gateway_url": failing.url})
        with pytest.raises(openai.AuthenticationError):
            run_agent("go", settings=settings)


def test_attempts_are_repeated_by_the_client(watch) -> None:
    replies = [{"status": 500}, {"status": 429}, says("done")]
    observed = watch(replies, settings={"retries": 2})
    assert observed.run.answer == "done"
    assert [exchange.attempt for exchange in observed.run.exchanges] == [0, 1, 2]


# --------------------------------------------------------------------------- LangChain


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["stage4_mini_framework", "stage5_text_react"])
def test_no_langchain_in_the_process(stage: str) -> None:
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['{stage}', '北京和上海今天哪个更暖和？']\n"
        f"try: runpy.run_module('{stage}', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print([m for m in sys.modules if m.startswith(('lang', 'tiktoken'))])"
    )
    printed = python("-c", code)
    assert printed[-1] == "[]"
    assert "上海更暖和：上海 28 °C，北京 25 °C。" in printed


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["stage4_mini_framework", "stage5_text_react"])
def test_the_command_answers_from_a_fresh_process(stage: str) -> None:
    printed = python("-m", stage, "Compute (25 + 15) * 8 / 4")
    assert printed == [
        'turn 1  calculate({"expression": "(25 + 15) * 8 / 4"})',
        "        → 80.0",
        "(25 + 15) × 8 ÷ 4 = 80.",
    ]


def python(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_demo_questions_like_stage_3(watch) -> None:
    for conversation in read_questions(TABLE.questions):
        after: list[Any] = [None, None]
        for question in conversation:
            after = [
                watch(agent=agent, question=question, after=earlier)
                for agent, earlier in zip((STAGE3, run_agent), after, strict=True)
            ]
            runs = [observed.run for observed in after]
            assert runs[0].steps == runs[1].steps
            assert runs[0].answer == runs[1].answer != ""


# ----------------------------------------------------------------------- the framework


def test_an_agent_reads_as_promised(offline_settings) -> None:
    agent = Agent(settings=offline_settings)

    @agent.tool
    def get_weather(city: str) -> str:
        """Look up the weather of ONE city.

        Known cities: 北京 Beijing.
        """
        return f"{city}: 25 °C, 晴 sunny, humidity 40 %, wind 12 km/h"

    @agent.tool
    def unit_convert(value: float, from_unit: str, to_unit: str) -> str:
        """Convert ONE value to another unit."""
        return f"{value:g} {from_unit} = {value * 9 / 5 + 32:g} {to_unit}"

    assert get_weather("x").startswith("x: "), "a tool stays a function"
    assert agent.run("What is the weather in Beijing?").startswith(
        "Beijing is at 25 °C, sunny"
    )
    assert "77" in agent.run("And the temperature just mentioned, in Fahrenheit?")
    called = [m["tool_calls"] for m in agent.messages if "tool_calls" in m]
    assert [c[0]["function"]["name"] for c in called] == ["get_weather", "unit_convert"]
    agent.clear()
    assert agent.messages == []
    assert list(agent.tools) == ["get_weather", "unit_convert"]
    assert "77" not in agent.run("And the temperature just mentioned, in Fahrenheit?")


def test_an_agent_refuses_a_second_tool_of_a_name() -> None:
    agent = Agent()
    agent.tool(give)
    with pytest.raises(ValueError, match="two tools are named 'give'"):
        agent.tool(give)
    assert list(agent.tools) == ["give"]
    assert len(agent.tools.schemas) == 1


def test_at_the_limit_an_agent_has_no_answer_and_all_it_did(
    gateway, offline_settings
) -> None:
    endless = [asks(call("get_weather", '{"city": "北京"}', "a"))]
    with gateway.open_run(Script(endless)) as run:
        more = {"max_steps": 3, "gateway_url": run.url}
        settings = offline_settings.model_copy(update=more)
        agent = Agent(tools=TOOLS, settings=settings)
        assert agent.run("go") == ""
    assert [m["role"] for m in agent.messages] == ["user", *["assistant", "tool"] * 3]
