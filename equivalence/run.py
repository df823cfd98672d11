"""Run implementations on questions, one run at a time."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from config import Settings, make_gateway
from equivalence.observe import observe
from equivalence.questions import Conversation
from equivalence.record import Run
from gateway import OfflineModel, Upstream

CLOCK = datetime(2026, 1, 5, 9, 30, tzinfo=timezone(timedelta(hours=8)))
"""What get_current_time answers under the judge, so that runs can be compared."""


@dataclass(frozen=True)
class Subject:
    """One implementation on trial: its name and its function."""

    name: str
    agent: Callable[..., Any]


def run_all(
    subjects: Sequence[Subject],
    conversations: Sequence[Conversation],
    settings: Settings,
    tools: Sequence[Callable[..., Any]],
    *,
    repeats: int = 1,
) -> Iterator[list[Run]]:
    """Yield, for each question, the runs of all subjects; one request is under way at a
    time, because a server may answer otherwise under load."""
    if settings.clock is None:
        settings = settings.model_copy(update={"clock": CLOCK})
    with make_gateway(settings) as gateway:
        number = 0
        for repeat in range(repeats):
            for conversation in conversations:
                histories: list[list[Any]] = [[] for _ in subjects]
                for turn, question in enumerate(conversation):
                    runs = []
                    for place, subject in enumerate(subjects):
                        number += 1
                        observed = observe(
                            subject.name,
                            subject.agent,
                            question,
                            settings,
                            gateway,
                            tools,
                            upstream=_upstream(settings, number),
                            history=histories[place],
                            earlier=conversation[:turn],
                            repeat=repeat,
                        )
                        histories[place] = observed.conversation
                        runs.append(observed.run)
                    yield runs


def _upstream(settings: Settings, number: int) -> Upstream | None:
    """For the offline model a seed of each run's own, so that it can drift; None leaves
    the gateway's upstream as it is."""
    return None if settings.base_url else OfflineModel(run_seed=number)


class CommandAgent:
    """An agent in any language: a command that gets the question and finds its endpoint
    in OPENAI_BASE_URL. Its tools cannot be watched, its history is its own affair."""

    def __init__(self, command: str) -> None:
        if "{question}" not in command:
            raise ValueError("--command needs the place {question} in it")
        self.words = shlex.split(command, posix=os.name != "nt")

    def __call__(
        self, question: str, *, history: Sequence[Any], settings: Settings, **_: Any
    ) -> list[Any]:
        if history:
            raise ValueError("a command answers single questions, no follow-ups")
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
