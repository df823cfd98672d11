"""The run record: what one implementation did with one question."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from equivalence.gateway.exchange import Exchange
from equivalence.language import N_

SCHEMA = "agent-run/2"

STATUSES = {
    "completed": N_("answered with a text the user can read"),
    "step_limit": N_("the budget of model calls ended first"),
    "empty": N_("the last reply had no text"),
    "truncated": N_("the last reply was cut off by the output limit"),
    "refused": N_("the model or a filter refused to answer"),
    "malformed": N_("the last reply was not usable, by its finish_reason or its calls"),
    "unparsed_call": N_(
        "the last reply looks like a tool call that nobody here can read"
    ),
    "model_error": N_("the endpoint failed"),
    "failed": N_("the implementation itself failed"),
}


@dataclass
class Step:
    """One tool call: what the model asked for and what came of it."""

    turn: int
    """Number of the model call that asked for it, from 1."""
    tool: str
    arguments: Any
    """As the model sent them, parsed; the text itself where it does not parse."""
    arguments_text: str
    """As the model wrote them, to the letter."""
    result: str | None
    """What the model got to read of it; where no further request carried that, what the
    tool gave back; None where nothing was seen of it."""
    ok: bool | None
    """Whether the tool did its work; None where the tools could not be watched."""
    order: int | None = None
    """Place in the order of execution, from 0; None where none was seen."""
    concurrent: bool = False
    """Whether another execution of the run overlapped this one, or one of the same turn
    ran on another thread or asyncio task: then the order means nothing."""
    returned: str | None = None
    """What the tool gave back, or the exception it raised, where the model read
    something else; None where it is the same, or has no text that would be the same in
    another process."""
    returned_json: bool = False
    """Whether what the tool gave back was another JSON value than a text: a record has
    its JSON then."""
    ungrounded: list[dict[str, Any]] = field(default_factory=list)
    """The numbers of the arguments that nobody had said before: each a dict of
    "number", as the model wrote it, and its "argument"; "arrived", the turn of the
    first other result that came after the call, and "again", the turn in which the tool
    was called again with nothing made up, both None where there is none; "result", the
    last number of what came of the call, None where none did, and "in_answer", whether
    that stands in the answer."""


@dataclass(frozen=True)
class Asked:
    """Which run it is: who is asked what, after which questions, for which time."""

    implementation: str
    question: str
    history: tuple[str, ...] = ()
    repeat: int = 0

    @property
    def conversation(self) -> tuple[str, int, str]:
        """What it belongs to: runs of one implementation that begin alike."""
        first = (*self.history, self.question)[0]
        return self.implementation, self.repeat, first


@dataclass
class Run:
    """One implementation, one question, one try."""

    implementation: str
    question: str
    history: list[str] = field(default_factory=list)
    """The earlier questions of the conversation."""
    repeat: int = 0
    protocol: str = "tool_calls"
    """How the model asks for tools: by "tool_calls", or in its "text"."""
    settings: dict[str, Any] = field(default_factory=dict)
    tools: str = ""
    """Where the offered tools come from, as module:NAME."""
    versions: dict[str, str] = field(default_factory=dict)
    """Of the packages in the process that ran it; empty where that is not known."""
    recorded: str = ""
    """When the run began, ISO 8601."""
    jobs: int = 1
    """How many runs were under way at once: a server may answer differently then."""
    note: str = ""
    """What whoever recorded it wants to be known."""
    status: str = "failed"
    answer: str = ""
    error: str | None = None
    warnings: list[str] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    """The model calls, from 1, whose reply could not be read as the model wrote it."""
    steps: list[Step] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    redacted: list[dict[str, Any]] = field(default_factory=list)
    """What was taken out before it was written: each a dict of "rule", by its name in
    the table, and "times", how often in all requests, replies and fields."""
    rebuilt: str = ""
    """The foreign format it was read from, where that does not keep requests as they
    were sent: its exchanges are rebuilt then, and not compared. Empty: they are what
    was sent."""

    @property
    def asked(self) -> Asked:
        """Which run it is."""
        return Asked(
            self.implementation, self.question, tuple(self.history), self.repeat
        )

    @property
    def model_calls(self) -> list[Exchange]:
        """The exchanges less those that the client repeated."""
        exchanges = self.exchanges
        if not any(each.attempt or each.status is None for each in exchanges):
            return exchanges
        retries = [each for each in exchanges if each.attempt]
        return [
            exchange
            for exchange in exchanges
            if (exchange.status is not None or exchange is exchanges[-1])
            and not any(
                retry.attempt == exchange.attempt + 1
                and retry.began > exchange.began
                and retry.request == exchange.request
                for retry in retries
            )
        ]
