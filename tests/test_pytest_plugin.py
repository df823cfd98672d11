"""The pytest plugin, in a stranger's project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import environment

AGENTS = """
import openai

def ask(question, settings, tools, history=(), shout=False):
    client = openai.OpenAI(base_url=settings.gateway_url, api_key="x", max_retries=0)
    known = {tool.__name__: tool for tool in tools}
    offered = [{"type": "function", "function": {"name": n}} for n in known]
    said = question.upper() if shout else question
    messages = [*history, {"role": "user", "content": said}]
    for _ in range(settings.max_steps):
        reply = client.chat.completions.create(
            model="m", messages=messages, tools=offered
        ).choices[0].message.model_dump(exclude_none=True)
        messages.append(reply)
        if not reply.get("tool_calls"):
            break
        for call in reply["tool_calls"]:
            result = known[call["function"]["name"]]()
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": result}
            )
    return messages

def old(question, *, history=(), settings, tools):
    return ask(question, settings, tools, history)

def new(question, *, history=(), settings, tools):
    return ask(question, settings, tools, history)

def broken(question, *, history=(), settings, tools):
    return ask(question, settings, tools, history, shout=True)

async def asynchronous(question, *, history=(), settings, tools):
    return ask(question, settings, tools, history)
"""
TOOLS = '''
from pathlib import Path

def send() -> str:
    """Send a mail."""
    with Path("sent").open("a") as file:
        file.write("x")
    return "sent"

TOOLS = [send]
'''
TESTS = """
import asyncio
import pytest
import agents

def test_same(equivalence):
    equivalence.assert_same("old", "new", questions=["hi", ["one", "two"]])

def test_objects(equivalence):
    equivalence.assert_same(agents.old, agents.new, agents.asynchronous, questions=["hi"])

@pytest.mark.parametrize("question", ["北京?", "a/b"])
def test_each(equivalence, question):
    equivalence.assert_same("old", "new", questions=[question])

@pytest.mark.asyncio
async def test_inside_a_loop(equivalence):
    equivalence.assert_same("old", "agents:asynchronous", questions=["hi"])
"""
DIFFERENT = """
import pytest

def test_broken(equivalence):
    equivalence.assert_same("old", "broken", questions=["hi"])

@pytest.mark.equivalence(ignore=["$.messages[*].content"])
def test_ignored(equivalence):
    equivalence.assert_same("old", "broken", questions=["hi"])
"""


XDIST = ["-p", "xdist", "-p", "asyncio", "-n", "2"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of somebody's own."""
    (tmp_path / "agents.py").write_text(AGENTS, "utf-8")
    (tmp_path / "mail.py").write_text(TOOLS, "utf-8")
    (tmp_path / "test_agents.py").write_text(TESTS, "utf-8")
    (tmp_path / "replies.yaml").write_text("- calls: [[send, '{}']]\n- done\n", "utf-8")
    (tmp_path / "pyproject.toml").write_text(
        "[tool.equivalence]\n"
        'tools = "mail:TOOLS"\nupstream = "script:replies.yaml"\n'
        'implementations = { old = "agents:old", new = "agents:new",'
        ' broken = "agents:broken" }\n'
        "[tool.pytest.ini_options]\nasyncio_default_fixture_loop_scope = 'function'\n"
    )
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "equivalence.pytest_plugin", *arguments),
        ],
        cwd=project,
        # not every plugin that is installed here: each costs a second
        env=environment(COLUMNS="200", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_recorded_once_and_replayed_without_a_model_or_a_tool(project: Path) -> None:
    missing = run(project, "test_agents.py::test_same")
    assert missing.returncode == 1
    command = 'python -m pytest "test_agents.py::test_same" --equivalence-record once'
    assert command in missing.stdout

    recorded = run(project, "--equivalence-record", "once", *XDIST)
    assert "5 passed" in recorded.stdout, recorded.stdout
    files = sorted(p.name for p in (project / "recordings" / "test_agents").iterdir())
    assert len(files) == 5, "one file for each test"
    sent = (project / "sent").read_text()

    (project / "replies.yaml").unlink()  # no model any more
    for workers in (["-p", "asyncio"], XDIST):
        replayed = run(project, "--junit-xml", "result.xml", *workers)
        assert "5 passed" in replayed.stdout, replayed.stdout
    assert (project / "sent").read_text() == sent, "no mail is sent again"
    assert 'tests="5"' in (project / "result.xml").read_text("utf-8")


def test_a_failure_shows_cause_place_and_both_values(project: Path) -> None:
    (project / "test_agents.py").write_text(DIFFERENT, "utf-8")
    done = run(project, "--equivalence-record", "once")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    head = (
        "old vs broken: different, cause: request, model call 1, $.messages[0].content"
    )
    assert any(line.endswith(head) for line in lines)
    assert "E       - old: hi" in done.stdout
    assert "E       + broken: HI" in done.stdout
    assert "the difference is in the code" in done.stdout
    assert "pytest_plugin.py" not in done.stdout, "the reader is in his own test"


@pytest.mark.slow
def test_a_new_question_is_a_miss_that_names_its_command(project: Path) -> None:
    one = "test_agents.py::test_same"
    run(project, "--equivalence-record", "once", one)
    text = TESTS.replace('["hi", [', '["hi", "another", [')
    (project / "test_agents.py").write_text(text, "utf-8")
    missing = run(project, one)
    assert "'another' is not in test_same.jsonl for old" in missing.stdout
    assert f'python -m pytest "{one}" --equivalence-record new' in missing.stdout
    assert run(project, one, "--equivalence-record", "new").returncode == 0
    assert run(project, one).returncode == 0


@pytest.mark.slow
def test_a_baseline_that_has_changed_is_recorded_again(project: Path) -> None:
    one = "test_agents.py::test_objects"
    assert run(project, "--equivalence-record", "once", one).returncode == 0
    changed = AGENTS.replace('model="m"', 'model="m", temperature=0.5')
    (project / "agents.py").write_text(changed, "utf-8")
    missing = run(project, one)
    assert "old does not do any more what was recorded of it" in missing.stdout
    assert "$.temperature" in missing.stdout
    assert f'python -m pytest "{one}" --equivalence-record all' in missing.stdout
    assert run(project, one, "--equivalence-record", "all").returncode == 0
    assert run(project, one).returncode == 0


@pytest.mark.slow
def test_nothing_heavy_is_imported_until_the_fixture_is_used(project: Path) -> None:
    (project / "test_agents.py").write_text(
        "import sys\n"
        "def test_light():\n"
        "    heavy = ('pydantic', 'starlette', 'aiohttp', 'openai', 'rich', 'msgspec')\n"
        "    assert not [name for name in heavy if name in sys.modules]\n"
        "    import equivalence.pytest_plugin\n",
        "utf-8",
    )
    done = run(project)
    assert "1 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_beside_pytest_recording(project: Path) -> None:
    pytest.importorskip("pytest_recording")
    one = "test_agents.py::test_same"
    other = ["-p", "pytest_recording.plugin", "-p", "asyncio"]
    record = [*other, "--equivalence-record", "once", "--record-mode", "none"]
    done = run(project, *record, one)
    assert done.returncode == 0, done.stdout
    blocked = run(project, *other, "--block-network", "--allowed-hosts=127.0.0.1", one)
    assert blocked.returncode == 0, blocked.stdout
