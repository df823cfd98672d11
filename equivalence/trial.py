"""What a command line asks for: who is asked what, where, and how often."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from config import Settings, load_settings
from equivalence.implementations import LADDER, find, load
from equivalence.questions import DEMO, Conversation, read_questions
from equivalence.run import CommandAgent, Subject
from tools import Tool, by_name
from usage import UsageError

DEMO_TOOLS = "tools:TOOLS"


@dataclass(frozen=True)
class Trial:
    """Implementations, questions and the conditions under which they are asked."""

    subjects: list[Subject]
    conversations: list[Conversation]
    settings: Settings
    tools: list[Tool]
    repeats: int

    @property
    def runs(self) -> int:
        """How many runs it takes."""
        questions = sum(len(conversation) for conversation in self.conversations)
        return questions * len(self.subjects) * self.repeats


def trial(arguments: argparse.Namespace) -> Trial:
    """Return what the arguments ask for; ValueError says what of it cannot be had."""
    if arguments.repeats < 1:
        raise UsageError("--repeats must be at least 1")
    settings = load_settings(
        base_url=arguments.base_url,
        model=arguments.model,
        temperature=arguments.temperature,
        max_steps=arguments.max_steps,
        repair=False if arguments.raw else None,
    )
    return Trial(
        subjects(arguments.implementation, arguments.commands),
        conversations(arguments.question, arguments.questions),
        settings,
        load_tools(arguments.tools or DEMO_TOOLS),
        arguments.repeats,
    )


def subjects(
    names: Sequence[str] | None, commands: Sequence[str] = ()
) -> list[Subject]:
    """Return the implementations of these names, and those that commands start; the
    whole ladder where nothing is named."""
    if names is None and not commands:
        names = [implementation.name for implementation in LADDER]
    found = [Subject(name, load(find(name).target)) for name in names or ()]
    return found + [Subject(line, CommandAgent(line)) for line in commands]


def conversations(questions: Sequence[str], file: Path | None) -> list[Conversation]:
    """Return the questions of the command line, then those of the file; the demo
    questions where there are none."""
    found = [[question] for question in questions]
    if file or not found:
        found += read_questions(file or DEMO)
    return found


def load_tools(target: str) -> list[Tool]:
    """Return the tools of that name; ValueError where no implementation could take
    them."""
    try:
        return list(by_name(load(target)).values())
    except (TypeError, AttributeError):
        raise UsageError(f"{target} is not a list of functions") from None
