"""Tables and graphs that the project's own code makes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import cog

from blocks.page import ROOT, fence, importable, said, table
from blocks.source import link, said_of_fields, stage_lines


def ladder() -> None:
    """Write the ladder as a table, with the lines of each rung counted."""
    rows = []
    for path, holds, above in LADDER:
        folder, file = path.split("/")
        others = {"agent.py", "successor.py"} - {file}
        lines = sum(stage_lines(ROOT / folder, without=tuple(others)).values())
        rows.append((link(path, text=folder), said(holds), lines, said(above)))
    head = ("stage", "what you hold in your hands", "lines", "what is gone")
    table([*map(said, head)], rows)


LADDER = (
    ("stage1_prebuilt/agent.py", "a model, tools, a prompt", "nothing yet"),
    (
        "stage1_prebuilt/successor.py",
        "the same, for `langchain.agents.create_agent`",
        "nothing: it replaces create_react_agent, which is deprecated",
    ),
    ("stage2_stategraph/agent.py", "nodes, edges, a state", "the prebuilt graph"),
    (
        "stage3_pure_loop/agent.py",
        "a `for` loop over a list of messages",
        "langgraph: graph, state, checkpoints",
    ),
    (
        "stage4_mini_framework/agent.py",
        "dicts and the `openai` client",
        "LangChain: message classes, schemas, reading replies",
    ),
    (
        "stage5_text_react/agent.py",
        "a prompt and a parser",
        "the model's own tool calling: it writes its calls as text",
    ),
)


def meanings(path: str, name: str, head: Sequence[str]) -> None:
    """Write a table {word: meaning} of the code as a table of the page."""
    found = _constant(path, name)
    table(head, ((f"`{word}`", said(meaning)) for word, meaning in found.items()))


def exit_codes(head: Sequence[str]) -> None:
    """Write the exit codes as a table, as every --help prints them."""
    importable()
    from equivalence.judge.exit_codes import EXIT_CODES

    found = re.findall(r"^  (\d+) +(.*(?:\n {7}.*)*)", said(EXIT_CODES), re.MULTILINE)
    table(head, ((f"`{code}`", " ".join(when.split())) for code, when in found))


def rules() -> None:
    """Write the rules of comparing as a list."""
    for name, sentence in _constant("equivalence/judge/compare.py", "RULES").items():
        cog.outl(
            said("- **{name}**: {sentence}").format(name=name, sentence=said(sentence))
        )


def _constant(path: str, name: str) -> Any:
    """The value of a constant of a file."""
    importable()
    return getattr(import_module(path.removesuffix(".py").replace("/", ".")), name)


def settings() -> None:
    """Write the settings with their defaults and what the code says of them."""
    importable()
    from equivalence.settings import Settings

    notes = said_of_fields("equivalence/settings.py", "Settings")
    rows = []
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = said("not set") if default is None else f"`{str(default).lower()}`"
        note = " ".join(notes.get(name, "").split())
        rows.append((f"`LLM_{name.upper()}`", shown, said(note)))
    table([*map(said, ("variable", "default", "what it is"))], rows)


def hints() -> None:
    """Write what to do about the commonest failures of an endpoint, as a table."""
    importable()
    from equivalence.runs.hints import HINTS

    table(
        (said("the endpoint's words have"), said("what to do")),
        (
            (said(" or ").join(f"`{word}`" for word in words), said(advice))
            for words, advice in HINTS
        ),
    )


def mermaid(module: str) -> None:
    """Write the graph of a stage as Mermaid, drawn by langgraph from the graph that the
    stage compiles."""
    importable()
    from config import Settings, chat_model
    from toolkit.policy import by_name
    from tools import TOOLS

    nowhere = Settings(_env_file=None, gateway_url="http://127.0.0.1:9/v1")
    build = import_module(module).build_graph
    graph = build(chat_model(nowhere), by_name(TOOLS), nowhere).get_graph()
    lines = graph.draw_mermaid().strip().splitlines()
    fence("mermaid", (line.replace("\t", "    ").rstrip() for line in lines))


def exercises(chapter: str) -> None:
    """Write the exercises of a chapter: what to do, and the commands."""
    importable()
    from equivalence.language import _
    from exercises.exercise import EXERCISES

    for each in EXERCISES:
        if each.chapter != chapter:
            continue
        number = each.number
        start = link(f"exercises/{each.name}/start.py", text=said("where it starts"))
        title = said("**{number} {title}.** {task}")
        cog.outl(title.format(number=number, title=_(each.title), task=_(each.task)))
        cog.outl()
        cog.outl(said(COMMANDS).format(number=number, start=start))
        cog.outl()


COMMANDS = """\
`python -m exercises start {number}` copies {start} to
`my_agent.py`; `check {number}` says PASS, or FAIL and why;
`hint {number}` and `solution {number}` help."""
