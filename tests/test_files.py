"""Files of run records: written, read, locked, refused; and `diff` of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_lines import ONE, VERDICT_KEYS, python

from equivalence.cli import main
from equivalence.errors import UsageError
from equivalence.gateway import Exchange, Gateway
from equivalence.runs.files import START, RunFile, read_runs, to_line
from equivalence.runs.record import SCHEMA, Run, Step
from offline_model import OfflineModel

pytestmark = pytest.mark.usefixtures("folder")


def a_run(question: str = "问", **more: Any) -> Run:
    step = Step(1, "get_weather", {"city": "北京"}, '{"city": "北京"}', "晴", True, 0)
    fields = {"status": "completed", "answer": "答", "steps": [step], **more}
    return Run("stage3", question, **fields)


def an_exchange(*contents: Any, **more: Any) -> Exchange:
    messages = [{"role": "user", "content": content} for content in contents]
    reply = {"choices": [{"message": {"content": "x"}}]}
    fields = {"reply": reply, "raw_reply": reply, "status": 200, "raw_status": 200}
    return Exchange({"model": "m", "messages": messages}, **{**fields, **more})


def write(path: Path, *runs: Run) -> None:
    with RunFile(path) as file:
        for run in runs:
            file.append(run)


# ------------------------------------------------------------------- written and read


def test_a_record_is_one_line_of_utf8_and_comes_back(folder: Path) -> None:
    path = folder / "new" / "runs.jsonl"
    runs = [a_run("一\n二"), a_run("half \ud83d"), a_run("a\u2028b\x85c\x1cd")]
    write(path, *runs)
    text = path.read_bytes().decode("utf-8")
    assert text.count("\n") == 3
    assert text.endswith("}\n")
    assert "北京" in text
    assert all(line.encode().startswith(START) for line in text.split("\n")[:-1])
    back = list(read_runs(path))
    assert [run.question for run in back] == ["一\n二", "half ?", "a\u2028b\x85c\x1cd"]
    assert back[0] == runs[0]


@pytest.mark.parametrize(
    "exchanges",
    [
        [an_exchange("a"), an_exchange("a", "b"), an_exchange("a", "b", "c")],
        [an_exchange("a"), an_exchange("b")],  # a history that was rewritten
        [an_exchange("a", "b"), an_exchange("a")],  # and one that was cut
        [an_exchange(1), an_exchange(True, "b")],  # equal for Python alone
        [an_exchange(1), an_exchange(1.0, "b")],
        [an_exchange("a", status=None, reply=None, raw_status=None, raw_reply=None)],
        [an_exchange("a", status=502, reply={"error": "x"}, raw_reply="<html>")],
        [an_exchange("a", raw_reply="text", repairs=["think_block"])],
    ],
    ids=str,
)
def test_exchanges_come_back_to_the_letter(
    folder: Path, exchanges: list[Exchange]
) -> None:
    write(folder / "a.jsonl", a_run(exchanges=exchanges))
    (back,) = read_runs(folder / "a.jsonl")
    assert repr(back.exchanges) == repr(exchanges)


def test_within_a_line_tools_and_messages_stand_once(folder: Path) -> None:
    exchanges = [an_exchange("first"), an_exchange("first", "second")]
    for exchange in exchanges:
        exchange.request["tools"] = ["a long list"]
    line = to_line(a_run(exchanges=exchanges)).decode()
    assert (line.count("a long list"), line.count('"first"')) == (1, 1)


@pytest.mark.parametrize(
    ("value", "back"),
    [(float("nan"), "nan"), (float("inf"), "inf"), (float("-inf"), "-inf")],
)
def test_a_number_that_json_lacks_becomes_a_text(value: float, back: str) -> None:
    line = to_line(a_run(exchanges=[an_exchange("a", raw_reply={"x": [value]})]))
    assert json.loads(line)["exchanges"][0]["raw_reply"] == {"x": [back]}


def test_what_tells_of_the_servers_machine_is_not_kept() -> None:
    reply = {
        "choices": [],
        "model": "/home/someone/models/small.gguf",
        "timings": {"cache_n": 5},
        "system_fingerprint": "b0",
    }
    line = to_line(a_run(exchanges=[an_exchange("a", reply=reply, raw_reply=reply)]))
    assert b'"small.gguf"' in line
    for private in (b"/home/", b"timings", b"fingerprint"):
        assert private not in line


def test_a_record_holds_no_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-very-secret")
    with Gateway(OfflineModel()) as server:
        place = ("--base-url", server.url, "--model", "m", "--out", "runs.jsonl")
        work = ("--implementation", "variants.faults:one_key_more")
        (folder / "pyproject.toml").write_text("[tool.equivalence]\n")
        assert main(["run", "17 * 23", *work, "--tools", "tools:TOOLS", *place]) == 0
    data = (folder / "runs.jsonl").read_bytes()
    assert b"sk-very-secret" not in data
    assert b"uthorization" not in data


# ----------------------------------------------------------- what a crash leaves behind


@pytest.mark.parametrize("cut", [1, 2, 12, 20, 100, -2, -9])
def test_an_unfinished_last_line_is_passed_over_and_then_removed(
    folder: Path, cut: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "runs.jsonl"
    write(path, a_run("one"), a_run("two"))
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(first + b"\n" + second[:cut])
    left = path.read_bytes()
    assert [run.question for run in read_runs(path)] == ["one"]
    assert "line 2: unfinished, passed over" in capsys.readouterr().err
    assert path.read_bytes() == left, "readers change nothing"
    write(path, a_run("next"))
    assert [run.question for run in read_runs(path)] == ["one", "next"]


def test_a_last_line_that_only_lacks_its_end_is_kept(folder: Path) -> None:
    path = folder / "runs.jsonl"
    write(path, a_run("one"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert [run.question for run in read_runs(path)] == ["one"]
    write(path, a_run("next"))
    assert [run.question for run in read_runs(path)] == ["one", "next"]


# -------------------------------------------------------------- what is no file of ours

RECORD = to_line(a_run())
GOOD = json.loads(RECORD)


def changed(**fields: Any) -> bytes:
    return json.dumps({**GOOD, **fields}, ensure_ascii=False).encode() + b"\n"


STRANGE = {
    "prose without a final newline": (b"my notes\nlast line", "line 1: this is not"),
    "prose": (b"my notes\n", "line 1: this is not JSON"),
    "another JSON": (b'{"a": 1}\n', 'its "schema" must be "agent-run/2"'),
    "a list": (b"[]\n", 'its "schema" must be'),
    "an older schema": (changed(schema="agent-run/1"), "this is 'agent-run/1'"),
    "a newer schema": (changed(schema="agent-run/9"), "this is 'agent-run/9'"),
    "GBK": ("问题：北京\n".encode("gbk"), "line 1: not UTF-8"),
    "GBK inside": (
        RECORD + RECORD.replace("问".encode(), "问".encode("gbk")),
        "2: not",
    ),
    "UTF-16": (RECORD.decode().encode("utf-16"), "line 1: not UTF-8"),
    "a number for a text": (changed(question=5), "at `$.question`"),
    "a missing field": (
        json.dumps({"schema": SCHEMA, "question": "q"}).encode() + b"\n",
        "missing required field `implementation`",
    ),
    "a step's field": (changed(steps=[{"turn": "1"}]), "at `$.steps[0].turn`"),
    "a status nobody knows": (changed(status="fine"), "'fine' is no status"),
    "an exchange's field": (
        changed(exchanges=[{"request": []}]),
        "at `$.exchanges[0].request`",
    ),
    "an addition to nothing": (
        changed(exchanges=[{"request": {"added": []}}]),
        "`$.exchanges[0].request`",
    ),
    "a line cut off in the middle": (RECORD[:40] + b"\n" + RECORD, "line 1: "),
    "deep": (changed(answer="x").replace(b'"x"', b"[" * 5000), "line 1: "),
    "a broken end that is not ours": (RECORD + b"my notes", "line 2: this is not"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_file_is_one_line_in_every_command_and_stays_as_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    data, words = STRANGE[kind]
    path = folder / "a.jsonl"
    path.write_bytes(data)
    one = ["hi", "--implementation", "own:agent", "--out", "a.jsonl"]
    (folder / "own.py").write_text("def agent(*_, **__): return []")
    (folder / "s.yaml").write_text("- done")
    (folder / "pyproject.toml").write_text(
        '[tool.equivalence]\nupstream="script:s.yaml"'
    )
    for command in (
        ["diff", "a.jsonl", "a.jsonl"],
        ["drift", "--recorded", "a.jsonl"],
        ["report", "a.jsonl", "-o", "page.html"],
        ["replay", "a.jsonl"],
        ["run", *one],
        ["record", *one],
        ["drift", *one],
    ):
        assert main(command) == 2, command
        out, err = capsys.readouterr()
        assert out == "", command
        assert words in err, command
        assert err.count("\n") == 1, command
        assert path.read_bytes() == data, command


def test_a_mark_at_the_beginning_is_passed_over(folder: Path) -> None:
    path = folder / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + RECORD)
    assert [run.question for run in read_runs(path)] == ["问"]
    write(path, a_run("next"))
    assert [run.question for run in read_runs(path)] == ["问", "next"]
    with RunFile(path) as file:
        assert file.get(a_run().asked) == a_run()


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_only_a_regular_file_is_written(folder: Path, kind: str) -> None:
    path = folder / "odd"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = Path(os.devnull)
    with pytest.raises(UsageError, match="not a regular file"):
        RunFile(path)


# ----------------------------------------------------------------------------- the lock


def test_the_second_writer_ends_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "a.jsonl", a_run())
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib\n"
            "from equivalence.runs.files import RunFile\n"
            "with RunFile(pathlib.Path('a.jsonl')): print('held', flush=True)"
            "; sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    assert holder.stdout
    assert holder.stdin
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="written by another process"):
            RunFile(folder / "a.jsonl")
        assert [run.question for run in read_runs(folder / "a.jsonl")] == ["问"]
    finally:
        holder.kill()  # the lock goes with the process
        holder.wait()
    write(folder / "a.jsonl", a_run("next"))
    assert len(list(read_runs(folder / "a.jsonl"))) == 2


# -------------------------------------------------------- python -m equivalence diff


def flat(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_two_recordings_of_one_agent_are_equivalent(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        assert main(["run", "北京天气", "17 * 23", *ONE, "--out", name]) == 0
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 0
    assert flat(capsys) == "2 comparisons: 2 equivalent"
    assert main(["diff", "a.jsonl", "b.jsonl", "--all"]) == 0
    assert "stage3 in a.jsonl vs stage3 in b.jsonl: equivalent" in flat(capsys)
    assert main(["diff", "a.jsonl", "b.jsonl", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [v["verdict"] for v in document["verdicts"]] == ["equivalent"] * 2
    assert set(document["verdicts"][0]) >= VERDICT_KEYS


def test_two_recordings_that_differ(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, function in (("a.jsonl", "same"), ("b.jsonl", "shouts")):
        implementation = f"own:{function}"
        main(["run", "hello", "--implementation", implementation, "--out", name])
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 1
    assert "cause: request, model call 1, $.messages[1].content" in flat(capsys)


def test_what_is_in_one_recording_only_leaves_a_doubt(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", "1 + 1", "2 + 2", *ONE, "--out", "a.jsonl"])
    main(["run", "1 + 1", *ONE, "--out", "b.jsonl"])
    main(["run", "3 + 3", *ONE, "--out", "c.jsonl"])
    capsys.readouterr()
    assert main(["diff", "a.jsonl", "b.jsonl"]) == 3
    assert "on one side only: 2 + 2" in capsys.readouterr().err
    assert main(["diff", "a.jsonl", "c.jsonl"]) == 2
    assert "no question in common" in capsys.readouterr().err


def test_a_side_may_have_several_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shards are joined by naming them; runs are paired by question, history and
    repeat, the later of two counts, and verdicts say where their runs stand."""
    runs = [a_run(q, history=h) for q, h in (("q", []), ("q", ["p"]), ("p", []))]
    write(folder / "a1.jsonl", a_run("q", answer="an earlier one"), runs[0])
    write(folder / "a2.jsonl", runs[1], runs[2])
    write(folder / "b.jsonl", *reversed(runs), a_run("q", repeat=1))
    command = ["diff", "a1.jsonl", "a2.jsonl", "--against", "b.jsonl", "--json"]
    assert main(command) == 3  # one run is on one side only
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert [(v["question"], v["history"]) for v in verdicts] == [
        ("q", []),
        ("q", ["p"]),
        ("p", []),
    ]
    assert {v["verdict"] for v in verdicts} == {"equivalent"}
    assert verdicts[0]["left_run"] == {"file": "a1.jsonl", "line": 2}
    assert verdicts[0]["right_run"] == {"file": "b.jsonl", "line": 3}


def test_sides_without_a_common_implementation_are_paired_each_with_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "a.jsonl", Run("old", "q"), Run("old", "only here"))
    write(folder / "b.jsonl", Run("new", "q"))
    assert main(["diff", "a.jsonl", "b.jsonl", "--json"]) == 3
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert verdict["left"] == "old in a.jsonl"
    assert verdict["right"] == "new in b.jsonl"


LOADED = """
import sys
from equivalence.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
heavy = ("langchain", "langchain_core", "langgraph", "langchain_openai", "openai",
         "pydantic", "pydantic_settings", "rich", "starlette", "uvicorn", "aiohttp")
print(code, *[name for name in heavy if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["--help"], ""),
        (["run", "--help"], ""),
        (["diff", "--help"], ""),
        (["list"], ""),
        (["diff", "a.jsonl", "a.jsonl"], ""),
        (["diff", "a.jsonl", "b.jsonl"], " rich"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_only_what_a_command_needs_is_imported(
    folder: Path, arguments: list[str], loaded: str
) -> None:
    write(folder / "a.jsonl", a_run())
    write(folder / "b.jsonl", a_run(answer="other"))
    code = 1 if loaded else 0
    done = python("-c", LOADED, *arguments)
    assert done.stderr.splitlines()[-1] == f"{code}{loaded}"


def test_help_loads_nothing_but_the_standard_library() -> None:
    """And of that neither what reads records nor what serves."""
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from equivalence.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "own = sys.stdlib_module_names | {'equivalence'}\n"
        "slow = {'asyncio', 'dataclasses', 'inspect', 'shutil', 'subprocess'}\n"
        "print(sorted((new - own) | (new & slow)), file=sys.stderr)\n"
    )
    assert python("-c", code).stderr.splitlines()[-1] == "[]"


# ------------------------------------------------------------------- the run in memory


def test_attempts_that_the_client_repeated_are_no_model_calls() -> None:
    assert a_run().model_calls == []
    exchanges = [
        an_exchange("a", attempt=n, began=10.0 * at, status=400 + at)
        for at, n in enumerate((0, 1, 2, 0))
    ]
    run = a_run(exchanges=exchanges)
    assert [exchange.status for exchange in run.model_calls] == [402, 403]


def test_a_repetition_is_found_beside_other_calls() -> None:
    exchanges = [
        an_exchange("a", began=0, status=503),
        an_exchange("b", began=1),
        an_exchange("a", attempt=1, began=2),
    ]
    assert [e.began for e in a_run(exchanges=exchanges).model_calls] == [1, 2]
