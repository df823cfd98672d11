"""Recordings made in tests, of models with replies of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from wire import LADDER, STOCK

from config import Settings, load_settings
from equivalence.gateway import Gateway, Upstream
from equivalence.gateway.upstreams import Reply, completion, dump
from equivalence.judge.compare import Verdict, among_each_other
from equivalence.judge.replay import Replayed, replay
from equivalence.runs.files import RunFile, read_runs
from equivalence.runs.implementation import Implementation
from equivalence.runs.plan import Plan
from equivalence.runs.record import Run
from equivalence.runs.session import gather
from equivalence.runs.upstreams import Upstreams
from offline_model import OfflineModel
from tools import TOOLS

ROOT = Path(__file__).parent.parent
PUBLISHED = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"
FOLLOW_UP = [
    "What is the weather in Beijing, and what is 18 °C in Fahrenheit?",
    "And the temperature just mentioned for Beijing, in Fahrenheit?",
]


def named(name: str) -> Implementation:
    """The implementation of that name, or the one that "module:function" is."""
    known = {each.name: each for each in (*LADDER, *STOCK)}
    return known.get(name) or Implementation(name, name)


class Counting:
    """An upstream that counts what it is asked."""

    def __init__(self, inner: Upstream) -> None:
        self.inner = inner
        self.asked = 0

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.asked += 1
        return await self.inner.answer(request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self.inner.models(authorization)

    async def close(self) -> None:
        await self.inner.close()


def call(tool: str, arguments: str, identifier: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function}


class ByQuestion(OfflineModel):
    """A model with its own replies to each question, whoever asks and how often. What
    is no dict is sent as it is."""

    REPLIES: ClassVar[dict[str, list[Any]]] = {
        "two cities": [
            {
                "content": None,
                "tool_calls": [
                    call("get_weather", '{"city": "北京"}', "a"),
                    call("get_weather", '{"city": "Atlantis"}', "b"),
                ],
            },
            {"content": "北京 25 °C"},
        ],
        "and now": [{"content": "nothing new"}],
        "for ever": [
            {"content": None, "tool_calls": [call("get_current_time", "{}", f"c{n}")]}
            for n in range(9)
        ],
        "as text": [
            {
                "content": '<think>hm</think><tool_call>{"name": "calculate",'
                ' "arguments": {"expression": "1 + 1"}}</tool_call>'
            },
            {"content": "2"},
        ],
    }

    def __init__(self, **changed: list[Any]) -> None:
        super().__init__()
        self.replies = self.REPLIES | changed

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        messages = request["messages"]
        last = max(i for i, m in enumerate(messages) if m["role"] == "user")
        done = sum(m["role"] == "assistant" for m in messages[last:])
        replies = self.replies[messages[last]["content"]]
        message = replies[min(done, len(replies) - 1)]
        if not isinstance(message, dict):
            return message
        whole = completion(message, "/home/someone/models/small.gguf")
        whole |= {"timings": {"cache_n": 5}, "system_fingerprint": "b0"}
        return Reply(200, dump(whole))


def settings_for(endpoint: Gateway, **more: Any) -> Settings:
    fixed = {"base_url": endpoint.url, "model": "m", "max_steps": 3, "_env_file": ""}
    return load_settings(**{**fixed, **more})


def plan_for(
    endpoint: Gateway,
    names: list[str],
    conversations: list[list[str]],
    repeats: int = 1,
    **more: Any,
) -> Plan:
    settings = settings_for(endpoint, **more)
    ones = [named(name) for name in names]
    return Plan(ones, conversations, settings, TOOLS, "tools:TOOLS", repeats)


def gathered(path: Path, plan: Plan, *, again: bool = False) -> list[Run]:
    """The runs of the plan, written to the file."""
    new_upstream = Upstreams(plan.settings, None, path.parent)
    with RunFile(path) as out:
        return list(gather(plan, new_upstream, out, again=again))


def record(
    path: Path,
    upstream: Upstream,
    names: list[str],
    conversations: list[list[str]],
    **more: Any,
) -> list[Run]:
    """Record from the upstream over HTTP, and end its server; return what is read."""
    with Gateway(upstream, repair=False) as endpoint:
        gathered(path, plan_for(endpoint, names, conversations, **more))
    return list(read_runs(path))


def among(runs: Iterable[Run]) -> list[Verdict]:
    """How runs of several implementations compare with each other."""
    known = {run.asked: run for run in runs}
    return list(among_each_other(known, known.__getitem__))


def played(runs: list[Run], source: str, name: str) -> list[Replayed]:
    """The runs of the source, replayed by the implementation of that name."""
    mine = [run for run in runs if run.implementation == source]
    return list(replay(mine, named(name), TOOLS))
