"""Comparing what can never be equal: by steps, with paths ignored, with known
differences accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recordings import call

from equivalence.cli import main
from equivalence.errors import UsageError
from equivalence.gateway import Exchange
from equivalence.judge.accepted import read_accepted
from equivalence.judge.compare import CAUSES, Judge, Rules, explain, judge
from equivalence.runs.record import Run, Step

STEPS = Rules(by="steps")


def a_run(
    name: str = "x",
    *,
    arguments: str = '{"city": "Rome"}',
    result: str = "sunny",
    answer: str = "It is sunny.",
    status: str = "completed",
    steps: int = 1,
    error: str | None = None,
    **request: Any,
) -> Run:
    made = [
        Step(n, "look", json.loads(arguments), arguments, result, True, n - 1)
        for n in range(1, steps + 1)
    ]
    asked = {"content": None, "tool_calls": [call("look", arguments, "a")]}
    exchanges = []
    for number in range(steps + 1):
        message = asked if number < steps else {"content": answer}
        reply = {"choices": [{"message": message, "finish_reason": "stop"}]}
        messages = [{"role": "user", "content": "q", "name": name}]
        body = {"model": "m", "messages": messages, **request}
        exchanges.append(
            Exchange(body, reply, 200, raw_reply=reply, raw_status=200, began=number)
        )
    return Run(
        name,
        "q",
        status=status,
        answer=answer,
        steps=made,
        exchanges=exchanges,
        error=error,
    )


# ---------------------------------------------------------------------------- by steps


def test_by_steps_requests_do_not_count() -> None:
    left, right = a_run("a"), a_run("b", temperature=0.5)
    assert judge(left, right).verdict == "different"
    assert judge(left, right, STEPS).verdict == "equivalent"


@pytest.mark.parametrize(
    ("change", "cause", "path"),
    [
        ({"arguments": '{"city": "Oslo"}'}, "unknown", "steps[0].arguments.city"),
        ({"result": "rain"}, "tool", "steps[0].result"),
        ({"answer": "It rains."}, "unknown", "answer"),
        ({"steps": 2}, "control", "status"),
        ({"status": "step_limit", "answer": ""}, "control", "status"),
    ],
)
def test_by_steps_a_difference_is_never_blamed_on_the_model(
    change: dict[str, Any], cause: str, path: str
) -> None:
    verdict = judge(a_run("a"), a_run("b", **change), STEPS)
    place = verdict.divergence
    assert place is not None
    assert (verdict.verdict, place.cause, place.path) == ("different", cause, path)
    assert place.requests == "model call 1, $.messages[0].name"
    assert verdict.to_json()["requests"] == place.requests
    assert explain(verdict) == f"{CAUSES[cause]} They first differ in {place.requests}."


# ------------------------------------------------------------------------------ ignore


@pytest.mark.parametrize(
    ("paths", "verdict"),
    [
        ([], "different"),
        (["$.temperature"], "different"),
        (["$.temperature", "$.messages[0].name"], "equivalent"),
        (["$.temperature", "$.messages[*].name"], "equivalent"),
        (["$.temperature", "$.messages"], "equivalent"),  # and all below it
        (["$.temp", "$.messages[*].name"], "different"),  # no half of a name
        (["$.temperature", "$.messages[1].name"], "different"),
    ],
)
def test_a_path_that_is_ignored(paths: list[str], verdict: str) -> None:
    left, right = a_run("a"), a_run("b", temperature=0.5)
    assert judge(left, right, Rules(ignore=tuple(paths))).verdict == verdict


def test_a_result_that_is_ignored() -> None:
    left, right = a_run(), a_run(result="rain")
    rules = Rules(by="steps", ignore=("steps[*].result",))
    assert judge(left, right, rules).verdict == "equivalent"


@pytest.mark.parametrize("path", ["temperature", "", "$", "messages[0]"])
def test_what_is_no_path_is_one_line(path: str) -> None:
    with pytest.raises(UsageError, match="is no path: write what a verdict prints"):
        Rules(ignore=(path,))


# ---------------------------------------------------------------------------- accepted


def accept(folder: Path, text: str) -> Any:
    path = folder / "accepted.toml"
    path.write_text(text, "utf-8")
    return read_accepted(path)


ENTRY = '[[accepted]]\nreason = "known"\n'


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ('path = "$.messages[0].name"', True),
        ('path = "$.messages*"', True),
        ('path = "$.temperature"', False),
        ('cause = "request"', True),
        ('left = "a"\nright = "b"\nquestion = "*"', True),
        ('left = "b"', False),
        ('verdict = "inconclusive"', False),
    ],
)
def test_an_accepted_difference_is_accepted_and_never_equal(
    tmp_path: Path, fields: str, fits: bool
) -> None:
    known = accept(tmp_path, ENTRY + fields)
    verdict = Judge(accept=known)(a_run("a"), a_run("b"))
    assert verdict.verdict == ("accepted" if fits else "different")
    assert verdict.reason == ("known" if fits else "")
    assert known.absent == ([] if fits else ["known"])
    if fits:
        assert verdict.to_json()["reason"] == "known"
        assert explain(verdict) == "Accepted: known"


def test_both_failing_alike_can_be_accepted(tmp_path: Path) -> None:
    known = accept(
        tmp_path, ENTRY + 'verdict = "inconclusive"\nerror = "*no such model*"'
    )
    ends = {"status": "failed", "answer": "", "name": "x"}
    alike = [a_run(error="ValueError: no such model 'a'", **ends) for _ in range(2)]
    other = a_run(error="ValueError: no such model 'b'", **ends)
    assert Judge(accept=known)(*alike).verdict == "accepted"
    assert Judge(accept=known)(alike[0], other).verdict == "inconclusive"


def test_what_is_equal_stays_equal(tmp_path: Path) -> None:
    known = accept(tmp_path, ENTRY + 'left = "*"')
    assert Judge(accept=known)(a_run(), a_run()).verdict == "equivalent"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no list of"),
        ("[[accepted]]\ncause = 'x'", "accepted difference 1: it needs a reason"),
        (ENTRY, "it says nothing of the difference"),
        (ENTRY + "couse = 'x'", "no field is named 'couse'"),
        (ENTRY + "cause = 5", "cause must be a text"),
        ("[[accepted", "is not TOML"),
    ],
)
def test_a_file_that_is_none_of_accepted_differences(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words.replace("[", r"\[")):
        accept(tmp_path, text)


# ------------------------------------------------------------------------ command line


def test_all_of_it_at_the_command_line(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--implementation", "own:same", "--implementation", "own:shouts"]
    command = ["run", "hello", *both, "--markdown", "comment.md"]
    assert main(command) == 1
    comment = (own / "comment.md").read_text("utf-8")
    assert comment.startswith("**1 comparison: 1 different**\n")
    assert "cause `request`, model call 1" in comment
    assert "`$.messages[1].content`" in comment
    capsys.readouterr()
    assert main([*command, "--ignore", "$.messages[*].content"]) in (0, 1)
    assert "Ignored as asked: $.messages[*].content" in capsys.readouterr().out
    (own / "known.toml").write_text(ENTRY + 'path = "$.messages*"', "utf-8")
    assert main([*command, "--accept", "known.toml"]) == 0
    shown = capsys.readouterr().out
    assert "own:same vs own:shouts: accepted" in shown
    assert "Accepted: known" in shown
    assert "1 comparison: 1 accepted" in shown
    assert main([*command, "--compare", "steps"]) in (0, 1)
    assert "Their requests are not compared" in " ".join(
        capsys.readouterr().out.split()
    )


def test_markdown_in_what_a_model_said_stays_text(own: Path) -> None:
    both = ["--implementation", "own:same", "--implementation", "own:shouts"]
    main(["run", "| <b>*x*</b> `y`\n# z", *both, "--markdown", "comment.md"])
    comment = (own / "comment.md").read_text("utf-8")
    assert "<b>" not in comment.replace("\\<b\\>", "")
    assert "\n# z" not in comment
