"""The pages to look something up in: what they list is what there is."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from equivalence.cli import _parser
from equivalence.gateway.exchange import Exchange
from equivalence.runs.agents import OFFERED
from equivalence.runs.implementation import Implementation
from equivalence.runs.record import SCHEMA, STATUSES, Run, Step
from equivalence.table import FIELDS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def section(page: str, title: str) -> str:
    """The text under a heading of a page, down to the next heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(
        rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found, f"{page} has no heading {title!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, less their heads."""
    lines = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    cells = [re.split(r" \| ", line) for line in lines]
    heads = {n - 1 for n, row in enumerate(cells) if set("".join(row)) <= set("-:")}
    return [
        row
        for n, row in enumerate(cells)
        if n not in heads and not set("".join(row)) <= set("-:")
    ]


# ----------------------------------------------------------------- the judge's promises

GUARANTEES = rows(section("equivalence.md", "What the judge guarantees"))


@pytest.mark.parametrize("row", GUARANTEES, ids=[row[0] for row in GUARANTEES])
def test_a_guarantee_is_held_by_a_test_that_exists(row: list[str]) -> None:
    tests = re.findall(r"\[`(\w+)`\]\(\.\./(tests/\w+\.py)\)", row[2])
    assert tests, f"{row[0]} is held by nothing"
    for name, path in tests:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), name


def test_every_row_of_the_trial_is_guaranteed() -> None:
    reliability = [f"E{number}" for number in (1, 2, 3, 4, 5, 7, 12, 13)]
    wanted = [f"A{number}" for number in range(1, 21)] + reliability
    assert [row[0] for row in GUARANTEES] == wanted


# -------------------------------------------------------------------------- run records


@pytest.mark.parametrize(
    ("title", "record", "left_out"),
    [("Run", Run, set()), ("Step", Step, set()), ("Exchange", Exchange, {"body"})],
)
def test_every_field_of_a_run_record_is_explained(
    title: str, record: type, left_out: set[str]
) -> None:
    named = [row[0].strip("`") for row in rows(section("run-record.md", title))]
    assert named == [f.name for f in fields(record) if f.name not in left_out]


def test_the_words_of_a_run_record() -> None:
    page = (DOCS / "run-record.md").read_text(encoding="utf-8")
    assert SCHEMA in page
    numbers = {8: "eight", 9: "nine", 10: "ten", 11: "eleven"}
    assert f"one of [{numbers[len(STATUSES)]} words]" in page


# ----------------------------------------------------------------------------- commands


def commands() -> dict[str, str]:
    """The commands of the parser, each with its one line."""
    (sub,) = (
        action
        for action in _parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return {each.dest: str(each.help) for each in sub._choices_actions}


def test_every_command_is_listed_with_its_line_and_an_example() -> None:
    listed = [row for row in rows(section("commands.md", "Commands")) if len(row) == 3]
    assert {row[0].strip("`"): row[1] for row in listed} == commands()
    for name, _, example in listed:
        words = shlex.split(example.strip("`"))
        assert words[0] == name.strip("`")
        _parser().parse_args(words)


# ---------------------------------------------------------------------- your own agent


def test_every_field_of_the_table_is_explained() -> None:
    text = section("your-own-agent.md", "The table")
    named = {name for row in rows(text) for name in re.findall(r"`(\w+)`", row[0])}
    own = {f.name for f in fields(Implementation)} - {"name", "agent"}
    assert named == {*FIELDS} | own


def test_all_that_an_agent_may_ask_for_is_named() -> None:
    text = section("your-own-agent.md", "What is accepted as an agent")
    assert [name for name in OFFERED if f"`{name}`" not in text] == []


@pytest.mark.slow  # two processes with a pytest of their own
def test_the_first_test_is_red_and_then_green(tmp_path: Path) -> None:
    folder = tmp_path / "first_test"
    shutil.copytree(DOCS / "examples" / "first_test", folder)

    def run_pytest(*more: str) -> str:
        plugin = ["-p", "equivalence.pytest_plugin", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *plugin, *more],
            cwd=folder,
            env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTHONUTF8": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=100,
            check=False,
        )
        return done.stdout

    page = section("your-own-agent.md", "A test in five minutes")
    shown = re.findall(r"^E  .*$", page, re.MULTILINE)
    red = run_pytest("--equivalence-record", "once")
    assert [line for line in shown if line not in red.splitlines()] == [], red
    assert len(shown) == 5
    new = folder / "app" / "new.py"
    source = new.read_text(encoding="utf-8")
    new.write_text(source.replace("[:1]", ""), encoding="utf-8")
    assert "1 passed" in run_pytest()
