"""The shape of the ladder: what ruff and import-linter cannot say (`make check`)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import ROOT, environment
from wire import LADDER

STAGES = sorted(path.name for path in ROOT.glob("stage*_*") if path.is_dir())
AGENTS = [ROOT / stage / "agent.py" for stage in STAGES]
FILES_OF_ONE_SCREEN = [*AGENTS, ROOT / "stage1_prebuilt" / "successor.py"]
LOOP = ["call_model", "wants_tools", "run_tools", "run_agent"]

agents = pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.parent.name)
screens = pytest.mark.parametrize(
    "path", FILES_OF_ONE_SCREEN, ids=lambda path: f"{path.parent.name}/{path.name}"
)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def docstring(path: Path) -> str:
    return ast.get_docstring(tree(path)) or ""


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    return {
        node.name: node for node in tree(path).body if isinstance(node, ast.FunctionDef)
    }


def test_every_stage_stands_in_the_table_in_its_order() -> None:
    listed = [entry.target.partition(".")[0] for entry in LADDER]
    assert list(dict.fromkeys(listed)) == STAGES
    assert [stage[:6] for stage in STAGES] == [
        f"stage{number}" for number in range(1, len(STAGES) + 1)
    ]


@agents
def test_the_loops_lie_side_by_side(path: Path) -> None:
    """The same function names in the same order; others may stand between them."""
    names = [name for name in functions(path) if name in LOOP]
    assert names == (["run_agent"] if path.parent.name == STAGES[0] else LOOP)
    for missing in set(LOOP) - set(names):  # one that lacks one says so
        assert missing in docstring(path)


@agents
def test_an_agent_opens_with_what_differs_from_the_stage_above(path: Path) -> None:
    number = int(path.parent.name.removeprefix("stage")[0])
    assert docstring(path).startswith(f"Stage {number}: ")
    assert len(docstring(path).splitlines()) <= 6
    assert number == 1 or f"stage {number - 1}" in docstring(path)


@screens
def test_run_agent_has_the_contract(path: Path) -> None:
    arguments = functions(path)["run_agent"].args
    assert [a.arg for a in arguments.args] == ["question"]
    defaults = dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    contract = [(a.arg, d and ast.unparse(d)) for a, d in defaults.items()]
    assert contract[:3] == [("history", "()"), ("settings", "None"), ("tools", "TOOLS")]
    assert None not in arguments.kw_defaults  # what is more can be left out


@screens
def test_an_agent_fits_one_screen(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 70
    assert max(map(len, lines)) <= 88
    assert not any(line.rstrip().endswith(";") for line in lines)
    for function in functions(path).values():
        length = (function.end_lineno or 0) - function.lineno + 1
        assert length <= 25, function.name


def test_a_stage_holds_no_furniture() -> None:
    """No logging, timing, retrying: the judge watches from outside. (ruff: no print)"""
    furniture = re.compile(
        r"^\s*(?:import|from) (?:logging|time|random|tenacity|rich|cProfile)\b"
        r"|\b(?:open|input)\(|\bretr(?:y|ies)",
        re.MULTILINE,
    )
    for stage in STAGES:
        for path in (ROOT / stage).glob("*.py"):
            found = furniture.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path}: {found[0]}"


def test_no_text_is_read_from_a_process_in_an_encoding_of_the_system() -> None:
    """R116; ruff says it of files, not of processes."""
    for path in ROOT.rglob("*.py"):
        folder = path.relative_to(ROOT).parts[0]
        if not folder.startswith(".") and folder != "tests":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\b(text|universal_newlines)=True", text), path


def test_the_lower_tiers_load_no_framework() -> None:
    """What import-linter says of single imports, for all that comes with them."""
    code = """
import sys
def loaded(*modules):
    for module in modules:
        __import__(module)
    names = {name.partition(".")[0] for name in sys.modules}
    return sorted(n for n in names if n.startswith(("lang", "openai")))
print(loaded("tools", "toolkit.arithmetic"))
print(loaded("config"))
print(loaded("stage4_mini_framework.framework", "stage5_text_react.agent"))
print([n for n in loaded("stage3_pure_loop.agent") if n.startswith("langgraph")])
"""
    assert python("-c", code).splitlines() == ["[]", "[]", "['openai']", "[]"]


@pytest.mark.slow
def test_stage_1_runs_without_any_warning() -> None:
    """R118: neither a deprecation nor any other warning reaches a user."""
    code = (
        "from stage1_prebuilt import agent, successor\n"
        "for stage in (agent, successor):\n"
        "    print(stage.run_agent('17 * 23')[-1].content)\n"
    )
    # connections that are open at the very end of a process are no one's business
    options = ("-W", "error", "-W", "ignore::ResourceWarning")
    assert python(*options, "-c", code).count("391") == 2


def python(*arguments: str) -> str:
    """What a process of its own printed, which must have no complaint."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
