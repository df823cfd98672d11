"""python -m equivalence step: the lines are those that were at work."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from report_records import HOSTILE, ROOT, record, write
from wire import LADDER

from equivalence.cli import main
from equivalence.runs.implementation import Implementation
from equivalence.runs.lines import Event, Moment, Trace
from equivalence.show.page.step import timeline

QUESTION = "北京和上海今天哪个更暖和？"
STAGE3 = (ROOT / "stage3_pure_loop" / "agent.py").read_text(encoding="utf-8")


def step(out: Path, *words: str) -> Any:
    """The data of the page."""
    assert main(["step", *words, "-o", str(out)]) == 0
    html = out.read_text(encoding="utf-8")
    found = re.search('<script type="application/json" id="data">(.*?)</script>', html)
    assert found
    return json.loads(found[1])


def lit(trace: Any) -> list[str]:
    """The lines at work, as they stand in the source."""
    return [trace["code"][line - 1].strip() for line, _, _ in trace["moments"]]


def test_the_lines_are_those_that_were_at_work(tmp_path: Path) -> None:
    data = step(tmp_path / "p.html", QUESTION, "--implementation", "stage3")
    (trace,) = data["traces"]
    assert "\n".join(trace["code"]) + "\n" == STAGE3
    lines = lit(trace)
    assert lines[0] == "settings = settings or load_settings()"
    assert lines[-1] == "return messages"
    assert lines.count("messages.append(reply)") == 2  # two turns
    assert lines.count("break") == 1
    assert {name for _, name, _ in trace["moments"]} >= {
        "run_agent",
        "call_model",
        "wants_tools",
        "run_tools",
        "run",
    }


def test_a_reply_comes_at_the_line_that_waits_for_it(tmp_path: Path) -> None:
    data = step(tmp_path / "p.html", QUESTION, "--implementation", "stage3")
    (trace,) = data["traces"]
    first = next(line for line, _, event in trace["moments"] if event == 1)
    assert trace["code"][first - 1].strip().startswith("return model.invoke(")
    events = [event["what"] for event in trace["events"]]
    assert events == [
        "the question",
        "model call 1",
        "get_weather",
        "get_weather",
        "model call 2",
    ]
    roles = [
        [trace["messages"][each]["role"] for each in event["messages"]]
        for event in trace["events"]
    ]
    assert roles[0] == ["user"]
    assert roles[1] == ["system", "user", "assistant"]
    assert roles[4] == [*roles[1], "tool", "tool", "assistant"]
    last = trace["messages"][trace["events"][-1]["messages"][-1]]
    assert last["lang"] == "zh"
    assert last["text"] == trace["end"]


def test_with_a_blank_line_inserted_the_light_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    at = STAGE3.index("def wants_tools")
    for name, code in (
        ("same_stage3", STAGE3),
        ("moved_stage3", f"{STAGE3[:at]}\n{STAGE3[at:]}"),
    ):
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    data = step(
        tmp_path / "p.html",
        QUESTION,
        "--implementation",
        "same_stage3:run_agent",
        "--implementation",
        "moved_stage3:run_agent",
    )
    same, moved = data["traces"]
    assert lit(same) == lit(moved)
    border = STAGE3[:at].count("\n")
    assert [m[0] for m in moved["moments"]] == [
        line + (line > border) for line, _, _ in same["moments"]
    ]
    assert max(line for line, _, _ in same["moments"]) > border


@pytest.mark.parametrize("implementation", LADDER, ids=[each.name for each in LADDER])
def test_every_stage_can_be_stepped_through(
    tmp_path: Path, implementation: Implementation
) -> None:
    words = [QUESTION, "--implementation", implementation.name]
    (trace,) = step(tmp_path / "p.html", *words)["traces"]
    assert lit(trace)[-1] == "return messages"
    assert "28 °C" in trace["end"]
    assert sys.gettrace() is None or "cov" in repr(sys.gettrace())


def test_two_wait_for_each_other_at_every_event() -> None:
    def trace(*events: int) -> Trace:
        moments = [Moment(line, "f", event) for line, event in enumerate(events, 1)]
        known = [Event(str(event), []) for event in range(max(events) + 1)]
        return Trace(Implementation("x", "x:y"), Path(), "", known, moments)

    found = timeline([trace(0, 0, 0, 1, 2), trace(0, 1, 1)])
    assert found == [[0, 0], [1, 0], [2, 0], [3, 1], [3, 2], [4, 2]]


def test_a_recording_is_stepped_through_offline(tmp_path: Path) -> None:
    cassette = ROOT / "cassettes" / "qwen2.5-coder-1.5b-temperature-0.jsonl"
    words = ["--recorded", str(cassette)]
    words += ["--implementation", "stage3", "--implementation", "stage4"]
    data = step(tmp_path / "p.html", *words)
    recorded = json.loads(cassette.read_text(encoding="utf-8").partition("\n")[0])
    for trace in data["traces"]:
        calls = [e for e in trace["events"] if e["what"].startswith("model call")]
        assert len(calls) == len(recorded["exchanges"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--implementation", "math:floor"], "has no Python source"),
        (["--implementation", "no_such:agent"], "no module is named"),
        (["--recorded", "RUNS", "--implementation", "stage5"], "nothing is recorded"),
        (["--recorded", "RUNS", "another question"], "no run of such a first question"),
        (
            ["--recorded", "RUNS", "-o", "RUNS", "--implementation", "stage3"],
            "is one of the files to read",
        ),
    ],
)
def test_what_cannot_be_stepped_through_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    runs = str(write(tmp_path / "runs.jsonl", record("stage3")))
    words = [runs if word == "RUNS" else word for word in words]
    if "-o" not in words:
        words += ["-o", str(tmp_path / "page.html")]
    assert main(["step", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert told in said
    assert not (tmp_path / "page.html").exists()


def test_hostile_content_stays_text(tmp_path: Path) -> None:
    out = tmp_path / "p.html"
    data = step(out, HOSTILE, "--implementation", "stage3")
    html = out.read_text(encoding="utf-8")
    assert html.count("<script") == html.count("</script>") == 2
    assert "<img" not in html
    assert "\u202e" not in html
    assert "<img" in data["traces"][0]["messages"][0]["text"]
