"""Mechanism scenarios: a question, scripted replies, and the right outcome.

They are data, in the folder scenarios beside this file; each file of it is a kind of
peculiarity, a list of scenarios:

    - name: unknown_tool                     # one word, unique
      why: The model invents a tool.         # one line
      seen: R14 matrix                       # a public report by its number; "like
                                             # R14": the same kind; "matrix": measured
      questions: [go]                        # default; several are a conversation
      tools: [get_weather, boom]             # the ones offered; default: get_weather
      settings: {max_steps: 3}               # default: none
      server: {strict: true, require: {}, require_reasoning: 想}  # default: strict
      raw: true                              # repairs off; default: on
      replies:                               # the last one repeats
        - calls: [[get_weather, '{"city": "北京"}', a]]   # name, arguments, id
          content: text beside the calls
          finish_reason: length
          message: {reasoning_content: more fields of the message}
        - done                               # short for {content: done}
        - {status: 500, body: {}, headers: {}, cut: true, delay: 1.0}
        - {stream: [{content: a delta}], finish_reason: stop}
      expect:                                # the same for every implementation
        status: completed                    # of the last question, as are
        answer: done                         # answer and
        error: a part of the error           # error; what follows is of all questions
        requests: 2                          # on the wire, repeated attempts included
        steps: [[get_weather, {city: 北京}, true]]        # tool, arguments as sent,
                                             # true, false or "not run"; default: none
        results: ["北京 Beijing: 25 °C"]     # a part of each tool message, in order
        told: ["null"]                       # each tool message, whole
        repairs: [tool_call_id]              # in order; default: none
        warnings: [asked for 6 times]        # a part of each that must be there
        echoed: ['{"city": "北京"}']         # arguments in the last request
        sent: ['"content": null']            # in the last request, as JSON
        not_sent: ["<think>"]                # in no request
        not_said: [length]                   # in no tool message, answer or error
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from equivalence.errors import UsageError
from equivalence.gateway.script import Script, item
from equivalence.language import _
from equivalence.settings import Settings

FOLDER = Path(__file__).parent / "scenarios"


@dataclass(frozen=True)
class Scenario:
    """One scripted model and what is right in front of it."""

    name: str
    why: str
    seen: str
    replies: list[Any]
    questions: list[str] = field(default_factory=lambda: ["go"])
    tools: list[str] = field(default_factory=lambda: ["get_weather"])
    settings: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    raw: bool = False
    expect: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    """The file it stands in."""

    def __post_init__(self) -> None:
        for name in self.settings:
            if name not in Settings.model_fields:
                raise ValueError(_("no setting is named {name!r}").format(name=name))

    def script(self) -> Script:
        """Return a fresh upstream that plays the replies."""
        items = [item(reply, n) for n, reply in enumerate(self.replies, 1)]
        return Script(items, **{"strict": True, **self.server})


def read_scenarios(folder: Path = FOLDER) -> list[Scenario]:
    """Return all scenarios in the order of the files and of their lines. Raises
    UsageError if two have one name, a field is not known, or there is none."""
    found: dict[str, Scenario] = {}
    for path in sorted(folder.glob("*.yaml")):
        for data in yaml.safe_load(path.read_text(encoding="utf-8")):
            try:
                scenario = Scenario(**data, kind=path.stem)
            except (TypeError, ValueError) as error:
                name = data.get("name")
                raise UsageError(f"{path.name}, {name}: {error}") from None
            if scenario.name in found:
                raise UsageError(
                    _("two scenarios are named {name!r}").format(name=scenario.name)
                )
            found[scenario.name] = scenario
    if not found:
        raise UsageError(_("{folder} holds no scenario").format(folder=folder))
    return list(found.values())
