"""What an implementation costs: what does not vary is exact, nothing about time is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from equivalence.cost.lines import code_lines, implementation_lines
from equivalence.cost.peers import MODULES
from equivalence.table import read_table
from tests.test_docs import other_versions

AGENT = '''
"""An agent of a stranger."""
import json, os, urllib.request

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {}}}]

def run_agent(question, tools, base_url):
    # the plain loop
    functions = {tool.__name__: tool for tool in tools}
    messages = [{"role": "user", "content": question}]
    while True:
        body = json.dumps({"model": "m", "messages": messages, "tools": TOOLS}).encode()
        request = urllib.request.Request(
            base_url + "/chat/completions", body, {"content-type": "application/json"}
        )
        reply = json.load(urllib.request.urlopen(request))
        messages.append(reply["choices"][0]["message"])
        calls = messages[-1].get("tool_calls")
        if not calls:
            return messages
        for call in calls:
            DO
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": result}
            )

def impatient(question, tools, base_url):
    def checked(key):
        if len(seen) > 30:
            raise ValueError("too long for me")
        seen.append(key)
        return look_up(key)

    seen, look_up = [], tools[0]
    checked.__name__ = "look_up"
    return run_agent(question, [checked], base_url)

def silent(question, tools, base_url):
    return []
'''
CALL = 'functions[call["function"]["name"]](key="a")'
TABLE = """
[tool.equivalence.implementations]
plain = "mine:run_agent"
deeper = "deeper:run_agent"
"""
ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-peers"
FLOORS = {"http.client loop", "openai loop"}


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A folder with two agents, of which the second has one frame more."""
    (tmp_path / "pyproject.toml").write_text(TABLE)
    (tmp_path / "mine.py").write_text(AGENT.replace("DO", f"result = {CALL}"))
    one_more = AGENT.replace("DO", f"result = (lambda: {CALL})()")
    (tmp_path / "deeper.py").write_text(one_more)
    return tmp_path


def cost(folder: Path, *words: str) -> tuple[int, dict[str, dict[str, object]], str]:
    done = subprocess.run(
        [sys.executable, "-m", "equivalence", "cost", "--rounds", "1", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    costs = (
        json.loads(done.stdout)["costs"] if "--json" in words and done.stdout else []
    )
    return done.returncode, {each["name"]: each for each in costs}, done.stderr


def test_the_figures_of_a_strangers_agents(stranger: Path) -> None:
    code, costs, errors = cost(stranger, "--json", "--longest", "10")
    assert (code, errors) == (0, "")
    assert costs.keys() == {*FLOORS, "plain", "deeper"}
    assert costs["http.client loop"]["depth"] == 2  # Loop.run, and what calls it
    assert costs["plain"]["depth"] == 1
    assert costs["deeper"]["depth"] == 2
    for name in ("plain", "deeper"):
        each = costs[name]
        assert each["lines"] == code_lines((stranger / "mine.py").read_text())
        assert each["growth"].keys() == {"1", "10"}  # type: ignore[attr-defined]
        missing = [key for key, value in each.items() if value is None]
        assert missing == ["error"], missing


def test_what_makes_no_model_calls_is_named(stranger: Path) -> None:
    code, costs, _errors = cost(
        stranger, "--json", "--longest", "1", "--implementation", "mine:silent"
    )
    assert code == 3
    assert costs["mine:silent"]["ms_per_call"] is None
    assert costs["mine:silent"]["error"] == "it made 0 model calls of 4"
    assert costs["http.client loop"]["error"] is None


def test_where_the_time_is_out_it_is_said_of_each(stranger: Path) -> None:
    code, costs, _errors = cost(stranger, "--json", "--seconds", "0")
    assert code == 3
    assert {each["error"] for each in costs.values()} == {
        "the time was out (--seconds)"
    }


def test_the_plot_has_a_line_for_each(stranger: Path) -> None:
    words = ("--json", "--longest", "10", "--svg", "growth.svg")
    code, costs, _errors = cost(stranger, *words)
    drawn = ElementTree.parse(stranger / "growth.svg")
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert code == 0
    assert costs.keys() <= {*texts}


def test_an_error_of_a_long_run_leaves_the_other_figures(stranger: Path) -> None:
    name = "mine:impatient"
    words = ("--json", "--longest", "50", "--implementation", name)
    code, costs, _errors = cost(stranger, *words)
    assert code == 3
    assert costs[name]["ms_per_call"] is not None
    assert costs[name]["left_out"] == {"50": "ValueError: too long for me"}


def test_peers_come_from_an_environment_or_are_named(stranger: Path) -> None:
    code, _costs, errors = cost(stranger, "--json", "--peers", "nowhere")
    assert code == 2
    assert "python -m venv nowhere" in errors
    (stranger / "empty").mkdir()
    words = ("--json", "--longest", "1", "--peers", "empty")
    code, costs, _errors = cost(stranger, *words)
    assert code == 3
    assert costs["plain"]["error"] is None
    for name in MODULES:
        assert costs[name]["error"] == "empty is no environment"


@pytest.mark.slow
@pytest.mark.skipif(
    not PEERS.is_dir(), reason="docs/cost.md says how .venv-peers is made"
)
def test_the_peers_are_measured(stranger: Path) -> None:
    words = ("--json", "--longest", "10", "--seconds", "300", "--peers", str(PEERS))
    code, costs, errors = cost(stranger, *words)
    assert (code, errors) == (0, "")
    for name in MODULES:
        assert costs[name]["depth"] > 1  # type: ignore[operator]
        assert costs[name]["growth"].keys() == {"1", "10"}  # type: ignore[attr-defined]


@pytest.mark.slow
def test_every_rung_of_the_ladder_is_measured() -> None:
    code, costs, errors = cost(ROOT, "--json", "--longest", "10", "--seconds", "300")
    assert (code, errors) == (0, "")
    assert all(each["ratio"] for each in costs.values())
    if not other_versions():
        shown = {name: each["depth"] for name, each in on_the_page().items()}
        depths = {name: each["depth"] for name, each in costs.items()}
        assert depths == {name: shown[name] for name in depths}


def on_the_page() -> dict[str, dict[str, object]]:
    text = (ROOT / "docs" / "examples" / "cost.json").read_text(encoding="utf-8")
    return {each["name"]: each for each in json.loads(text)["costs"]}


def test_the_lines_on_the_page_are_those_of_today() -> None:
    table = read_table(ROOT)
    files = {
        name: ROOT / (each.target.partition(":")[0].replace(".", "/") + ".py")
        for name, each in table.implementations.items()
    }
    others = tuple(files.values())
    shown = {name: on_the_page()[name]["lines"] for name in files}
    assert shown == {
        name: implementation_lines(file, ROOT, others) for name, file in files.items()
    }
