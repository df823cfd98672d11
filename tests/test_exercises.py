"""The exercises: their command line, and a checker that cannot be fooled.

Each solution passes. Where an exercise starts, and each solution that is known to be
wrong, fails for the reason named here; a wrong one is a right one with a part replaced.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from solutions import FAST, RIGHT, WRONG, Solution

from equivalence.errors import UsageError
from equivalence.gateway import Gateway
from equivalence.judge.compare import CAUSES
from exercises.__main__ import main
from exercises.checking import Checked, Failed
from exercises.exercise import EXERCISES, FOLDER, Exercise, find, markdown
from exercises.texts import TEXTS

ROOT = Path(__file__).parent.parent

OWN_PROCESS = "async_twin"
"""What breaks here holds on to an event loop, which no other check should meet."""

every = pytest.mark.parametrize(
    "exercise",
    [
        pytest.param(
            each,
            marks=pytest.mark.slow if each.name == OWN_PROCESS else (),
            id=each.name,
        )
        for each in EXERCISES
    ],
)


START = {
    "first_tool": "not_offered",
    "ask_a_person": "nobody_asked",
    "return_direct": "one_call",
    "serial": "several_calls",
    "together": "not_together",
    "async_twin": "raised",
    "order": "refused",
    "window": "chain",
    "dependencies": "guess_ran",
    "label": "not_understood",
    "plant": "no_difference",
    "survive": "died",
}
"""Why an exercise is not done where it starts."""

ABOUT = {"title", "task", "hint", "tries"}
"""The texts of an exercise that are no reasons."""


def reason(exercise: Exercise, file: Path, gateway: Gateway) -> str:
    """Return for which of its reasons the file fails; "" if it passes."""
    if exercise.name == OWN_PROCESS:
        done = subprocess.run(
            [sys.executable, "-c", IN_OWN_PROCESS, exercise.name, str(file)],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=True,
        )
        return done.stdout.strip()
    try:
        Checked(exercise, file, gateway).check()
    except Failed as failed:
        return failed.key if failed.reason else "no reason"
    return ""


def marked(solution: Solution) -> object:
    """The solution as a parameter of a test."""
    marks = () if solution[:2] in FAST else pytest.mark.slow
    name = f"{solution.exercise}: {solution.about}"
    return pytest.param(solution, marks=marks, id=name)


IN_OWN_PROCESS = """
import sys
from pathlib import Path
from equivalence.gateway import Gateway
from exercises.checking import Checked, Failed
from exercises.exercise import find
from offline_model import OfflineModel

with Gateway(OfflineModel()) as gateway:
    try:
        Checked(find(sys.argv[1]), Path(sys.argv[2]), gateway).check()
    except Failed as failed:
        print(failed.key)
"""


def command(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "exercises", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


# -------------------------------------------------------------------- the checker


@every
def test_the_solution_passes(exercise: Exercise, gateway: Gateway) -> None:
    assert reason(exercise, exercise.solution, gateway) == ""


@every
def test_the_start_fails(exercise: Exercise, gateway: Gateway) -> None:
    assert reason(exercise, exercise.start, gateway) == START[exercise.name]


@pytest.mark.parametrize("wrong", [marked(each) for each in WRONG])
def test_a_wrong_solution_fails(
    wrong: Solution, tmp_path: Path, gateway: Gateway
) -> None:
    assert (
        reason(find(wrong.exercise), written(wrong, tmp_path), gateway) == wrong.reason
    )


@pytest.mark.parametrize("right", [marked(each) for each in RIGHT])
def test_a_right_solution_that_is_not_ours_passes(
    right: Solution, tmp_path: Path, gateway: Gateway
) -> None:
    assert reason(find(right.exercise), written(right, tmp_path), gateway) == ""


def written(solution: Solution, folder: Path) -> Path:
    """The solution as a learner's file."""
    text = (find(solution.exercise).folder / f"{solution.file}.py").read_text("utf-8")
    for part, other in solution.replaced.items():
        assert part in text
        text = text.replace(part, other)
    file = folder / "my_agent.py"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_reason_is_seen_here() -> None:
    """A text that no wrong solution brings about is one that nobody has tried."""
    seen = set(START.items())
    seen |= {(wrong.exercise, wrong.reason) for wrong in WRONG}
    for exercise in EXERCISES:
        for key in TEXTS[exercise.name].keys() - ABOUT:
            assert (exercise.name, key) in seen, f"{exercise.name}: {key}"


# --------------------------------------------------------------- the command line


def test_a_check_says_pass_or_fail_and_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["start", "2"]) == 0
    assert find("2").task[:40] in " ".join(capsys.readouterr().out.split())
    assert main(["check", "2"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("FAIL  2 return_direct: after get_stock_price has run")
    assert "cause control, model call 2" in said
    assert said.endswith("A hint: python -m exercises hint 2\n")
    main(["solution", "return_direct"])
    Path("my_agent.py").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["check", "return_direct"]) == 0
    assert capsys.readouterr().out.startswith("PASS  2 return_direct: ")


def test_the_judge_explains_in_the_reader_s_language(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_LANG", "zh")
    assert main(["start", "2"]) == 0
    assert main(["check", "2"]) == 1
    said = "".join(capsys.readouterr().out.split())
    assert "差异在控制流里。" in said
    assert "".join(CAUSES["control"].split()) not in said


def test_start_never_overwrites(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my_agent.py").write_text("mine", encoding="utf-8")
    assert main(["start", "2"]) == 2
    assert Path("my_agent.py").read_text(encoding="utf-8") == "mine"
    assert "my_agent.py is already there" in capsys.readouterr().err
    assert main(["start", "2", "--file", "other.py"]) == 0
    assert Path("other.py").read_bytes() == find("2").start.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "9"], "no exercise is called '9': 0 first_tool, 1 ask_a_person"),
        (
            ["hint", "3"],
            "3 is several exercises: 3a serial, 3b together, 3c async_twin",
        ),
        (["check", "2"], "my_agent.py is not there: python -m exercises start 2"),
        (["start", "2", "--file", "no/such/folder.py"], "cannot be written"),
        (["ask", "hello"], "my_agent.py is not there"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_line(
    words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_the_list_needs_no_framework() -> None:
    code = (
        "import sys\nfrom exercises.__main__ import main\nmain([])\n"
        "heavy = ('langchain', 'langgraph', 'openai', 'pydantic')\n"
        "print([n for n in sys.modules if n.startswith(heavy)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    *lines, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    assert [line.split()[:2] for line in lines] == [
        [each.number, each.name] for each in EXERCISES
    ]


@every
def test_a_hint_and_a_solution_are_printed(
    exercise: Exercise, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hint", exercise.number]) == 0
    assert " ".join(capsys.readouterr().out.split()) == exercise.hint
    assert main(["solution", exercise.number]) == 0
    assert capsys.readouterr().out == exercise.solution.read_text(encoding="utf-8")


def test_what_waits_for_ever_fails_in_time(tmp_path: Path) -> None:
    file = tmp_path / "my_agent.py"
    file.write_text(
        "import threading\n\n\ndef run_agent(question, **more):\n"
        "    threading.Event().wait()\n"
    )
    done = command("check", "order", "--file", str(file), "--limit", "1")
    assert done.returncode == 1
    assert "has not ended after 1.0 seconds" in " ".join(done.stdout.split())


def test_an_error_names_the_line_of_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my_agent.py").write_text(
        "def run_agent(question, **more):\n    return {}[question]\n",
        encoding="utf-8",
    )
    assert main(["check", "order"]) == 1
    assert "run_agent failed: my_agent.py:2: KeyError" in capsys.readouterr().out


@pytest.mark.parametrize("strict", [False, True])
def test_a_question_with_and_without_the_strict_server(
    strict: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["start", "order"])
    capsys.readouterr()
    words = ["--strict"] if strict else []
    code = main(["ask", "北京今天天气怎么样？", *words])
    said = capsys.readouterr().out
    assert "25 °C" in said
    refused = "messages[2]: a tool message without a call"
    assert (code, refused in said) == ((1, True) if strict else (0, False))


# ----------------------------------------------------------------------- the files


def test_the_readme_lists_them() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert markdown() in text, "put in what python -m exercises list --markdown prints"


def test_each_folder_is_an_exercise() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/start.py")}
    assert folders == {each.name for each in EXERCISES}
    assert len({each.number for each in EXERCISES}) == len(EXERCISES)


def test_every_chapter_has_one() -> None:
    numbered = {each.number[0] for each in EXERCISES}
    assert numbered >= set("012345")
    for chapter in "12345":
        (page,) = (ROOT / "docs").glob(f"{chapter}-*.md")
        assert page.stem in {each.chapter for each in EXERCISES}


@pytest.mark.parametrize("wanted", ["", "x", "33", "serial "])
def test_what_is_no_exercise_is_not_found(wanted: str) -> None:
    with pytest.raises(UsageError, match="no exercise is called"):
        find(wanted)


COPIED = {
    "ask_a_person": "stage1_prebuilt/successor.py",
    "return_direct": "stage2_stategraph/agent.py",
    "serial": "stage3_pure_loop/agent.py",
    "together": "stage3_pure_loop/agent.py",
    "async_twin": "stage3_pure_loop/agent.py",
    "order": "stage3_pure_loop/agent.py",
    "window": "stage3_pure_loop/agent.py",
    "dependencies": "stage4_mini_framework/agent.py",
    "label": "stage5_text_react/agent.py",
    "plant": "stage3_pure_loop/agent.py",
}
"""From which file of the ladder an exercise starts."""

CHANGED = {
    ("together", "run_tools"),  # one after another, without map_calls
    ("plant", "run_tools"),
    ("dependencies", "run_tools"),
    ("dependencies", "run_agent"),  # it has no memory
    ("async_twin", "run_agent"),
    ("order", "run_agent"),
}
"""What it starts with that is not the stage's."""


@pytest.mark.parametrize("exercise", COPIED)
def test_an_exercise_starts_from_its_stage(exercise: str) -> None:
    stage = functions(ROOT / COPIED[exercise])
    start = functions(FOLDER / exercise / "start.py")
    for name in start.keys() & stage.keys():
        same = start[name] == stage[name]
        assert same != ((exercise, name) in CHANGED), name


def functions(path: Path) -> dict[str, str]:
    """The functions of a file, each as its text."""
    text = path.read_text(encoding="utf-8")
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_source_segment(text, node) or "" for node in found}
