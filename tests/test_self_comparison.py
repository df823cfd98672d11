"""An implementation is never different from itself: whatever its threads, its
sub-agents and its interrupts do, and whatever its tools return."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph.types import interrupt
from test_scenarios import IN_TEXT, OURS, TOLD_IN_TEXT
from wire import LADDER, ROOT, STOCK

from config import chat_model
from equivalence.cli import main
from equivalence.gateway import Gateway, Upstream
from equivalence.gateway.upstreams import Reply, as_asked, completion, model_list
from equivalence.judge.compare import judge
from equivalence.matrix.itself import against_itself, fit
from equivalence.matrix.player import Player
from equivalence.matrix.scenarios import Scenario, read_scenarios
from equivalence.matrix.tools import get_weather
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import observe
from equivalence.runs.record import Run
from equivalence.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent")

CALLERS = [each for each in (*LADDER, *STOCK) if each.protocol == "tool_calls"]
FIT = fit(read_scenarios())

how_often = pytest.mark.parametrize(
    "count", [pytest.param(5, id="few"), pytest.param(200, marks=pytest.mark.slow)]
)


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    with Player() as player:
        yield player


# ---------------------------------------------------------- threads of the frameworks


@how_often
@pytest.mark.parametrize("implementation", CALLERS, ids=lambda i: i.name)
def test_concurrent_tools(
    implementation: Implementation, count: int, player: Player
) -> None:
    *_, tally = against_itself(implementation, FIT, count, player)
    assert str(tally) == f"{implementation.name}: 0 different of {count}", tally


@how_often
def test_the_agent_in_text(count: int, player: Player) -> None:
    told = [
        scenario for name, scenario in TOLD_IN_TEXT.items() if name not in OURS_BY_NAME
    ]
    *_, tally = against_itself(IN_TEXT, told, count, player)
    assert str(tally) == f"{IN_TEXT.name}: 0 different of {count}", tally


OURS_BY_NAME = {scenario.name for scenario in OURS}


def test_a_difference_would_be_counted(player: Player) -> None:
    """The same agent over a tool that never returns the same."""
    counter = itertools.count()

    def tick() -> int:
        """Count."""
        return next(counter)

    calls = [["tick", "{}", "a"], ["tick", "{}", "b"]]
    scenario = Scenario("ticks", "", "", [{"calls": calls}, "done"], tools=["tick"])
    with Player({"tick": tick}) as mine:
        *_, tally = against_itself(CALLERS[0], [scenario], 3, mine)
    assert len(tally.different) == 3
    assert {verdict.divergence.cause for _, verdict in tally.different} == {"tool"}


@pytest.mark.parametrize(
    "repeats", [pytest.param(3, id="few"), pytest.param(20, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", ["stock-stage1", "stock-successor", "stock-toolnode"])
def test_its_own_recording_is_replayed(name: str, repeats: int, tmp_path: Path) -> None:
    path = str(tmp_path / "own.jsonl")
    question = "北京和上海今天哪个更暖和？"
    record = ["record", question, "--implementation", name, "--out", path]
    assert main([*record, "--repeats", str(repeats)]) == 0
    assert main(["replay", path]) == 0


# -------------------------------------------- sub-agents and interrupts, as test agents


def supervisor(question: str, *, settings: Settings, tools: Any) -> list[Any]:
    """Two agents as tools of a third, which asks both in one turn."""
    model = chat_model(settings)
    worker = create_react_agent(model, list(tools))

    def ask(place: str) -> str:
        """Ask the agent that knows this place."""
        state = worker.invoke({"messages": [HumanMessage(f"weather of {place}")]})
        return str(state["messages"][-1].content)

    return _invoked(create_react_agent(model, [ask]), question)


def careful(question: str, *, settings: Settings, tools: Any) -> list[Any]:
    """Its tools may wait for a person."""
    graph = create_react_agent(
        chat_model(settings), list(tools), checkpointer=InMemorySaver()
    )
    return _invoked(graph, question)


def _invoked(graph: Any, question: str) -> list[Any]:
    state = graph.invoke(
        {"messages": [HumanMessage(question)]}, {"configurable": {"thread_id": "1"}}
    )
    return list(state["messages"])


def send_mail(to: str) -> str:
    """Send a mail, if a person allows it."""
    return f"sent to {to}: {interrupt('allowed?')}"


class ByConversation:
    """A model that answers by what the conversation says, after a time that is chance:
    so requests that are under way together arrive in any order."""

    def __init__(self, calls: dict[str, list[tuple[str, str]]]) -> None:
        self.calls = calls

    def __str__(self) -> str:
        return "the model"

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        await asyncio.sleep(random.random() / 50)
        said = request["messages"]
        results = [m["content"] for m in said if m["role"] == "tool"]
        message: dict[str, Any] = {"content": " and ".join(results) or "done"}
        (question,) = (m["content"] for m in said if m["role"] == "user")
        if not results and question in self.calls:
            message["tool_calls"] = [
                {
                    "id": f"call{random.randrange(10**9):09}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for name, arguments in self.calls[question]
            ]
        return as_asked(request, completion(message, "script", ""))

    async def models(self, authorization: str | None) -> Reply:
        return model_list("script")

    async def close(self) -> None:
        pass


PLACES = {
    "go": [("ask", '{"place": "北京"}'), ("ask", '{"place": "上海"}')],
    "weather of 北京": [("get_weather", '{"city": "北京"}')],
    "weather of 上海": [("get_weather", '{"city": "上海"}')],
}
MAILS = {
    "go": [
        ("send_mail", '{"to": "a"}'),
        ("get_weather", '{"city": "北京"}'),
        ("send_mail", '{"to": "b"}'),
    ]
}


@how_often
@pytest.mark.parametrize(
    ("agent", "calls", "model_calls", "executed"),
    [
        pytest.param(supervisor, PLACES, 6, 2, id="two sub-agents in one turn"),
        pytest.param(careful, MAILS, 1, 1, id="interrupts"),
    ],
)
def test_agents_of_agents_and_interrupts(
    agent: Callable[..., Any],
    calls: dict[str, Any],
    model_calls: int,
    executed: int,
    count: int,
    gateway: Gateway,
    offline_settings: Settings,
) -> None:
    def run(name: str) -> Run:
        implementation = Implementation(name, agent=agent)
        model: Upstream = ByConversation(calls)
        tools = [get_weather, send_mail]
        observed = observe(
            implementation, "go", offline_settings, gateway, tools, upstream=model
        )
        assert observed.run.error is None
        assert len(observed.run.model_calls) == model_calls
        assert sum(step.order is not None for step in observed.run.steps) == executed
        return observed.run

    first = run("first")
    verdicts = [judge(first, run("second")) for _ in range(count)]
    apart = [verdict for verdict in verdicts if verdict.verdict != "equivalent"]
    assert f"{len(apart)} different of {count}" == f"0 different of {count}", apart[0]


# ---------------------------------------------------------- what has no text of its own


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Opaque:
    """Its text has its address in it."""


def a_set() -> Any:
    """Return a set."""
    return {3, 1, 2}


def a_dataclass() -> Any:
    """Return a dataclass."""
    return Point(1, 2)


def a_map() -> Any:
    """Return a map."""
    return map(str, [1, 2])


RETURNING = {tool.__name__: tool for tool in (a_set, a_dataclass, a_map)}
ODD_VALUES = """\
from tests.test_self_comparison import *
from equivalence.runs.files import RunFile
import sys
with Player(RETURNING) as player, RunFile(Path(sys.argv[1])) as out:
    for name in RETURNING:
        scenario = returning(name)
        for each in CALLERS:
            out.append(player.play(scenario, each).runs[0])
"""


def returning(name: str) -> Scenario:
    calls = [[name, "{}", "a"], [name, "{}", "b"]]
    return Scenario(
        name, "", "", [{"calls": calls}, "done"], questions=[name], tools=[name]
    )


@pytest.mark.slow
def test_odd_values_in_two_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither hash order nor addresses of a process get into a record, unless the model
    read them: the article's own agents show it the str() of a map, address and all."""
    files = []
    for seed in ("1", "2"):
        files.append(str(tmp_path / f"{seed}.jsonl"))
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
        }
        command = [sys.executable, "-c", ODD_VALUES, files[-1]]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=120)
    main(["diff", *files, "--json"])
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert len(verdicts) == len(CALLERS) * len(RETURNING)
    apart = [v for v in verdicts if v["verdict"] != "equivalent"]
    names = {(v["right"].partition(" in ")[0], v["question"]) for v in apart}
    assert names == ADDRESS_IS_READ
    assert {v["cause"] for v in apart} == {"tool"}


ADDRESS_IS_READ = {(each.name, "a_map") for each in STOCK}
"""Without the tool policy the model reads "<map object at 0x7f…>"."""
