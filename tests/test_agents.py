"""Agents and tools as people have them: what is accepted, and what is said if not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recordings import call

from equivalence.cli import main
from equivalence.errors import UsageError
from equivalence.gateway import Gateway, Script
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import Observed, observe
from equivalence.settings import Settings

AGENTS = '''
"""A stranger's agents. Their client is made at import: it cannot be told an address."""

import json

import openai

client = openai.OpenAI(max_retries=0)
aclient = openai.AsyncOpenAI(max_retries=0)


def look_up(key: str) -> str:
    """Look up a key."""
    return f"value of {key}"


async def look_up_async(key: str) -> str:
    """Look up a key."""
    return f"value of {key}"


SCHEMA = {"type": "function", "function": {"name": "look_up", "parameters": {}}}


def ask(messages):
    reply = client.chat.completions.create(model="m", messages=messages, tools=[SCHEMA])
    return reply.choices[0].message.model_dump(exclude_none=True)


async def ask_async(messages):
    reply = await aclient.chat.completions.create(
        model="m", messages=messages, tools=[SCHEMA]
    )
    return reply.choices[0].message.model_dump(exclude_none=True)


def question_alone(question):
    messages = [{"role": "user", "content": question}]
    return [*messages, ask(messages)]


def with_history(question, history):
    messages = [*history, {"role": "user", "content": question}]
    return [*messages, ask(messages)]


def with_address(question, *, base_url):
    own = openai.OpenAI(base_url=base_url)
    messages = [{"role": "user", "content": question}]
    reply = own.chat.completions.create(model="m", messages=messages)
    return reply.choices[0].message.content


async def asynchronous(question):
    messages = [{"role": "user", "content": question}]
    return [*messages, await ask_async(messages)]


def generator(question):
    messages = [{"role": "user", "content": question}]
    yield messages[0]
    yield ask(messages)


async def async_generator(question):
    messages = [{"role": "user", "content": question}]
    yield messages[0]
    yield await ask_async(messages)


def answer_alone(question):
    return ask([{"role": "user", "content": question}])["content"]


def message_alone(question):
    return ask([{"role": "user", "content": question}])


def state(question):
    return {"messages": question_alone(question), "steps": 1}


class Agent:
    def __init__(self):
        self.asked = 0

    def run(self, question):
        return question_alone(question)

    async def arun(self, question):
        return await asynchronous(question)

    @staticmethod
    def static(question):
        return question_alone(question)

    @classmethod
    def of_class(cls, question):
        return question_alone(question)

    def __call__(self, question):
        self.asked += 1
        return f"{self.asked}: {ask([{'role': 'user', 'content': question}])['content']}"

    def forget(self):
        self.asked = 0


instance = Agent()


def demands(question, database):
    return []


def no_question():
    return []


not_callable = 5
'''

GRAPHS = '''
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent


@tool
def look_up(key: str) -> str:
    """Look up a key."""
    return f"value of {key}"


async def _look_up_async(key: str) -> str:
    """Look up a key."""
    return f"value of {key}"


TOOLS = [look_up]
MADE = [StructuredTool.from_function(_look_up_async, name="x", coroutine=_look_up_async)]
model = ChatOpenAI(model="m", max_retries=0)


def draw(checkpointer=None):
    graph = StateGraph(MessagesState)
    bound = model.bind_tools(TOOLS)
    graph.add_node("model", lambda s: {"messages": [bound.invoke(s["messages"])]})
    graph.add_node("tools", ToolNode(TOOLS))
    graph.add_edge(START, "model")
    graph.add_conditional_edges(
        "model", lambda s: bool(s["messages"][-1].tool_calls), {True: "tools", False: END}
    )
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=checkpointer)


graph = draw()
with_memory = draw(MemorySaver())
runnable = RunnableLambda(lambda state: model.invoke(state["messages"]))


def with_tools(question, *, tools, settings):
    agent = create_react_agent(
        ChatOpenAI(model="m", base_url=settings.gateway_url), list(tools)
    )
    return agent.invoke({"messages": [("user", question)]})


async def with_async_tools(question, *, tools, settings):
    agent = create_react_agent(
        ChatOpenAI(model="m", base_url=settings.gateway_url), list(tools)
    )
    return await agent.ainvoke({"messages": [("user", question)]})
'''

LOOKS_UP = {"message": {"tool_calls": [call("look_up", '{"key": "a"}', "i")]}}
HELLO = {"message": {"content": "hello"}}


@pytest.fixture(scope="module")
def standing() -> Any:
    """One gateway for all: a client that was made at import keeps its address."""
    with Gateway(Script([HELLO])) as gateway:
        yield gateway


@pytest.fixture
def ask(
    standing: Gateway,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    offline_settings: Settings,
) -> Callable[..., Observed]:
    folder = tmp_path_factory.getbasetemp() / "strangers"
    folder.mkdir(exist_ok=True)
    (folder / "stranger.py").write_text(AGENTS, "utf-8")
    (folder / "stranger_graphs.py").write_text(GRAPHS, "utf-8")
    monkeypatch.syspath_prepend(str(folder))

    def run(target: str, *replies: Any, tools: Any = (), **more: Any) -> Observed:
        fields = {
            name: more.pop(name) for name in ("reset_by", "agent") if name in more
        }
        return observe(
            Implementation(target, target, **fields),
            more.pop("question", "go"),
            offline_settings.model_copy(update={"max_steps": 3}),
            standing,
            tools,
            upstream=Script(list(replies) or [HELLO]),
            **more,
        )

    return run


ACCEPTED = [
    "stranger:question_alone",
    "stranger:with_history",
    "stranger:with_address",
    "stranger:asynchronous",
    "stranger:generator",
    "stranger:async_generator",
    "stranger:answer_alone",
    "stranger:message_alone",
    "stranger:state",
    "stranger:instance.run",
    "stranger:instance.arun",
    "stranger:Agent.static",
    "stranger:Agent.of_class",
    "stranger_graphs:graph",
    "stranger_graphs:with_memory",
    "stranger_graphs:runnable",
]


@pytest.mark.parametrize("target", ACCEPTED)
def test_what_people_have_is_accepted(
    ask: Callable[..., Observed], target: str
) -> None:
    run = ask(target).run
    assert (run.status, run.answer, run.error) == ("completed", "hello", None)
    assert len(run.exchanges) == 1


@pytest.mark.parametrize("target", ACCEPTED)
def test_also_inside_a_running_event_loop(
    ask: Callable[..., Observed], target: str
) -> None:
    async def inside() -> Observed:
        return ask(target)

    assert asyncio.run(inside()).run.status == "completed"


@pytest.mark.parametrize("target", ["graph", "with_memory"])
def test_a_graph_runs_its_tools_and_remembers_its_conversation_once(
    ask: Callable[..., Observed], target: str
) -> None:
    """Where a checkpointer keeps the conversation, it is not sent twice; and another
    conversation is another thread."""
    target = f"stranger_graphs:{target}"
    first = ask(target, LOOKS_UP, HELLO)
    assert first.run.status == "completed"
    (step,) = first.run.steps
    assert (step.tool, step.result, step.ok) == ("look_up", "value of a", None)
    second = ask(target, HELLO, question="and now", after=first)
    roles = [m["role"] for m in second.run.exchanges[0].request["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    other = ask(target, HELLO)
    assert len(other.run.exchanges[0].request["messages"]) == 1


@pytest.mark.parametrize("target", ["graph", "with_memory"])
def test_a_graph_whose_budget_ends_keeps_what_it_gathered(
    ask: Callable[..., Observed], target: str
) -> None:
    run = ask(f"stranger_graphs:{target}", LOOKS_UP).run
    assert (run.status, len(run.model_calls), len(run.steps)) == ("step_limit", 3, 3)


@pytest.mark.parametrize("reset", ["", "stranger:instance.forget"])
def test_an_agent_that_keeps_a_state_is_reset_before_each_conversation(
    ask: Callable[..., Observed], reset: str
) -> None:
    first = ask("stranger:instance", reset_by=reset)
    again = ask("stranger:instance", reset_by=reset)
    assert (first.run.answer == again.run.answer) == bool(reset)
    follow_up = ask("stranger:instance", reset_by=reset, after=again)
    assert follow_up.run.answer != again.run.answer


@pytest.mark.parametrize(
    ("target", "tools"),
    [
        ("stranger_graphs:with_tools", "stranger:look_up"),
        ("stranger_graphs:with_tools", "stranger_graphs:look_up"),
        ("stranger_graphs:with_async_tools", "stranger:look_up"),
        ("stranger_graphs:with_async_tools", "stranger_graphs:look_up"),
        ("stranger_graphs:with_async_tools", "async"),
    ],
)
def test_tools_are_watched_whatever_they_are(
    ask: Callable[..., Observed], target: str, tools: str
) -> None:
    from langchain_core.tools import StructuredTool

    from equivalence.runs.implementation import load

    if tools == "async":
        plain = load("stranger:look_up_async")
        offered = [StructuredTool.from_function(coroutine=plain, name="look_up")]
    else:
        offered = [load(tools)]
    run = ask(target, LOOKS_UP, HELLO, tools=offered).run
    assert run.status == "completed", run.error
    (step,) = run.steps
    assert (step.result, step.ok, step.order) == ("value of a", True, 0)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (
            "stranger:Agent",
            "stranger:Agent is a class: write module:name of an instance",
        ),
        ("stranger:demands", "demands 'database', which nobody gives it"),
        ("stranger:no_question", "takes no question"),
        ("stranger:not_callable", "is of type int, neither a function nor a graph"),
        ("stranger:instance.nothing", "stranger has no 'instance.nothing'"),
    ],
)
def test_what_cannot_be_accepted_is_one_line_that_says_what_to_write(
    ask: Callable[..., Observed], target: str, words: str
) -> None:
    run = ask(target).run
    assert run.status == "failed"
    assert words in str(run.error)


class Shape:
    name = "shape"


@pytest.mark.parametrize("tool", [5, "look_up", Shape()])
def test_what_is_no_tool_is_one_line(ask: Callable[..., Observed], tool: Any) -> None:
    with pytest.raises(UsageError, match="is no tool: write a function"):
        ask("stranger:question_alone", tools=[tool])


def test_a_project_with_its_own_tools_py_and_config_py(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its names are neither shadowed nor taken for ours."""
    for name in ("tools", "config", "chat"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    (folder / "tools.py").write_text("raise SystemExit('not these')")
    (folder / "config.py").write_text("raise SystemExit('not these')")
    (folder / "mine.py").write_text(AGENTS, "utf-8")
    (folder / "replies.yaml").write_text("- hello", "utf-8")
    (folder / "q.jsonl").write_text("go", "utf-8")
    (folder / "pyproject.toml").write_text(
        '[tool.equivalence]\nupstream = "script:replies.yaml"\nquestions = "q.jsonl"\n'
        'implementations = { old = "mine:question_alone", new = "mine:asynchronous" }\n'
    )
    assert main(["run"]) == 0
    out = capsys.readouterr().out
    assert "old vs new: equivalent" in out
