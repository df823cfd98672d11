"""python -m equivalence diff, and the run records it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_lines import ONE, RUN_KEYS, VERDICT_KEYS, python

from equivalence.cli import main
from equivalence.gateway import Gateway, OfflineModel
from equivalence.runs import record
from equivalence.runs.record import Run, Step

pytestmark = pytest.mark.usefixtures("folder")

# -------------------------------------------------------- python -m equivalence diff


def test_two_recordings_of_one_agent_are_equivalent(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        assert main(["run", "北京天气", "17 * 23", *ONE, "--out", name]) == 0
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 0
    assert "stage3 in a.jsonl vs stage3 in b.jsonl: equivalent" in _flat(capsys)
    assert main(["diff", "a.jsonl", "b.jsonl", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [v["verdict"] for v in document["verdicts"]] == ["equivalent"] * 2
    assert set(document["verdicts"][0]) >= VERDICT_KEYS


def _flat(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_two_recordings_that_differ(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, function in (("a.jsonl", "same"), ("b.jsonl", "shouts")):
        implementation = f"own:{function}"
        main(["run", "hello", "--implementation", implementation, "--out", name])
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 1
    assert "cause: request, model call 1, $.messages[1].content" in _flat(capsys)


def test_what_is_in_one_recording_only_leaves_a_doubt(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", "1 + 1", "2 + 2", *ONE, "--out", "a.jsonl"])
    main(["run", "1 + 1", *ONE, "--out", "b.jsonl"])
    main(["run", "3 + 3", *ONE, "--out", "c.jsonl"])
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 3
    assert "in one file only: 2 + 2" in capsys.readouterr().err
    assert main(["diff", "a.jsonl", "c.jsonl"]) == 2
    assert "no question in common" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n{}\n", "record 1"),
        ('{"schema": "agent-run/2"}\n', "agent-run/1"),
        ('{"schema": "agent-run/1", "surprise": 1}\n', "surprise"),
        ("[]\n", "no run record"),
        ("", "no question in common"),
    ],
)
def test_a_file_that_is_no_recording(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (folder / "a.jsonl").write_text(text, encoding="utf-8")
    assert main(["diff", "a.jsonl", "a.jsonl"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


LOADED = """
import sys
from equivalence.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
heavy = ("langchain", "langchain_core", "langgraph", "langchain_openai", "openai",
         "pydantic", "pydantic_settings", "rich")
print(code, *[name for name in heavy if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["--help"], ""),
        (["run", "--help"], ""),
        (["diff", "--help"], ""),
        (["list"], ""),
        (["diff", "a.jsonl", "a.jsonl"], " rich"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_only_what_a_command_needs_is_imported(
    folder: Path, arguments: list[str], loaded: str
) -> None:
    run = Run("stage3", "hi", status="completed", answer="x")
    record.append(folder / "a.jsonl", run)
    done = python("-c", LOADED, *arguments)
    assert done.stderr.splitlines()[-1] == f"0{loaded}"


def a_run(question: str = "问", **more: Any) -> Run:
    step = Step(1, "get_weather", {"city": "北京"}, '{"city": "北京"}', "晴", True, 0)
    return Run("stage3", question, steps=[step], answer="答", **more)


# ------------------------------------------------------------------- the run record


def test_a_record_is_one_line_of_utf8_and_comes_back(folder: Path) -> None:
    path = folder / "new" / "runs.jsonl"
    runs = [a_run("一\n二"), a_run("half \ud83d"), a_run("a\u2028b\x85c\x1cd")]
    for run in runs:
        record.append(path, run)
    text = path.read_bytes().decode("utf-8")
    assert text.count("\n") == 3
    assert text.endswith("}\n")
    assert "北京" in text
    assert "\\u" not in text.replace("\\u001c", "").replace("\\u0085", "")
    back = record.read(path)
    assert [run.question for run in back] == ["一\n二", "half ?", "a\u2028b\x85c\x1cd"]
    assert back[0] == runs[0]
    first = json.loads(text.split("\n")[0])
    assert set(first) >= RUN_KEYS
    assert first["schema"] == "agent-run/1"


@pytest.mark.parametrize("cut", [1, 2, 3, 20, 100, -2, -9, -10, -11])
def test_a_last_line_that_was_cut_off_is_passed_over(folder: Path, cut: int) -> None:
    path = folder / "runs.jsonl"
    for _ in range(2):
        record.append(path, a_run())
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes(whole[:half] + whole[half:][:cut])
    assert record.read(path) == [a_run()]
    record.append(path, a_run("next"))
    assert record.read(path) == [a_run(), a_run("next")]


def test_a_last_line_that_only_lacks_its_end_is_kept(folder: Path) -> None:
    path = folder / "runs.jsonl"
    record.append(path, a_run())
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert record.read(path) == [a_run()]
    record.append(path, a_run("next"))
    assert record.read(path) == [a_run(), a_run("next")]


def test_a_line_cut_off_in_the_middle_is_named(folder: Path) -> None:
    path = folder / "runs.jsonl"
    record.append(path, a_run())
    path.write_bytes(b'{"schema"\n' + path.read_bytes())
    with pytest.raises(ValueError, match=r"runs\.jsonl, record 1: "):
        record.read(path)


def test_out_appends(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for question in ("1 + 1", "2 + 2"):
        assert main(["run", question, *ONE, "--out", "deep/er/runs.jsonl"]) == 0
    runs = record.read(folder / "deep" / "er" / "runs.jsonl")
    assert [run.question for run in runs] == ["1 + 1", "2 + 2"]


def test_a_record_holds_no_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-very-secret")
    with Gateway(OfflineModel()) as server:
        place = ("--base-url", server.url(), "--model", "m")
        assert main(["run", "17 * 23", *ONE, *place, "--out", "runs.jsonl"]) == 0
    assert b"sk-very-secret" not in (folder / "runs.jsonl").read_bytes()


def test_run_without_exchanges_has_no_model_calls() -> None:
    assert a_run().model_calls == []
    exchanges = [{"attempt": n, "status": n} for n in (0, 1, 2, 0)]
    assert [e["status"] for e in a_run(exchanges=exchanges).model_calls] == [2, 0]
