"""An implementation: one version of the agent, an object that travels.

Its agent is named as "module:attribute", see agents.py for what can be one; or it is a
command in any language, which gets the question and finds its endpoint in
OPENAI_BASE_URL.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from equivalence.errors import UsageError
from equivalence.language import N_, _
from equivalence.runs.agents import Agent, Asking, agent_of

PROTOCOLS = ("tool_calls", "text")


@dataclass(frozen=True)
class Implementation:
    """One version of the agent, and how to call it."""

    name: str
    target: str = ""
    """Its agent, as "module:attribute"; "" where it is a command."""
    about: str = N_("your own")
    protocol: str = "tool_calls"
    """How its model asks for tools: in the field "tool_calls", or in its "text"."""
    command: str = ""
    """The command that starts it, with {question} in it."""
    final_tool: str = ""
    """The tool whose call ends a run, for agents that answer by one: final_answer."""
    reset_by: str = ""
    """A function, as "module:attribute", that is called before each conversation, for
    an agent that keeps a state."""
    agent: Any = field(default=None, compare=False, repr=False)
    """The agent itself, for one made in Python; it needs no target then."""

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise UsageError(
                _("protocol {protocol!r} is none of {protocols}").format(
                    protocol=self.protocol, protocols=", ".join(PROTOCOLS)
                )
            )
        if self.command and "{question}" not in self.command:
            raise UsageError(_("a command needs the place {question} in it"))
        if not (self.target or self.command or self.agent is not None):
            raise UsageError(_("it needs a target, as module:function, or a command"))

    def check(self) -> None:
        """Raise UsageError if its module or its attribute is not there, as far as that
        can be told without running the module."""
        if self.target:
            _check_target(self.target)

    def load(self) -> Agent:
        """Return the agent; its module is imported the first time. Raises UsageError if
        it cannot be one, and whatever the module raises."""
        if self.command:
            return Agent(Command(self.command), tells_address=True)
        found = load(self.target) if self.agent is None else self.agent
        return agent_of(found, self.target or self.name)

    def reset(self) -> None:
        """Let the agent forget, before a conversation begins."""
        if self.reset_by:
            load(self.reset_by)()


def command(line: str) -> Implementation:
    """Return the implementation that a command line starts. Raises UsageError if it has
    no place for the question."""
    return Implementation(line, about=N_("a command"), command=line)


def load(target: str) -> Any:
    """Import "module:attribute", where the attribute may have dots in it. Raises
    UsageError if there is no such module or attribute, and whatever the module raises.
    """
    module_name, attribute = _check_target(target)
    found = import_module(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UsageError(
                _("{module_name} has no {attribute!r}").format(
                    module_name=module_name, attribute=attribute
                )
            )
        found = getattr(found, part)
    return found


def _check_target(target: str) -> tuple[str, str]:
    module_name, _colon, attribute = target.partition(":")
    if not module_name or not attribute:
        raise UsageError(
            _("{target!r} names no function: write module:function").format(
                target=target
            )
        )
    top = module_name.partition(".")[0]
    try:
        known = top in sys.modules or find_spec(top)
    except (ImportError, ValueError):
        known = None
    if not known:
        raise UsageError(
            _("cannot import {target}: no module is named {top!r}").format(
                target=target, top=top
            )
        )
    return module_name, attribute


class Command:
    """An agent in any language: a command that gets the question and finds its endpoint
    in OPENAI_BASE_URL. Its tools cannot be watched, its history is its own affair."""

    def __init__(self, line: str) -> None:
        import shlex

        self.words = shlex.split(line, posix=os.name != "nt")
        if os.name == "nt":  # there, shlex leaves the quotes around a word
            self.words = [word.strip("\"'") for word in self.words]

    def __call__(self, asking: Asking) -> list[Any]:
        """Run the command. Raises CommandFailed if it ends with another code than 0."""
        import subprocess

        settings, question = asking.settings, asking.question
        if asking.history:
            raise UsageError("a command answers single questions, no follow-ups")
        kept = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
        environment = {
            **kept,
            "OPENAI_BASE_URL": settings.gateway_url or "",
            "OPENAI_API_KEY": "held-by-the-gateway",
            "LLM_BASE_URL": settings.gateway_url or "",
            "LLM_MODEL": settings.model,
            "LLM_TEMPERATURE": str(settings.temperature),
            "LLM_MAX_STEPS": str(settings.max_steps),
        }
        words = [word.replace("{question}", question) for word in self.words]
        try:
            done = subprocess.run(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=settings.timeout * settings.max_steps,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(f"no end within {error.timeout:g} s") from None
        except OSError as error:
            raise CommandFailed(f"cannot start {words[0]}: {error.strerror}") from None
        said = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode:
            errors = done.stderr.decode("utf-8", "replace").strip()
            raise CommandFailed(f"ended with {done.returncode}: {errors or said}")
        return [{"role": "printed", "content": said}] if said else []


class CommandFailed(RuntimeError):
    """A command did not come to a regular end; the message has all it said."""
