"""python -m equivalence report: files in, one page out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report_records import ROOT, record, write

from equivalence.cli import main


def ungrounded(numbers: Any) -> str:
    """A record whose step holds these as its ungrounded numbers."""
    run = record("a")
    run["steps"][0]["ungrounded"] = numbers
    return json.dumps(run)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        ("", "holds no run"),
        ("{}\n", "no run record"),
        ("not json\n\n{}\n", "record 1"),
        (json.dumps({**record("a"), "exchanges": [1]}), "exchange"),
        (json.dumps({**record("a"), "exchanges": [{"request": None}]}), "exchange"),
        (json.dumps({**record("a"), "question": 3}), "question"),
        (json.dumps({**record("a"), "repeat": "x"}), "repeat"),
        (json.dumps({**record("a"), "history": [1]}), "history"),
        (json.dumps({**record("a"), "error": {}}), "error"),
        (json.dumps({**record("a"), "steps": [{"turn": 1}]}), "no run record"),
        (ungrounded("300"), "ungrounded number"),
        (ungrounded([7]), "ungrounded number"),
        (ungrounded([{"number": "300", "argument": "x"}]), "ungrounded number"),
        (json.dumps({**record("a"), "unknown": 1}), "no run record"),
        ("[" * 100_000 + "]" * 100_000, "too deeply"),
    ],
)
def test_bad_input_is_one_line_and_leaves_the_old_page(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    words: str,
) -> None:
    runs, out = tmp_path / "runs.jsonl", tmp_path / "report.html"
    if content is not None:
        runs.write_text(content, encoding="utf-8")
    out.write_text("the old page", encoding="utf-8")
    assert main(["report", str(runs), "-o", str(out)]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert words in said.err
    assert out.read_text(encoding="utf-8") == "the old page"
    assert {path.name for path in tmp_path.iterdir()} <= {"runs.jsonl", "report.html"}


def test_the_records_are_never_written_over(tmp_path: Path) -> None:
    runs = write(tmp_path / "runs.jsonl", record("a"))
    before = runs.read_bytes()
    assert main(["report", str(runs), "-o", str(runs)]) == 2
    assert runs.read_bytes() == before


ORDER = [
    "values",
    "tool_lists",
    "json_lines",
    "reading",
    "partings",
    "calls",
    "changes",
    "source",
    "cells",
    "question",
    "page",
    "draw",
    "__init__",
]


def test_each_file_is_short_and_knows_only_earlier_ones() -> None:
    folder = ROOT / "equivalence" / "report"
    assert {path.stem for path in folder.glob("*.py")} == set(ORDER)
    for number, name in enumerate(ORDER):
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        used = set(re.findall(r"from equivalence\.report\.(\w+) import", text))
        assert used <= set(ORDER[:number]), name
    for path in [*folder.glob("*.py"), *(folder / "web").iterdir()]:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 300, path


def test_report_imports_no_framework(tmp_path: Path) -> None:
    runs = write(tmp_path / "runs.jsonl", record("stage3"), record("stage4"))
    code = (
        "import sys; from equivalence.cli import main\n"
        f"main(['report', {str(runs)!r}, '-o', {str(tmp_path / 'page.html')!r}])\n"
        "found = {name.partition('.')[0] for name in sys.modules}\n"
        "heavy = {'langchain', 'langchain_core', 'langchain_openai', 'langgraph',"
        " 'openai', 'pydantic', 'rich'}\n"
        "assert not found & heavy, found & heavy"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
