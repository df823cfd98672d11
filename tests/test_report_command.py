"""python -m equivalence report: files in, one page out."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_records import ROOT, one_key_more, record, write

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
        ("{}\n", "line 1: no run record"),
        ("\nnot json\n", "line 2: this is not JSON"),
        (json.dumps({**record("a"), "exchanges": [1]}), "$.exchanges[0]"),
        (json.dumps({**record("a"), "question": 3}), "$.question"),
        (json.dumps({**record("a"), "steps": [{"turn": 1}]}), "$.steps[0]"),
        (ungrounded([7]), "$.steps[0].ungrounded[0]"),
        ("[" * 100_000 + "]" * 100_000, "line 1: this is not JSON"),
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


def test_ungrounded_numbers_as_another_program_wrote_them_are_shown(
    tmp_path: Path,
) -> None:
    runs, out = tmp_path / "runs.jsonl", tmp_path / "page.html"
    runs.write_text(ungrounded([{"number": 7, "argument": "city"}]), encoding="utf-8")
    assert main(["report", str(runs), "-o", str(out)]) == 0
    assert "city: {&#34;number&#34;: 7," in out.read_text(encoding="utf-8")


def link(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere.html"))


def device(path: Path) -> None:
    """A null device of its own: a broken program must not replace the machine's."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, link, device])
def test_only_a_regular_file_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None]
) -> None:
    runs, out = write(tmp_path / "runs.jsonl", record("a")), tmp_path / "page.html"
    make(out)
    kind = stat.S_IFMT(out.lstat().st_mode)
    assert main(["report", str(runs), "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert said == f"error: {out} is not a regular file, so it is not replaced\n"
    assert stat.S_IFMT(out.lstat().st_mode) == kind
    assert {path.name for path in tmp_path.iterdir()} == {"runs.jsonl", "page.html"}


@pytest.mark.slow
def test_many_runs_make_a_small_page_in_little_memory(tmp_path: Path) -> None:
    """2,000 pairs of which 20 differ: under 5 MB, and what is held grows by less than
    2 KB a pair (a run alone is more in memory)."""
    peaks = {}
    for pairs in (200, 2000):
        runs, out = tmp_path / f"{pairs}.jsonl", tmp_path / f"{pairs}.html"
        with runs.open("w", encoding="utf-8") as file:
            for number in range(pairs):
                left, right = (record(name, f"question {number}") for name in "ab")
                if number % (pairs // 20) == 3:
                    one_key_more(right)
                for run in (left, right):
                    file.write(json.dumps(run, ensure_ascii=False) + "\n")
        tracemalloc.start()
        assert main(["report", str(runs), "-o", str(out)]) == 0
        peaks[pairs] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert out.stat().st_size < 5_000_000
    assert "20 of 2000 comparisons differ" in out.read_text(encoding="utf-8")
    assert peaks[2000] - peaks[200] < 1800 * 2000, peaks


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
