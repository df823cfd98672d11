"""The exercises: their command line, and a checker that cannot be fooled.

Each solution passes. Where an exercise starts, and each solution that is known to be
wrong, fails for the reason named here; a wrong one is a right one with a part replaced.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from equivalence.errors import UsageError
from exercises.__main__ import main
from exercises.checking import Checked, Failed
from exercises.exercise import EXERCISES, FOLDER, Exercise, find, markdown
from exercises.texts import TEXTS

ROOT = Path(__file__).parent.parent

OWN_PROCESS = "async_twin"
"""What breaks here holds on to an event loop, which no other check should meet."""

every = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)


class Wrong(NamedTuple):
    """A wrong solution: what is replaced in the file, and the reason of its FAIL."""

    exercise: str
    about: str
    reason: str
    replaced: dict[str, str]
    file: str = "solution"


ALLOWED = 'input(f"Run {call[\'name\']}({call[\'args\']})? [y/n] ").strip() == "y"'
ANSWERS_ITSELF = '''    for message in reversed(state["messages"]):
        if message.type != "tool":
            return False
        if message.name in RETURN_DIRECT:
            return True
    return False
'''
BIND = '''        model = model.bind_tools(
            [tool(function) for function in tools.values()], parallel_tool_calls=False
        )
'''
PLAIN = "        model = model.bind_tools([tool(f) for f in tools.values()])\n"
POOL = '''    with ThreadPoolExecutor() as pool:
        return list(pool.map(run, reply.tool_calls))
'''
LOOP = "range(settings.max_steps)"
IN_WORDS = 'return f"Error: {error}"'
WAITS = "        if missing := asked & NEEDS.get(name, set()):\n"
REVERSED = "return [run(call) for call in reversed(reply.tool_calls)][::-1]"
LABEL = '''    if not re.search("final answer", text, re.IGNORECASE):
        text = LABEL.sub("Final Answer:", text)
'''
KEPT = "    kept = {questions[-1], len(rounds) - 1}\n"
INVOKE = '    return graph.invoke({"messages": messages})["messages"]\n'
COUNT = "str(word.casefold().count(letter.casefold()))"

WRONG = [
    # ------------------------------------------------------------------- first_tool
    Wrong(
        "first_tool",
        "another tool is thrown out",
        "tool_lost",
        {"(get_weather, calculate, count_letters)": "(get_weather, count_letters)"},
    ),
    Wrong(
        "first_tool",
        "no type hints",
        "parameters",
        {"(word: str, letter: str) -> str": "(word, letter)"},
    ),
    Wrong(
        "first_tool",
        "a parameter that may be left out",
        "parameters",
        {"letter: str)": 'letter: str = "r")'},
    ),
    Wrong(
        "first_tool",
        "capital letters are others",
        "wrong_count",
        {COUNT: "str(word.count(letter))"},
    ),
    Wrong("first_tool", "always three", "wrong_count", {COUNT: '"3"'}),
    Wrong(
        "first_tool",
        "a number in the tool message",
        "refused",
        {f"{COUNT}": "word.casefold().count(letter.casefold())"},
    ),
    Wrong(
        "first_tool",
        "another prompt",
        "not_the_same",
        {'"content": SYSTEM_PROMPT': '"content": "Answer."'},
    ),
    Wrong(
        "first_tool",
        "it stops after the first tool",
        "not_completed",
        {"range(10)": "range(1)"},
    ),
    # ----------------------------------------------------------------- ask_a_person
    Wrong(
        "ask_a_person",
        "all but n is y",
        "ran_although_no",
        {'== "y"': '!= "n"'},
    ),
    Wrong(
        "ask_a_person",
        "yesterday is y",
        "ran_although_no",
        {'.strip() == "y"': '.startswith("y")'},
    ),
    Wrong(
        "ask_a_person",
        "an empty tool message",
        "not_told",
        {'"Error: the user did not allow this call."': '""'},
    ),
    Wrong(
        "ask_a_person",
        "it does not show the call",
        "hidden_call",
        {"Run {call['name']}({call['args']})?": "Shall it run?"},
    ),
    Wrong(
        "ask_a_person",
        "it shows no arguments",
        "hidden_call",
        {"({call['args']})": ""},
    ),
    Wrong(
        "ask_a_person",
        "it asks before every tool",
        "asked_too_much",
        {'call["name"] not in CRITICAL': "False"},
    ),
    Wrong(
        "ask_a_person",
        "only yes is yes",
        "yes_is_not_enough",
        {'== "y"': '== "yes"'},
    ),
    Wrong(
        "ask_a_person",
        "it asks once for each tool",
        "once_for_two",
        {
            "def allowed": "SAID = {}\n\n\ndef allowed",
            f"return {ALLOWED}": f'if call["name"] not in SAID or not SAID[call["name"]]'
            f":\n        SAID[call['name']] = {ALLOWED}\n    return SAID[call['name']]",
        },
    ),
    Wrong(
        "ask_a_person",
        "once y, always y",
        "wrong_call",
        {
            "def allowed": "SAID = []\n\n\ndef allowed",
            f"return {ALLOWED}": f"SAID.append({ALLOWED})\n    return any(SAID)",
        },
    ),
    Wrong(
        "ask_a_person",
        "the approval stands in the result",
        "not_the_same",
        {"    return create_agent": "    settings = None\n    return create_agent"}
        | {"        identity = {": '        content += " (approved)"\n        identity = {'},
    ),
    # ---------------------------------------------------------------- return_direct
    Wrong(
        "return_direct",
        "it looks at the last message alone",
        "first_of_two",
        {ANSWERS_ITSELF: '    return state["messages"][-1].name in RETURN_DIRECT\n'},
    ),
    Wrong(
        "return_direct",
        "it looks at the first result alone",
        "last_of_two",
        {
            ANSWERS_ITSELF: '    results = [m for m in state["messages"]]\n'
            '    while results[-1].type == "tool" and results[-2].type == "tool":\n'
            "        results.pop()\n"
            "    return results[-1].name in RETURN_DIRECT\n"
        },
    ),
    Wrong(
        "return_direct",
        "every tool ends the run",
        "other_tool",
        {ANSWERS_ITSELF: "    return True\n"},
    ),
    Wrong(
        "return_direct",
        "a failure does not count",
        "failed_call",
        {
            "if message.name in RETURN_DIRECT:": "if message.name in RETURN_DIRECT and"
            ' message.status == "success":'
        },
    ),
    Wrong(
        "return_direct",
        "it looks at the first turn alone",
        "later_turn",
        {
            ANSWERS_ITSELF: '    if sum(m.type == "ai" for m in state["messages"]) > 1:'
            f"\n        return False\n{ANSWERS_ITSELF}"
        },
    ),
    Wrong(
        "return_direct",
        "it looks at the whole conversation",
        "conversation",
        {
            ANSWERS_ITSELF: '    return any(m.type == "tool" and m.name in'
            ' RETURN_DIRECT for m in state["messages"])\n'
        },
    ),
    # ----------------------------------------------------------------------- serial
    Wrong(
        "serial",
        "it runs one call and forgets the others",
        "refused",
        {
            BIND: PLAIN,
            "run_tools(reply, tools, settings)": "run_tools(reply, tools, settings)[:1]",
        },
    ),
    Wrong(
        "serial",
        "it cuts the reply to one call",
        "no_field",
        {
            BIND: PLAIN,
            "        messages.append(reply)": '        reply = reply.model_copy(update={"'
            'tool_calls": reply.tool_calls[:1], "additional_kwargs": {}})\n'
            "        messages.append(reply)",
        },
    ),
    Wrong(
        "serial",
        "the field and another one",
        "more_than_the_field",
        {"parallel_tool_calls=False": 'parallel_tool_calls=False, tool_choice="auto"'},
    ),
    Wrong(
        "serial",
        "the field without tools",
        "field_without_tools",
        {
            BIND: PLAIN,
            "    messages = [": "    model = model.bind(parallel_tool_calls=False)\n"
            "    messages = [",
        },
    ),
    Wrong(
        "serial",
        "the field at temperature 0 alone",
        "made_up",
        {
            "parallel_tool_calls=False": "**({} if settings.temperature else"
            ' {"parallel_tool_calls": False})'
        },
    ),
    # --------------------------------------------------------------------- together
    Wrong(
        "together",
        "two at a time",
        "not_together",
        {"ThreadPoolExecutor()": "ThreadPoolExecutor(2)"},
    ),
    Wrong(
        "together",
        "results in reverse order",
        "call_order",
        {"reply.tool_calls))": "reply.tool_calls))[::-1]"},
    ),
    Wrong(
        "together",
        "whichever is there first",
        "call_order",
        {
            "import ThreadPoolExecutor": "import ThreadPoolExecutor, as_completed",
            POOL: "    with ThreadPoolExecutor() as pool:\n"
            "        runs = [pool.submit(run, call) for call in reply.tool_calls]\n"
            "        return [each.result() for each in as_completed(runs)]\n",
        },
    ),
    Wrong(
        "together",
        "a tool policy of its own",
        "failures",
        {
            'run_tool(call["name"], call["args"], tools, settings)': "(\n"
            '            run_tool(call["name"], call["args"], tools, settings)\n        )'
            "\n        content = content if ok else 'failed'"
        },
    ),
    Wrong(
        "together",
        "past the tool policy",
        "raised",
        {
            'run_tool(call["name"], call["args"], tools, settings)': "("
            'tools[call["name"]](**call["args"]), True)'
        },
    ),
    Wrong("together", "a shorter budget", "not_the_same", {LOOP: "range(2)"}),
    # ------------------------------------------------------------------- async_twin
    Wrong(
        "async_twin",
        "no arun_agent",
        "no_attribute",
        {"arun_agent": "answer_async"},
    ),
    Wrong(
        "async_twin",
        "async in name alone",
        "not_async",
        {"await model.ainvoke(": "model.invoke("},
    ),
    Wrong(
        "async_twin",
        "it forgets the conversation",
        "not_the_same",
        {"arun_agent(question, **more)": 'arun_agent(question, **more | {"history": ()})'},
    ),
    # ------------------------------------------------------------------------ order
    Wrong(
        "order",
        "results in reverse order",
        "not_the_same",
        {"run_tools(reply, tools, settings)": "run_tools(reply, tools, settings)[::-1]"},
    ),
    Wrong(
        "order",
        "the last tools of the budget do not run",
        "budget",
        {
            f"for _ in {LOOP}": f"for step in {LOOP}",
            "if not wants_tools(reply):": "if not wants_tools(reply) or step =="
            " settings.max_steps - 1:",
        },
    ),
    Wrong(
        "order",
        "no budget",
        "refused",
        {f"for _ in {LOOP}": "while True"},
    ),
    # ----------------------------------------------------------------------- window
    Wrong(
        "window",
        "it drops from the front, and results without a call",
        "two_calls",
        {
            "def run_agent": "def window(messages):\n    kept = messages[-WINDOW:]\n"
            '    while kept[0].type == "tool":\n        kept = kept[1:]\n'
            "    return kept\n\n\ndef run_agent"
        },
    ),
    Wrong(
        "window",
        "it cuts a call from its results",
        "refused",
        {
            "def run_agent": "def window(messages):\n    return messages[-WINDOW:]\n"
            "\n\ndef run_agent"
        },
    ),
    Wrong(
        "window",
        "nothing but the question and the last call",
        "conversation",
        {KEPT: KEPT + "    return [m for i in sorted(kept) for m in rounds[i]]\n"},
    ),
    Wrong(
        "window",
        "it cuts the conversation itself",
        "length",
        {
            "        reply = call_model(model, window(messages))": "        messages ="
            " window(messages)\n        reply = call_model(model, messages)"
        },
    ),
    # ----------------------------------------------------------------- dependencies
    Wrong(
        "dependencies",
        "it looks at the calls before it alone",
        "guess_ran",
        {
            WAITS: '        calls = reply["tool_calls"]\n'
            '        before = {c["function"]["name"] for c in calls[:calls.index(call)]}'
            "\n        if missing := before & NEEDS.get(name, set()):\n"
        },
    ),
    Wrong(
        "dependencies",
        "it does not say for what to wait",
        "not_told",
        {"Call it when you know {names}.": "Call it later."},
    ),
    Wrong(
        "dependencies",
        "it refuses the whole turn",
        "others_refused",
        {WAITS: "        if missing := asked & set().union(*map(NEEDS.get, asked &"
         " NEEDS.keys())):\n"},
    ),
    Wrong(
        "dependencies",
        "a tool once refused stays refused",
        "later_refused",
        {
            "def run_tools": "SEEN = set()\n\n\ndef run_tools",
            WAITS: "        SEEN.update(asked)\n        if missing := SEEN &"
            " NEEDS.get(name, set()):\n",
        },
    ),
    Wrong(
        "dependencies",
        "no tool message for what did not run",
        "refused",
        {
            '    return [run(call) for call in reply["tool_calls"]]': "    results ="
            ' [run(call) for call in reply["tool_calls"]]\n    return [r for r in results'
            ' if "was not run" not in r["content"]]'
        },
    ),
    Wrong(
        "dependencies",
        "no calculation without a price",
        "not_the_same",
        {
            "def run_tools": "KNOWN = set()\n\n\ndef run_tools",
            WAITS: "        missing = asked & NEEDS.get(name, set())\n"
            "        if len(asked) == 1 and name == 'calculate' and len(KNOWN) == 0:\n"
            "            missing = {'get_stock_price'}\n"
            "        KNOWN.discard(name) if name == 'calculate' else KNOWN.add(name)\n"
            "        KNOWN.clear() if not reply.get('content') is None else None\n"
            "        if missing:\n",
        },
    ),
    # ------------------------------------------------------------------------ label
    Wrong(
        "label",
        "every Answer: becomes Final Answer:",
        "not_the_same",
        {LABEL: '    text = re.sub("(?i)answer:", "Final Answer:", text)\n'},
    ),
    Wrong(
        "label",
        "capital letters alone",
        "not_understood",
        {LABEL: '    text = text.replace("Answer:", "Final Answer:")\n'},
    ),
    Wrong(
        "label",
        "a line of the answer becomes a label",
        "not_the_same",
        {LABEL: '    text = LABEL.sub("Final Answer:", text)\n'},
    ),
    Wrong(
        "label",
        "any place in a line",
        "not_the_same",
        {'"^answer:"': '"answer:"'},
    ),
    # ------------------------------------------------------------------------ plant
    Wrong(
        "plant",
        "another prompt",
        "requests_differ",
        {"call_model(model, messages)": "call_model(model, [*messages, messages[-1]])"},
    ),
    Wrong(
        "plant",
        "results in another order",
        "requests_differ",
        {"[::-1]": ""},
    ),
    Wrong(
        "plant",
        "another answer",
        "answers_differ",
        {"    return messages\n": '    messages[-1].content += "!"\n    return messages\n'},
    ),
    Wrong(
        "plant",
        "another result, which the model does not see",
        "wrong_cause",
        {
            "import TOOLS": "import TOOLS, get_weather",
            REVERSED: "return [run(call) for call in reply.tool_calls]",
            "        identity = {": '        if call["name"] == "get_weather":\n'
            "            run_tool('get_weather', {'city': 'Paris'}, tools, settings)\n"
            "        identity = {",
            'call["name"], call["args"], tools, settings)': 'call["name"], call["args"],'
            " {f.__name__: f for f in TOOLS}, settings)",
        },
    ),
    Wrong(
        "plant",
        "each tool runs twice",
        "not_the_same",
        {REVERSED: f"[run(call) for call in reply.tool_calls]\n    {REVERSED}"},
    ),
    # ---------------------------------------------------------------------- survive
    Wrong(
        "survive",
        "it says nothing of what went wrong",
        "not_told",
        {IN_WORDS: 'return "Something went wrong."'},
    ),
    Wrong(
        "survive",
        "the traceback as a result",
        "traceback",
        {
            IN_WORDS: 'return "".join(traceback.format_exception(error))',
            "import warnings": "import traceback\nimport warnings",
        },
    ),
    Wrong(
        "survive",
        "the conversation so far is the result",
        "not_completed",
        {
            INVOKE: "    try:\n    "
            + INVOKE
            + "    except Exception:\n        return messages\n"
        },
        file="start",
    ),
    Wrong(
        "survive",
        "one error for all calls of the turn",
        "sibling_lost",
        {
            "import HumanMessage": "import HumanMessage, ToolMessage",
            INVOKE: '''    try:
        for state in graph.stream({"messages": messages}, stream_mode="values"):
            messages = state["messages"]
    except Exception as error:
        calls = messages[-1].tool_calls
        failed = [ToolMessage(f"{error}", tool_call_id=call["id"]) for call in calls]
        messages = graph.invoke({"messages": [*messages, *failed]})["messages"]
    return messages
''',
        },
        file="start",
    ),
    Wrong(
        "survive",
        "another prompt",
        "not_the_same",
        {"prompt=SYSTEM_PROMPT": 'prompt="Answer."'},
    ),
    # --------------------------------------------------------------- any of them all
    Wrong(
        "order",
        "a word too many",
        "cannot_import",
        {"def run_agent(": "def def run_agent("},
    ),
    Wrong("order", "no agent", "no_attribute", {"def run_agent": "def agent"}),
    Wrong(
        "order",
        "an answer without a model",
        "no_model_call",
        {"    settings = settings or": '    return [{"role": "assistant", "content": "!"}]'
         "\n    settings = settings or"},
    ),
]

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


def reason(exercise: Exercise, file: Path) -> str:
    """Return for which of its reasons the file fails; "" if it passes."""
    try:
        with Checked(exercise, file) as checked:
            checked.check()
    except Failed as failed:
        assert failed.reason
        return failed.key
    return ""


def reason_in_own_process(exercise: Exercise, file: Path) -> str:
    """The same, by the command line."""
    done = command("check", exercise.number, "--file", str(file))
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.startswith("FAIL" if done.returncode else "PASS")
    said = " ".join(done.stdout.split())
    if not done.returncode:
        return ""
    texts = TEXTS["any"] | TEXTS[exercise.name]
    (key,) = (
        key
        for key, text in texts.items()
        if f": {text.format_map(Anything(file.name))}".partition("{")[0] in said
    )
    return key


class Anything(dict[str, str]):
    """Values for a text: the name of the file, and braces for what varies."""

    def __init__(self, file: str) -> None:
        super().__init__(file=file)

    def __missing__(self, name: str) -> str:
        return "{"


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


def judged(exercise: Exercise) -> Callable[[Exercise, Path], str]:
    return reason_in_own_process if exercise.name == OWN_PROCESS else reason


# -------------------------------------------------------------------- the checker


@every
def test_the_solution_passes(exercise: Exercise) -> None:
    assert judged(exercise)(exercise, exercise.solution) == ""


@every
def test_the_start_fails(exercise: Exercise) -> None:
    assert judged(exercise)(exercise, exercise.start) == START[exercise.name]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: f"{w.exercise}: {w.about}")
def test_a_wrong_solution_fails(wrong: Wrong, tmp_path: Path) -> None:
    exercise = find(wrong.exercise)
    text = (exercise.folder / f"{wrong.file}.py").read_text(encoding="utf-8")
    for part, other in wrong.replaced.items():
        assert part in text
        text = text.replace(part, other)
    file = tmp_path / "my_agent.py"
    file.write_text(text, encoding="utf-8")
    assert judged(exercise)(exercise, file) == wrong.reason


def test_every_reason_is_seen_here() -> None:
    """A text that no wrong solution brings about is one that nobody has tried."""
    seen = {(name, key) for name, key in START.items()}
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
        (["hint", "3"], "3 is several exercises: 3a serial, 3b together, 3c async_twin"),
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
        "print([n for n in sys.modules if n.startswith(('lang', 'openai', 'pydantic'))])"
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
        "def run_agent(question, **more):\n    return {}[question]\n"
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
    refused = "the endpoint answered 400: messages[2]: a tool message without a call"
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
