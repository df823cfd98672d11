"""matrix --implementation: any agent in front of the scenarios."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import openai
import pytest
from wire import LADDER

from equivalence.cli import main
from equivalence.matrix.player import Player
from equivalence.matrix.scenarios import Scenario, read_scenarios
from equivalence.matrix.survival import OUTCOMES, Outcome, exit_code_of, survival
from equivalence.runs.implementation import Implementation, command

SCENARIOS = read_scenarios()
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def outcomes(
    implementation: Implementation, *names: str, raw: bool = False
) -> dict[str, Outcome]:
    scenarios = [BY_NAME[name] for name in names]
    with Player() as player:
        rows = survival(scenarios, [implementation], player, raw=raw)
        return {row[0].scenario.name: row[0] for row in rows}


def plain(question: str, *, settings: Any, tools: Any) -> list[Any]:
    """A loop on the bare client as anybody writes it: arguments are parsed as they
    come, an unknown tool is a KeyError."""
    client = openai.OpenAI(
        base_url=settings.gateway_url, api_key="x", max_retries=settings.retries
    )
    named = {tool.__name__: tool for tool in tools}
    offered: Any = [
        {
            "type": "function",
            "function": {"name": name, "parameters": {"type": "object"}},
        }
        for name in named
    ]
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        reply = client.chat.completions.create(
            model=settings.model, messages=messages, tools=offered or openai.omit
        )
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=False))
        if not message.tool_calls:
            return messages
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            result = str(named[call.function.name](**arguments))
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": result}
            )


def without_tools(question: str, *, base_url: str) -> str:
    """It takes no tools, no settings and no history."""
    client = openai.OpenAI(base_url=base_url, api_key="x", max_retries=0)
    reply = client.chat.completions.create(
        model="script", messages=[{"role": "user", "content": question}]
    )
    return reply.choices[0].message.content or ""


def test_a_loop_as_anybody_writes_it() -> None:
    agent = Implementation("plain", agent=plain)
    found = outcomes(
        agent, "no_tool", "parallel_calls", "unknown_tool", "result_dict", "no_tools"
    )
    assert [each.outcome for each in found.values()] == [
        *("survived", "survived", "not survived", "not survived", "survived")
    ]
    (status, *_) = found["unknown_tool"].reasons
    assert status == "status: failed (KeyError: 'search_web'), not completed"
    assert "told: the model reads \"{'城市'" in found["result_dict"].reasons[0]


@pytest.mark.slow
def test_alone_it_survives_less() -> None:
    agent = Implementation("plain", agent=plain)
    for raw, outcome in ((False, "survived"), (True, "not survived")):
        for name in ("bare_json", "no_arguments_empty_text", "arguments_as_an_object"):
            assert outcomes(agent, name, raw=raw)[name].outcome == outcome, name


def test_arguments_that_are_wrong_are_shown_as_they_came() -> None:
    """What is read of them may look like what is wanted."""
    (stage4,) = (each for each in LADDER if each.name == "stage4")
    names = "arguments_encoded_twice", "arguments_with_a_half_character"
    found = outcomes(stage4, *names, raw=True)
    assert [found[name].reasons[0] for name in names] == [
        r'steps: get_weather("{\"city\": \"北京\"}") failed,'
        ' not get_weather({"city": "北京"}) done',
        r'steps: choose({"colour": "red", "note": "half \ud83d"}) failed,'
        ' not choose({"colour": "red", "note": "half ?"}) done',
    ]


def test_what_it_cannot_be_given_is_not_applicable() -> None:
    agent = Implementation("bare", agent=without_tools)
    reasons = {
        "no_tool": (),
        "content_in_blocks": (),
        "error_400_of_vllm_without_its_flags": ("it cannot be told retries",),
        "parallel_calls": ("it takes no tools",),
        "five_questions": ("it takes no history",),
        "output_limit": ("it cannot be told max_tokens",),
        "raw_bare_json": (
            "it shows what clients make of an unrepaired reply, and nothing is right",
        ),
    }
    for name, found in outcomes(agent, *reasons).items():
        expected = "not applicable" if reasons[name] else "survived"
        assert (found.outcome, *found.reasons) == (expected, *reasons[name]), name


def test_a_command_has_tools_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(
        "import sys, openai\n"
        "reply = openai.OpenAI(max_retries=0).chat.completions.create(\n"
        "    model='m', messages=[{'role': 'user', 'content': sys.argv[1]}])\n"
        "print(reply.choices[0].message.content)\n",
        encoding="utf-8",
    )
    agent = command(f"{sys.executable} {script} {{question}}")
    found = outcomes(
        agent, "no_tool", "parallel_calls", "five_questions", "two_retries"
    )
    assert [each.outcome for each in found.values()] == [
        "survived",
        *["not applicable"] * 3,
    ]
    assert found["parallel_calls"].reasons == ["a command brings its own tools"]
    assert found["five_questions"].reasons == ["a command answers single questions"]
    assert found["two_retries"].reasons == ["it cannot be told retries"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stage1", "stage4"])
def test_the_ladder_survives_all(name: str) -> None:
    (stage,) = (each for each in LADDER if each.name == name)
    found = outcomes(stage, *BY_NAME)
    apart = {n: o.reasons for n, o in found.items() if o.outcome == "not survived"}
    assert not apart
    left = [o for o in found.values() if o.outcome == "not applicable"]
    assert len(left) == sum(scenario.raw for scenario in SCENARIOS)


def test_exit_codes() -> None:
    def code(*pairs: tuple[str, int]) -> int:
        scenario = Scenario("s", "", "", [])
        made = [Outcome(name, scenario, OUTCOMES[which]) for name, which in pairs]
        return exit_code_of(made)

    assert code(("a", 0), ("a", 2)) == 0
    assert code(("a", 0), ("a", 1)) == 1
    assert code(("a", 2), ("a", 2)) == 2
    assert code(("a", 0), ("b", 2)) == 2


AGENT = """\
def agent(question, *, base_url):
    import openai
    client = openai.OpenAI(base_url=base_url, api_key="x", max_retries=0)
    messages = [{"role": "user", "content": question}]
    reply = client.chat.completions.create(model="m", messages=messages)
    return reply.choices[0].message.content.strip()
"""


@pytest.mark.slow
def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "app.py").write_text(AGENT, encoding="utf-8")
    one = ["matrix", "--implementation", "app:agent", "--scenario"]
    assert main([*one, "no_tool", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "raw": False,
        "scenarios": [
            {
                "implementation": "app:agent",
                "kind": "happy_path",
                "scenario": "no_tool",
                "why": "The model answers at once.",
                "outcome": "survived",
                "reasons": [],
            }
        ],
    }
    assert main([*one, "content_null", "--raw"]) == 1
    text = capsys.readouterr().out
    assert "content_null: Null and no call." in text
    assert "has no attribute 'strip'" in text
    assert main([*one, "parallel_calls"]) == 2
    assert "not applicable, 1: it takes no tools" in capsys.readouterr().out
    assert main(["matrix"]) == 2
    assert "nothing to compare" in capsys.readouterr().err
