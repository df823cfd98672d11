"""The shape of the project: which arrows there are, what a file may look like."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from equivalence.runs.implementation import LADDER

ROOT = Path(__file__).parent.parent
STAGES = sorted(path.name for path in ROOT.glob("stage*_*") if path.is_dir())
SOURCES = sorted(
    path.relative_to(ROOT)
    for path in ROOT.rglob("*.py")
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    and path.relative_to(ROOT).parts[0] not in ("tests", "docs")
)
AGENTS = [
    path for path in SOURCES if path.name == "agent.py" and path.parts[0] in STAGES
]
FILES_OF_ONE_SCREEN = [*AGENTS, Path("stage1_prebuilt/successor.py")]

sources = pytest.mark.parametrize("path", SOURCES, ids=str)
agents = pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.parts[0])


def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


# ----------------------------------------------------------------------- the arrows

ARROWS: dict[str, set[str]] = {
    # the ladder: what each tier needs, and never one another
    "stage1_prebuilt": {"config", "tools", "langchain", "langchain_core", "langgraph"},
    "stage2_stategraph": {"config", "tools", "langchain_core", "langgraph"},
    "stage3_pure_loop": {"config", "tools", "langchain_core"},
    "stage4_mini_framework": {"config", "tools", "schema", "tokens", "openai"},
    "stage5_text_react": {"config", "tools", "schema", "tokens", "openai"},
    # the fixed part: no framework at module level
    "config": {"pydantic", "pydantic_settings", "usage"},
    "tools": {"arithmetic", "usage"},
    "usage": set(),
    "arithmetic": {"simpleeval"},
    "schema": {"tools"},
    "tokens": set(),
    # the world: nothing of the rest
    "gateway": {"starlette", "uvicorn", "aiohttp"},
    # the judge
    "equivalence": {
        *("config", "tools", "tokens", "usage", "gateway"),
        *("rich", "yaml", "jinja2"),
    },
    "chat": {"config", "tools", "usage", "gateway", "equivalence", "rich"},
}
"""What the modules of each folder import at module level, besides themselves and the
standard library. An entry that is not used fails too."""

LATER: dict[str, set[str]] = {
    "config": {"gateway", "langchain_openai", "openai"},
    "tools": {"pydantic", "pydantic_core"},
}
"""What is imported inside of functions, when it is needed."""

EXCEPTIONS: dict[str, tuple[set[str], str]] = {
    **{
        f"{stage}/__main__.py": ({"chat"}, "chat is the command line of every stage")
        for stage in STAGES
    },
    "gateway/__main__.py": (
        {"config", "usage"},
        "config makes the gateway from the settings",
    ),
    "equivalence/faults.py": (
        {"langchain_core", "stage3_pure_loop"},
        "the planted faults are stage 3 with one thing broken",
    ),
    "equivalence/stock.py": (
        {"langchain", "langchain_core", "langgraph"},
        "the frameworks as they are shipped",
    ),
    "equivalence/report/draw.py": ({"markupsafe"}, "a part of jinja2"),
}
"""Single files that import more, each with the reason."""


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The top-level names a file imports, and whether at module level, less the
    standard library, its own folder, and what only a type checker reads."""
    own = path.parts[0].removesuffix(".py")

    def walk(node: ast.AST, outermost: bool) -> Iterator[tuple[str, bool]]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [] if node.level else [node.module or ""]  # its own folder
            assert node.level < len(path.parts), "it would leave its folder"
        else:
            names = []
        for name in names:
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top != own:
                yield top, outermost
        inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from walk(child, outermost and not inner)

    yield from walk(tree(path), True)


@sources
def test_a_file_imports_only_what_its_place_allows(path: Path) -> None:
    own = path.parts[0].removesuffix(".py")
    more, _ = EXCEPTIONS.get(path.as_posix(), (set(), ""))
    for name, outermost in imports(path):
        allowed = ARROWS[own] | more
        if not outermost:
            allowed = allowed | LATER.get(own, set())
        place = "at module level" if outermost else "in a function"
        assert name in allowed, f"{path} imports {name} {place}"


def test_no_entry_of_the_table_is_unused() -> None:
    used: dict[str, set[tuple[str, bool]]] = {own: set() for own in ARROWS}
    for path in SOURCES:
        own = path.parts[0].removesuffix(".py")
        more, _ = EXCEPTIONS.get(path.as_posix(), (set(), ""))
        found = set(imports(path))
        assert more <= {name for name, _ in found}, path
        used.setdefault(own, set()).update(f for f in found if f[0] not in more)
    for own, names in ARROWS.items():
        assert {name for name, outermost in used[own] if outermost} == names, own
    for own, names in LATER.items():
        assert {name for name, outermost in used[own] if not outermost} == names, own
    for place in EXCEPTIONS:
        assert Path(place) in SOURCES


FRAMEWORKS = ("langchain", "langgraph", "openai", "pydantic", "starlette", "uvicorn")


def test_the_lower_tiers_load_no_framework() -> None:
    """What the table says of single files, for all that comes with them."""
    code = """
import sys
def loaded(*modules):
    for module in modules:
        __import__(module)
    names = {name.partition(".")[0] for name in sys.modules}
    return sorted(n for n in names if n.startswith(("langchain", "langgraph", "openai",
                                                    "gateway", "equivalence")))
print(loaded("tools", "arithmetic"))
print(loaded("config"))
print(loaded("stage4_mini_framework.framework", "stage5_text_react.agent"))
print([n for n in loaded("stage3_pure_loop.agent") if n.startswith("langgraph")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == ["[]", "[]", "['openai']", "[]"]


# ----------------------------------------------------------------------- the stages

LOOP = ["call_model", "wants_tools", "run_tools", "run_agent"]


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    return {
        node.name: node for node in tree(path).body if isinstance(node, ast.FunctionDef)
    }


def test_every_implementation_of_the_ladder_is_a_stage() -> None:
    assert {i.target.partition(".")[0] for i in LADDER} == set(STAGES)
    assert len(AGENTS) == len(STAGES)
    assert [stage[:6] for stage in STAGES] == [
        f"stage{number}" for number in range(1, len(STAGES) + 1)
    ]


@agents
def test_the_loops_lie_side_by_side(path: Path) -> None:
    """The same function names in the same order; others may stand between them."""
    names = [name for name in functions(path) if name in LOOP]
    assert names == (["run_agent"] if path.parts[0] == "stage1_prebuilt" else LOOP)
    docstring = ast.get_docstring(tree(path)) or ""
    for missing in set(LOOP) - set(names):  # one that lacks one says so
        assert missing in docstring


@pytest.mark.parametrize("path", FILES_OF_ONE_SCREEN, ids=str)
def test_run_agent_has_the_contract(path: Path) -> None:
    arguments = functions(path)["run_agent"].args
    assert [a.arg for a in arguments.args] == ["question"]
    assert [a.arg for a in arguments.kwonlyargs][:3] == ["history", "settings", "tools"]
    assert None not in arguments.kw_defaults
    defaults = [ast.unparse(d) for d in arguments.kw_defaults if d][:3]
    assert defaults == ["()", "None", "TOOLS"]


@pytest.mark.parametrize("path", FILES_OF_ONE_SCREEN, ids=str)
def test_an_agent_fits_one_screen(path: Path) -> None:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 70
    assert max(map(len, lines)) <= 88
    assert not any(line.rstrip().endswith(";") for line in lines)
    for function in functions(path).values():
        length = (function.end_lineno or 0) - function.lineno + 1
        assert length <= 25, function.name


FURNITURE = ("logging", "time", "random", "tenacity", "rich", "tracemalloc", "cProfile")


@pytest.mark.parametrize(
    "path",
    [p for p in SOURCES if p.parts[0] in STAGES and p.name != "__main__.py"],
    ids=str,
)
def test_a_stage_holds_no_furniture(path: Path) -> None:
    """No printing, logging, timing, retrying: the judge watches from outside."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in ("print", "input", "open"), path
        if isinstance(node, ast.Import):
            assert not {a.name.partition(".")[0] for a in node.names} & set(FURNITURE)
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in FURNITURE
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = node.id if isinstance(node, ast.Name) else node.attr
            assert "retr" not in name.lower() or name == "retrieve", name


@agents
def test_an_agent_opens_with_what_differs_from_the_stage_above(path: Path) -> None:
    docstring = ast.get_docstring(tree(path)) or ""
    number = int(path.parts[0].removeprefix("stage")[0])
    assert docstring.startswith(f"Stage {number}: ")
    assert len(docstring.splitlines()) <= 6
    if number > 1:
        assert f"stage {number - 1}" in docstring


# ------------------------------------------------------------------------- all files


@sources
def test_public_functions_say_what_comes_out(path: Path) -> None:
    for node in tree(path).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            assert node.name.startswith("_") or ast.get_docstring(node), (
                f"{path}:{node.lineno} {node.name}"
            )


@sources
def test_a_file_says_what_it_is(path: Path) -> None:
    if (ROOT / path).stat().st_size and path.name != "__main__.py":
        assert ast.get_docstring(tree(path)), path


@sources
def test_no_file_is_named_after_nothing(path: Path) -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    for part in path.with_suffix("").parts:
        assert not vague & set(part.split("_")), path
    assert not path.name.startswith("test_")


OPENERS = ("open", ".read_text", ".write_text", "fdopen", "NamedTemporaryFile")
RUNNERS = ("run", "Popen", "check_output", "check_call", "call")


def unnamed_encodings(path: Path) -> Iterator[str]:
    """R116: each place that turns bytes into text without naming UTF-8."""
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        given = {k.arg: k.value for k in node.keywords if k.arg}
        words = [a.value for a in node.args if isinstance(a, ast.Constant)]
        modes = [w for w in words if isinstance(w, str) and set(w) <= set("rwaxbt+")]
        if isinstance(given.get("mode"), ast.Constant):
            modes.append(given["mode"].value)
        if last in OPENERS or ("." in name and f".{last}" in OPENERS):
            wanted = not any("b" in mode for mode in modes)
            wanted &= name not in ("webbrowser.open", "os.open")
            wanted &= last != "NamedTemporaryFile" or bool(modes)
        elif last in RUNNERS and name.startswith("subprocess."):
            wanted = bool({"text", "universal_newlines", "encoding"} & set(given))
        else:
            continue
        encoding = given.get("encoding")
        named = isinstance(encoding, ast.Constant) and str(encoding.value).lower() in (
            "utf-8",
            "utf-8-sig",
        )
        if wanted and not named:
            yield f"{path}:{node.lineno} {name}"


@sources
def test_every_file_is_read_and_written_as_utf8(path: Path) -> None:
    assert list(unnamed_encodings(path)) == []


def test_the_check_of_encodings_sees_what_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(
        "open('a')\np.open('w')\np.read_text()\np.write_text('x', encoding='gbk')\n"
        "subprocess.run([], text=True)\n"
        "open('a', 'rb')\nopen('a', encoding='utf-8')\np.open('ab+')\n"
        "subprocess.run([], capture_output=True)\nopen('a', mode='wb')\n",
        encoding="utf-8",
    )
    found = [line.rpartition(" ")[0] for line in unnamed_encodings(bad)]
    assert [line.rpartition(":")[2] for line in found] == ["1", "2", "3", "4", "5"]


def test_stage_1_runs_without_any_warning(tmp_path: Path) -> None:
    """R118: neither a deprecation nor any other warning reaches a user."""
    code = (
        "from stage1_prebuilt import agent, successor\n"
        "for stage in (agent, successor):\n"
        "    print(stage.run_agent('17 * 23')[-1].content)\n"
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LLM_")}
    # connections that are open at the very end of a process are no one's business
    everything = ["-W", "error", "-W", "ignore::ResourceWarning"]
    for warnings in (["-W", "error::DeprecationWarning"], everything):
        done = subprocess.run(
            [sys.executable, *warnings, "-c", code],
            cwd=tmp_path,
            env={**kept, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert done.stdout.count("391") == 2
