"""Run implementations on questions, one run at a time."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

from config import Settings, make_gateway
from equivalence.observe import observe
from equivalence.questions import Conversation
from equivalence.record import Run
from gateway import Exchange, Gateway, OfflineModel, Upstream
from usage import UsageError

CLOCK = datetime(2026, 1, 5, 9, 30, tzinfo=timezone(timedelta(hours=8)))
"""What get_current_time answers under the judge, so that runs can be compared."""


@dataclass(frozen=True)
class Subject:
    """One implementation on trial: its name and its function."""

    name: str
    agent: Callable[..., Any]


@dataclass(frozen=True)
class Asked:
    """Which run it is: who is asked what, after which questions, for which time."""

    implementation: str
    question: str
    history: tuple[str, ...] = ()
    repeat: int = 0


class Session:
    """Asks implementations one question after another, and keeps the conversation that
    each has returned, for the questions that follow."""

    def __init__(
        self, settings: Settings, tools: Sequence[Callable[..., Any]], gateway: Gateway
    ) -> None:
        self.settings = settings
        self.tools = tools
        self.gateway = gateway
        self._conversations: dict[tuple[Any, ...], list[Any]] = {}

    def ask(
        self,
        subject: Subject,
        asked: Asked,
        upstream: Upstream | None = None,
        on_exchange: Callable[[Exchange], None] | None = None,
    ) -> Run:
        """Return the run. ValueError where an earlier question was not asked here."""
        key = subject.name, asked.repeat, asked.history
        if asked.history and key not in self._conversations:
            raise UsageError(
                f"{subject.name} was not asked {asked.history[-1]!r}, which"
                f" {asked.question!r} follows"
            )
        observed = observe(
            subject.name,
            subject.agent,
            asked.question,
            self.settings,
            self.gateway,
            self.tools,
            upstream=upstream,
            history=self._conversations.get(key, []),
            earlier=asked.history,
            repeat=asked.repeat,
            on_exchange=on_exchange,
        )
        after = (*asked.history, asked.question)
        self._conversations[subject.name, asked.repeat, after] = observed.conversation
        return observed.run


def run_all(
    subjects: Sequence[Subject],
    conversations: Sequence[Conversation],
    settings: Settings,
    tools: Sequence[Callable[..., Any]],
    *,
    repeats: int = 1,
) -> Iterator[list[Run]]:
    """Yield, for each question, the runs of all subjects, in their order."""
    runs = run_each(subjects, conversations, settings, tools, repeats=repeats)
    names = [subject.name for subject in subjects]
    while together := list(islice(runs, len(subjects))):
        yield sorted(together, key=lambda run: names.index(run.implementation))


def run_each(
    subjects: Sequence[Subject],
    conversations: Sequence[Conversation],
    settings: Settings,
    tools: Sequence[Callable[..., Any]],
    *,
    repeats: int = 1,
    seed: int = 0,
) -> Iterator[Run]:
    """Yield one run after another, as planned; one request is under way at a time,
    because a server may answer otherwise under load. The seed is the offline model's.
    """
    settings = with_clock(settings)
    with make_gateway(settings) as gateway:
        session = Session(settings, tools, gateway)
        plan = planned(subjects, conversations, repeats)
        for number, subject, asked in plan:
            upstream = own_upstream(settings, seed * 1_000_000 + number)
            yield session.ask(subject, asked, upstream)


def planned(
    subjects: Sequence[Subject], conversations: Sequence[Conversation], repeats: int
) -> Iterator[tuple[int, Subject, Asked]]:
    """Yield who is asked what, in order, each with a number of its own, from 1.

    The subjects take turns at each question, and in each conversation another one
    begins: replies change with time and with what a server has just computed (its
    prompt cache is cold for whoever comes first), and that must not fall to one of
    them.
    """
    number = 1
    for repeat in range(repeats):
        for begins, conversation in enumerate(conversations, repeat):
            for turn, question in enumerate(conversation):
                history = tuple(conversation[:turn])
                for place in range(len(subjects)):
                    at = (begins + place) % len(subjects)
                    name = subjects[at].name
                    asked = Asked(name, question, history, repeat)
                    yield number + at, subjects[at], asked
                number += len(subjects)


def with_clock(settings: Settings) -> Settings:
    """Return the settings with the clock that runs can be compared under."""
    if settings.clock is not None:
        return settings
    return settings.model_copy(update={"clock": CLOCK})


def own_upstream(settings: Settings, number: int) -> Upstream | None:
    """Return for the offline model one with a seed of the run's own, so that it can
    drift; None leaves the gateway's upstream as it is."""
    return None if settings.base_url else OfflineModel(run_seed=number)


class CommandAgent:
    """An agent in any language: a command that gets the question and finds its endpoint
    in OPENAI_BASE_URL. Its tools cannot be watched, its history is its own affair."""

    def __init__(self, command: str) -> None:
        if "{question}" not in command:
            raise UsageError("--command needs the place {question} in it")
        self.words = shlex.split(command, posix=os.name != "nt")

    def __call__(
        self, question: str, *, history: Sequence[Any], settings: Settings, **_: Any
    ) -> list[Any]:
        if history:
            raise UsageError("a command answers single questions, no follow-ups")
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": settings.gateway_url or "",
            "OPENAI_API_KEY": "held-by-the-gateway",
            "LLM_BASE_URL": settings.gateway_url or "",
            "LLM_MODEL": settings.model,
            "LLM_TEMPERATURE": str(settings.temperature),
            "LLM_MAX_STEPS": str(settings.max_steps),
        }
        done = subprocess.run(
            [word.replace("{question}", question) for word in self.words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=settings.timeout * settings.max_steps,
            check=False,
        )
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise RuntimeError(
                f"the command ended with {done.returncode}: {said[-1] if said else ''}"
            )
        return []
