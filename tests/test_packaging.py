"""What pip installs: one package, with what it needs, at its lowest and its newest.

The agent here is nobody's: its folder has modules named as those of the ladder are, and
talks to the gateway with nothing but the standard library.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_lines import environment

from equivalence import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MODULES = {"PyYAML": "yaml", "Jinja2": "jinja2"}
"""The name to import, where it is not that of the distribution."""
BROUGHT_ALONG = {
    "markupsafe": "a part of jinja2",
    "langgraph": "the errors of a graph that a user has",
    "pytest": "the plugin is loaded by pytest",
}
"""What is imported without being declared, each with the reason."""


# ------------------------------------------------------------------- what is declared


def bounds(requirements: list[str]) -> dict[str, str]:
    """The lower bound of each requirement."""
    found = (re.match(r"([\w-]+)>=([\d.]+)", line) for line in requirements)
    return {match[1]: match[2] for match in found if match}


def pins(file: str) -> dict[str, str]:
    text = (ROOT / file).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w-]+)==([\w.]+)", text, re.MULTILINE))


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


DEPENDENCIES = bounds(PROJECT["dependencies"])


def outermost_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def test_what_is_imported_is_declared_and_the_other_way_round() -> None:
    imported = {
        name
        for path in (ROOT / "equivalence").rglob("*.py")
        for name in outermost_imports(path)
        if name not in sys.stdlib_module_names and name != "equivalence"
    }
    declared = {MODULES.get(name, name.replace("-", "_")) for name in DEPENDENCIES}
    asked_for = {"distributed", "openai"}  # the extra "dask", a floor of `cost`
    assert imported - set(BROUGHT_ALONG) - asked_for == declared
    assert {*BROUGHT_ALONG, *asked_for} <= imported


def test_the_lowest_are_the_lower_bounds() -> None:
    lowest = pins("requirements-lowest.txt")
    assert {name: number(version) for name, version in lowest.items()} == {
        name: (*number(version), 0, 0)[:3] for name, version in DEPENDENCIES.items()
    }


def test_what_runs_here_is_pinned_and_within_the_bounds() -> None:
    extras = [
        line for group in PROJECT["optional-dependencies"].values() for line in group
    ]
    pinned = pins("requirements.txt")
    for name, bound in {**bounds(extras), **DEPENDENCIES}.items():
        assert number(pinned[name]) >= number(bound), name


# ------------------------------------------------------------------ what is installed

AGENT = """
import json
import urllib.request

from config import GREETING

SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}


def old(question, *, history=(), settings, tools):
    conversation = [*history, {"role": "user", "content": question}]
    named = {tool.__name__: tool for tool in tools}
    for _ in range(settings.max_steps):
        body = {
            "model": settings.model,
            "messages": [{"role": "system", "content": GREETING}, *conversation],
            "tools": [
                {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
                for name in named
            ],
        }
        request = urllib.request.Request(
            settings.gateway_url + "/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with straight.open(request) as reply:
            message = json.load(reply)["choices"][0]["message"]
        conversation.append(message)
        if not message.get("tool_calls"):
            break
        for call in message["tool_calls"]:
            function = call["function"]
            result = named[function["name"]](**json.loads(function["arguments"]))
            conversation.append(
                {"role": "tool", "tool_call_id": call["id"], "content": str(result)}
            )
    return conversation


def new(question, **given):
    return old(question, **given)
"""
FOREIGN = {
    "pyproject.toml": """
[tool.equivalence]
tools = "tools:OFFERED"
upstream = "script:replies.yaml"
implementations = { old = "chat:old", new = "chat:new" }
""",
    "replies.yaml": """
- calls: [[price_of, '{"what": "tea"}', a]]
- Tea is 4.
""",
    "tools.py": '''
def price_of(what: str) -> int:
    """The price of a thing."""
    return 4

OFFERED = [price_of]
''',
    "config.py": 'GREETING = "You sell tea."\n',
    "chat.py": AGENT,
}
"""A project with its own tools, config and chat."""


class Installed:
    """An environment into which the package was installed."""

    def __init__(self, folder: Path, *constraints: str) -> None:
        self.folder = folder
        venv.create(folder, with_pip=True)
        self.bin = folder / ("Scripts" if sys.platform == "win32" else "bin")
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        self.call("python", *pip, *constraints, str(ROOT), timeout=600)

    def call(
        self, program: str, *arguments: str, cwd: Path | None = None, timeout: int = 60
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.bin / program, *arguments],
            cwd=cwd or self.folder,
            env=environment(PYTHONPATH=""),
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module", params=["lowest", "newest"])
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    lowest = ["--constraint", str(ROOT / "requirements-lowest.txt")]
    return Installed(
        tmp_path_factory.mktemp("environment"),
        *(lowest if request.param == "lowest" else []),
    )


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    for name, text in FOREIGN.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


ABOUT = """
import json, importlib.metadata as m
print(json.dumps({
    "distributions": [d.name.lower() for d in m.distributions()],
    "files": [str(file) for file in m.files("same-agent")],
    "plugins": [e.value for e in m.entry_points(group="pytest11")],
}))
"""


@pytest.mark.slow
def test_one_package_is_installed_whole_and_no_framework(installed: Installed) -> None:
    about = json.loads(installed.call("python", "-c", ABOUT).stdout)
    frameworks = ("lang", "openai", "simpleeval", "pytest")
    assert "aiohttp" in about["distributions"]
    assert not [n for n in about["distributions"] if n.startswith(frameworks)]
    assert "equivalence.pytest_plugin" in about["plugins"]

    installed_files = {name for name in about["files"] if not name.endswith(".pyc")}
    names = {name.partition("/")[0] for name in installed_files} - {".."}  # the script
    assert names == {"equivalence", f"same_agent-{__version__}.dist-info"}
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "equivalence").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert ours == {n for n in installed_files if n.startswith("equivalence/")}


@pytest.mark.slow
def test_the_script_says_its_version(installed: Installed) -> None:
    said = installed.call("equivalence", "--version").stdout
    assert said == f"equivalence {__version__}\n"


@pytest.mark.slow
def test_agents_of_a_foreign_folder_are_compared(
    installed: Installed, foreign: Path
) -> None:
    done = installed.call(
        "equivalence", "run", "How much is tea?", "--json", cwd=foreign
    )
    document = json.loads(done.stdout)
    assert [run["status"] for run in document["runs"]] == ["completed"] * 2
    assert [verdict["verdict"] for verdict in document["verdicts"]] == ["equivalent"]
    for run in document["runs"]:
        assert run["answer"] == "Tea is 4."
        assert [step["result"] for step in run["steps"]] == ["4"]  # from its tools.py
        said = run["exchanges"][0]["request"]["messages"][0]["content"]
        assert said == "You sell tea."  # from its config.py


@pytest.mark.slow
def test_runs_of_a_foreign_folder_are_kept_compared_and_drawn(
    installed: Installed, foreign: Path
) -> None:
    installed.call(
        "equivalence", "run", "How much is tea?", "--out", "a.jsonl", cwd=foreign
    )
    done = installed.call(
        "equivalence", "diff", "a.jsonl", "--against", "a.jsonl", cwd=foreign
    )
    assert "2 equivalent" in done.stdout
    installed.call("equivalence", "report", "a.jsonl", "-o", "a.html", cwd=foreign)
    assert "How much is tea?" in (foreign / "a.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_scenario_is_played_to_foreign_agents(
    installed: Installed, foreign: Path
) -> None:
    """They come with the package, and so do the tools that they need."""
    names = [word for name in ("old", "new") for word in ("--implementation", name)]
    done = installed.call(
        "equivalence",
        "matrix",
        "--scenario",
        "serial_calls",
        *names,
        "--json",
        cwd=foreign,
    )
    outcomes = json.loads(done.stdout)["scenarios"]
    assert [outcome["scenario"] for outcome in outcomes] == ["serial_calls"] * 2
