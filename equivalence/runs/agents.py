"""Agents as people have them, made into what the observer calls.

Accepted are functions and methods, plain and async, callable instances, generators that
yield messages, compiled LangGraph graphs and other Runnables. A function gets of
`history`, `settings`, `tools`, `base_url` and `thread_id` what its parameters ask for.
One that asks for neither `settings` nor `base_url` cannot be told its address: it finds
the standing one in OPENAI_BASE_URL, which is set before its module is imported.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from equivalence.errors import UsageError
from equivalence.language import _

OFFERED = ("history", "settings", "tools", "base_url", "thread_id")
"""What a function may ask for beside the question."""


@dataclass(frozen=True)
class Asking:
    """One question to an agent, and what comes with it."""

    question: str
    history: Sequence[Any]
    """The messages of the conversation so far, as the agent returned them."""
    settings: Any
    tools: Sequence[Any]
    thread_id: str
    """The same for all questions of one conversation, and for no other."""


@dataclass(frozen=True)
class Agent:
    """An agent that can be asked: returns the conversation."""

    ask: Callable[[Asking], Any]
    tells_address: bool
    """Whether each question brings it an address of its own."""
    takes: frozenset[str] = frozenset()
    """Which of OFFERED it takes."""

    def __call__(self, asking: Asking) -> list[Any]:
        """Return the conversation after the question. Raises UsageError if what came
        back is none, and whatever the agent raises."""
        return conversation_of(_awaited(self.ask(asking)), asking)


def agent_of(found: Any, target: str) -> Agent:
    """Return what was found as an agent. Raises UsageError if it cannot be one, saying
    what to write."""
    if isinstance(found, Agent):
        return found
    if inspect.isclass(found):
        raise UsageError(
            _(
                "{target} is a class: write module:name of an instance, or"
                " of a function"
            ).format(target=target)
        )
    if callable(getattr(found, "invoke", None)):
        return Agent(
            lambda asking: _invoke(found, asking),
            tells_address=False,
            takes=frozenset(("history", "thread_id")),
        )
    if not callable(found):
        raise UsageError(
            _(
                "{target} is of type {kind}, neither a function nor a graph: write"
                " module:function, a function of (question, *, history,"
                " settings, tools)"
            ).format(target=target, kind=type(found).__name__)
        )
    names = _asked_for(found, target)
    return Agent(
        lambda asking: found(asking.question, **_given(names, asking)),
        tells_address=bool({"settings", "base_url"} & names),
        takes=frozenset(names),
    )


def _asked_for(function: Callable[..., Any], target: str) -> set[str]:
    """Which of OFFERED the function takes by name. Raises UsageError if it cannot take
    a question, or demands something else."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some callables written in C tell nothing
        return set()
    kinds = {parameter.kind for parameter in parameters}
    positional = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if not positional and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise UsageError(
            _("{target} takes no question: its first parameter is for it").format(
                target=target
            )
        )
    rest = [p for p in parameters if p not in positional[:1]]
    for parameter in rest:
        plain = parameter.kind in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        )
        if parameter.default is parameter.empty and (
            parameter.kind is parameter.POSITIONAL_ONLY
            or (plain and parameter.name not in OFFERED)
        ):
            raise UsageError(
                _(
                    "{target} demands {name!r}, which nobody gives it: write a"
                    " function of (question, *, {offered}), any of these"
                ).format(target=target, name=parameter.name, offered=", ".join(OFFERED))
            )
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return {"history", "settings", "tools"}
    return {p.name for p in rest if p.kind is not p.POSITIONAL_ONLY} & {*OFFERED}


def _given(names: set[str], asking: Asking) -> dict[str, Any]:
    offered = {
        "history": asking.history,
        "settings": asking.settings,
        "tools": asking.tools,
        "base_url": asking.settings.gateway_url,
        "thread_id": asking.thread_id,
    }
    return {name: offered[name] for name in names}


def _invoke(graph: Any, asking: Asking) -> Any:
    """Ask a Runnable: with the history, unless a checkpointer keeps it. Its state is
    followed, so that what was gathered is there where the budget ends the run."""
    checkpointed = getattr(graph, "checkpointer", None) not in (None, False)
    new = {"role": "user", "content": asking.question}
    messages = [new] if checkpointed else [*asking.history, new]
    config = {
        "recursion_limit": 2 * asking.settings.max_steps,  # the model and its tools
        "configurable": {"thread_id": asking.thread_id},
    }
    if not hasattr(graph, "get_graph") or not hasattr(graph, "stream_channels"):
        return graph.invoke({"messages": messages}, config)
    from langgraph.errors import GraphRecursionError

    state: Any = {"messages": messages}
    try:
        for seen in graph.stream({"messages": messages}, config, stream_mode="values"):
            state = seen
    except GraphRecursionError:
        pass  # the budget is spent: what was gathered is the result
    return state


def conversation_of(returned: Any, asking: Asking) -> list[Any]:
    """Return what an agent returned as a conversation: a list of messages, a state that
    holds one, a single message, or the answer as a text. Raises UsageError if it is
    none of these."""
    if isinstance(returned, dict) and isinstance(returned.get("messages"), list):
        returned = returned["messages"]
    if isinstance(returned, str):
        returned = [
            *asking.history,
            {"role": "user", "content": asking.question},
            {"role": "assistant", "content": returned},
        ]
    if _is_message(returned):
        question = {"role": "user", "content": asking.question}
        returned = [*asking.history, question, returned]
    if not isinstance(returned, list | tuple):
        raise UsageError(f"it returned {a(returned)}, not a list of messages")
    for number, message in enumerate(returned):
        if not _is_message(message):
            raise UsageError(
                f"it returned {a(message)} at place {number} of its list, which is no"
                " message: neither a dict with a role nor a message of LangChain's"
            )
    return list(returned)


def _is_message(value: Any) -> bool:
    if isinstance(value, dict):
        return "role" in value
    return hasattr(value, "content") and hasattr(value, "type")


def _awaited(value: Any) -> Any:
    """What comes of a coroutine or of a generator; else the value itself."""
    if inspect.isawaitable(value):
        return _loop().run(_await(value))
    if inspect.isasyncgen(value):
        return _loop().run(_collected(value))
    if inspect.isgenerator(value):
        return list(value)
    return value


async def _await(value: Any) -> Any:
    return await value


async def _collected(value: Any) -> list[Any]:
    return [each async for each in value]


class Loop:
    """An event loop in a thread of its own: a client that lives in one loop can be used
    for all questions, and the caller may have a running loop himself."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(
            target=self.loop.run_forever, name="async agents", daemon=True
        ).start()

    def run(self, coroutine: Any) -> Any:
        """Return what the coroutine returns; it is cancelled by an exception here, such
        as Ctrl-C."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_the_loop: Loop | None = None
_the_loop_lock = threading.Lock()


def _loop() -> Loop:
    global _the_loop
    with _the_loop_lock:
        if _the_loop is None:
            _the_loop = Loop()
        return _the_loop


def a(value: Any) -> str:
    """Return what kind of value it is, with its article: a dict, an int."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
