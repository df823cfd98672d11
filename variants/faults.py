"""Planted faults: agents that are wrong in one way each, and the cause the judge must
name. Each is stage 3 with one thing broken; try one:

    python -m equivalence run --implementation stage3 \\
        --implementation variants.faults:lost_result "北京和上海今天哪个更暖和？"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from config import SYSTEM_PROMPT, chat_model, load_settings
from stage3_pure_loop.agent import run_tools, wants_tools
from toolkit.langchain_tool import tool
from toolkit.policy import by_name
from tools import TOOLS

FAULTS: dict[str, str] = {}
"""Name of each fault and the cause that its divergence must have."""

Agent = Callable[..., list[Any]]


def fault(cause: str) -> Callable[[Agent], Agent]:
    """Enter the function in FAULTS under its name."""

    def enter(function: Agent) -> Agent:
        FAULTS[function.__name__] = cause
        return function

    return enter


def broken_loop(
    question: str,
    history: Any,
    settings: Any,
    tools: Any,
    *,
    prompt: str = SYSTEM_PROMPT,
    arrange: Callable[[Any, list[Any]], list[Any]] = lambda s, rest: [s, *rest],
    results: Callable[[list[Any]], list[Any]] = lambda results: results,
    calls: Callable[[list[Any]], list[Any]] = lambda calls: calls,
    budget: int = 0,
    give_up_on_error: bool = False,
) -> list[Any]:
    """Stage 3's loop with a place for each fault."""
    settings = settings or load_settings()
    named = by_name(tools)
    model = chat_model(settings).bind_tools([tool(f) for f in named.values()])
    messages = [*history, HumanMessage(question)]
    for _ in range(settings.max_steps + budget):
        reply = model.invoke(arrange(SystemMessage(prompt), messages))
        messages.append(reply)
        if not wants_tools(reply):
            break
        asked = reply.model_copy(update={"tool_calls": calls(reply.tool_calls)})
        found = run_tools(asked, named, settings)
        order = [call["id"] for call in reply.tool_calls]
        found.sort(key=lambda message: order.index(message.tool_call_id))
        messages += results(found)
        if give_up_on_error and any(m.status == "error" for m in found):
            break
    return messages


@fault("request")
def system_message_last(q, *, history=(), settings=None, tools=TOOLS):
    """The system message stands behind the conversation."""
    return broken_loop(q, history, settings, tools, arrange=lambda s, rest: [*rest, s])


@fault("request")
def system_message_twice(q, *, history=(), settings=None, tools=TOOLS):
    """The system message stands there twice."""
    return broken_loop(q, history, settings, tools, arrange=lambda s, r: [s, s, *r])


@fault("request")
def one_space_more(q, *, history=(), settings=None, tools=TOOLS):
    """The system prompt has one space at its end."""
    prompt = SYSTEM_PROMPT + " "
    return broken_loop(q, history, settings, tools, prompt=prompt)


@fault("request")
def lost_result(q, *, history=(), settings=None, tools=TOOLS):
    """The last tool result of each turn gets lost."""
    return broken_loop(q, history, settings, tools, results=lambda r: r[:-1])


@fault("request")
def swapped_results(q, *, history=(), settings=None, tools=TOOLS):
    """The tool results of a turn stand in reverse order."""
    return broken_loop(q, history, settings, tools, results=lambda r: r[::-1])


@fault("request")
def another_temperature(q, *, history=(), settings=None, tools=TOOLS):
    """It asks at temperature 0.7."""
    warm = (settings or load_settings()).model_copy(update={"temperature": 0.7})
    return broken_loop(q, history, warm, tools)


@fault("request")
def one_key_more(q, *, history=(), settings=None, tools=TOOLS):
    """Its requests have one field more."""
    more = {"extra_body": {"top_p": 1}}
    wider = (settings or load_settings()).model_copy(update=more)
    return broken_loop(q, history, wider, tools)


@fault("request")
def forgetful(q, *, history=(), settings=None, tools=TOOLS):
    """It forgets the conversation before the question."""
    return broken_loop(q, (), settings, tools)


@fault("control")
def one_call_less(q, *, history=(), settings=None, tools=TOOLS):
    """Its budget is one model call short."""
    return broken_loop(q, history, settings, tools, budget=-1)


@fault("control")
def one_call_more(q, *, history=(), settings=None, tools=TOOLS):
    """Its budget is one model call too large."""
    return broken_loop(q, history, settings, tools, budget=1)


@fault("control")
def gives_up(q, *, history=(), settings=None, tools=TOOLS):
    """It ends in silence when a tool fails."""
    return broken_loop(q, history, settings, tools, give_up_on_error=True)


@fault("control")
def reversed_execution(q, *, history=(), settings=None, tools=TOOLS):
    """It runs the calls of a turn last first, and sorts the results afterwards."""
    return broken_loop(q, history, settings, tools, calls=lambda c: c[::-1])


@fault("control")
def crashes(q, *, history=(), settings=None, tools=TOOLS):
    """It raises once a tool has failed."""
    messages = broken_loop(q, history, settings, tools, give_up_on_error=True)
    if getattr(messages[-1], "status", "") == "error":
        raise RuntimeError("an unhandled tool error")
    return messages


@fault("control")
def invented_answer(q, *, history=(), settings=None, tools=TOOLS):
    """It changes the model's answer before it returns it."""
    *before, last = broken_loop(q, history, settings, tools)
    if last.type != "ai":
        return [*before, last]
    return [*before, last.model_copy(update={"content": f"{last.content}!"})]
