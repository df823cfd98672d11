"""The offline model: a scripted stand-in that plans tool calls as a real one would.

It needs no key and no download. `reply` is a pure function of the request and a seed;
`OfflineModel` puts it behind the gateway.

1. view: the request becomes a View: the question, the turns before it, the calls made
   so far with their results, the offered tools. Both request forms become the same.
2. scan, understand: what the question needs, by the vocabulary of words.py, in Chinese
   and English; and what of the question no need uses.
3. plan: each need becomes tasks; a task may take the results of others. If any does,
   the calls go one a model call, in the order of the question; else all in one turn. A
   temperature above 0 now and then picks another strategy, seeded. One of them sends
   everything at once and makes up the numbers that it does not have yet.
4. answer: when nothing is left to call, the results are put into words, in the language
   of the question. An error is told, never retried; what depends on it is not called.
   What was left out of the question is named.
"""

from __future__ import annotations

from typing import Any

from equivalence.gateway.upstreams import Reply, as_asked, completion, model_list

from .answer import answer
from .plan import Plan
from .scan import Names
from .understand import Memory, understand
from .view import View, chat_message, react_message

__all__ = ["OfflineModel", "reply"]


def reply(request: dict[str, Any], run_seed: int = 0) -> dict[str, Any]:
    """Return the assistant message with the next calls or the answer."""
    view = View.of(request, run_seed)
    names, memory = Names.of(view.tools), Memory()
    for turn in view.earlier:
        memory = understand(turn.question, names, memory).memory
    understood = understand(view.turn.question, names, memory, view.said())
    plan = Plan(view, understood.needs, names)
    calls, chinese = plan.next_calls(), names.is_chinese(view.turn.question)
    text = "" if calls else answer(plan, understood.left_out, chinese)
    if view.react:
        return react_message(view, calls, text, chinese)
    return chat_message(view, calls, text)


class OfflineModel:
    """The stand-in as what stands behind the gateway; `run_seed` lets runs differ at a
    temperature above 0."""

    def __init__(self, run_seed: int = 0) -> None:
        self.run_seed = run_seed

    def __str__(self) -> str:
        return "the offline model"

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        message = reply(request, self.run_seed)
        return as_asked(request, completion(message, request.get("model")))

    async def models(self, authorization: str | None) -> Reply:
        return model_list("offline")

    async def close(self) -> None:
        pass
