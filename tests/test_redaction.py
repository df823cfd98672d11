"""`redact` in the table: what it names is written nowhere; recordings still match."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from command_lines import ROOT, python
from test_gateway_command import start, stop, url_of
from wire import send

from equivalence.cli import main
from equivalence.gateway import Gateway, Script
from equivalence.runs.files import read_runs
from equivalence.table import read_table

PHONE, ACCOUNT, MAIL = "13812345678", "ACC-7788-XYZ", "ann@example.org"
SECRETS = (PHONE, ACCOUNT, MAIL, MAIL.replace("@", "\\u0040"))
QUESTION = f"Send 25 to {ACCOUNT[:3]}, phone {PHONE}."

BANK = '''
import json
import openai

MAIL = "ann" + "@example.org"  # a page shows this source

def transfer(account: str, amount: float) -> dict:
    """Send money."""
    return {"to": account, "amount": amount, "receipt": MAIL}

def fails(account: str) -> str:
    """Never works."""
    raise ValueError(f"no account {account}")

TOOLS = [transfer, fails]
SCHEMAS = [
    {"type": "function", "function": {"name": tool.__name__, "parameters": {}}}
    for tool in TOOLS
]

def agent(question, *, base_url, tools, temperature=0):
    client = openai.OpenAI(base_url=base_url, api_key="x", max_retries=0)
    named = {tool.__name__: tool for tool in tools}
    messages = [{"role": "user", "content": question}]
    while True:
        reply = client.chat.completions.create(
            model="m", messages=messages, tools=SCHEMAS, temperature=temperature,
            user=MAIL,
        ).choices[0].message
        messages.append(reply.model_dump(exclude_none=True))
        if not reply.tool_calls:
            return messages
        for call in reply.tool_calls:
            try:
                result = json.dumps(
                    named[call.function.name](**json.loads(call.function.arguments))
                )
            except ValueError as error:
                result = f"Error: {error}"
            messages.append(
                {"role": "tool", "tool_call_id": call.id, "content": result}
            )

def warmer(question, *, base_url, tools):
    return agent(question, base_url=base_url, tools=tools, temperature=1)

def without_mail(text):
    return text.replace(MAIL, "nobody")

def breaks(text):
    raise KeyError(text)

def gives_nothing(text):
    return None
'''

REPLIES = f"""
- calls:
    - [transfer, '{{"account": "{ACCOUNT}", "amount": 25}}']
    - [fails, '{{"account": "{ACCOUNT}"}}']
- "25 sent to {ACCOUNT}, phone {PHONE}, receipt {MAIL}."
"""

TABLE = """
[tool.equivalence]
tools = "bank:TOOLS"
upstream = "script:replies.yaml"
implementations = { a = "bank:agent", b = "bank:agent" }
[tool.equivalence.redact]
"""

RULES = """
patterns = { phone = '1\\d{10}', account = 'ACC(?:-\\w+)+' }
function = "bank:without_mail"
"""


@pytest.fixture
def bank(folder: Path) -> Path:
    (folder / "bank.py").write_text(BANK, "utf-8")
    (folder / "replies.yaml").write_text(REPLIES, "utf-8")
    (folder / "pyproject.toml").write_text(TABLE + textwrap.dedent(RULES), "utf-8")
    return folder


def written(folder: Path) -> dict[str, str]:
    """What stands in the folder beside the files that the secrets come from."""
    given = ("bank.py", "replies.yaml", "pyproject.toml", "test_bank.py")
    return {
        str(file.relative_to(folder)): file.read_text("utf-8")
        for file in folder.rglob("*")
        if file.is_file() and file.name not in given and file.suffix != ".pyc"
    }


def test_a_secret_is_in_no_file_and_on_no_screen(
    bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", QUESTION, "--out", "r.jsonl", "--markdown", "r.md"]) == 0
    assert main(["run", QUESTION, "--json"]) == 0
    assert main(["report", "r.jsonl"]) == 0
    assert main(["step", QUESTION, "--implementation", "a"]) == 0
    assert main(["export", "r.jsonl", "--to", "otlp", "-o", "r.otlp.json"]) == 0
    assert main(["drift", QUESTION, "--repeats", "2", "--out", "d.jsonl"]) == 0
    printed = capsys.readouterr()
    files = written(bank)
    assert {"r.jsonl", "r.md", "report.html", "step.html", "d.jsonl"} <= {*files}
    for secret in SECRETS:
        assert secret not in printed.out + printed.err
        for name, text in files.items():
            assert secret not in text, name
    assert "25 sent to [redacted account], phone [redacted phone]" in printed.out


def test_the_record_names_what_was_taken_out(bank: Path) -> None:
    main(["run", QUESTION, "--implementation", "a", "--out", "r.jsonl"])
    (run,) = read_runs(Path("r.jsonl"))
    times = {each["rule"]: each["times"] for each in run.redacted}
    assert {*times} == {"bank:without_mail", "phone", "account"}
    assert min(times.values()) > 1
    assert run.steps[0].arguments == {"account": "[redacted account]", "amount": 25}
    assert run.steps[1].result == "Error: no account [redacted account]"


def test_a_recording_without_the_secrets_replays(
    bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["record", QUESTION, "--out", "r.jsonl"])
    before = Path("r.jsonl").read_bytes()
    assert main(["record", QUESTION, "--out", "r.jsonl"]) == 0
    assert Path("r.jsonl").read_bytes() == before  # all found again, none asked anew
    capsys.readouterr()
    assert main(["replay", "r.jsonl"]) == 0
    assert main(["replay", "r.jsonl", QUESTION, "--tools", "recorded"]) == 0
    assert "did exactly what was recorded" in capsys.readouterr().out
    assert main(["diff", "r.jsonl", "r.jsonl"]) == 0
    changed = ["--implementation", "bank:warmer"]
    assert main(["replay", "r.jsonl", *changed]) == 1
    assert "$.temperature" in capsys.readouterr().out


def test_what_is_not_compared_is_said(
    bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", QUESTION]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "What was redacted looks the same on both sides: it is not compared." in said


def test_a_path_reaches_what_comes_of_it(
    bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "$.messages[*].tool_calls[*].function.arguments.account"
    rules = f'paths = ["$.user", "{arguments}", "$.messages[*].content"]'
    (bank / "pyproject.toml").write_text(TABLE + rules, "utf-8")
    main(["record", QUESTION, "--out", "r.jsonl"])
    for run in read_runs(Path("r.jsonl")):
        request = run.exchanges[1].request
        assert request["user"] == "[redacted]"
        call = request["messages"][1]["tool_calls"][0]["function"]
        assert json.loads(call["arguments"]) == {"account": "[redacted]", "amount": 25}
        assert run.steps[0].arguments == {"account": "[redacted]", "amount": 25}
        assert run.answer == run.steps[0].result == "[redacted]"
        assert {each["rule"] for each in run.redacted} == {
            *("$.user", arguments, "$.messages[*].content")
        }
        # The question was not named: the record says that it holds the text.
        assert run.question == QUESTION
        assert "stands in 1 other texts" in run.warnings[-1]
    assert main(["replay", "r.jsonl", "--tools", "recorded"]) == 0


def test_the_plugin_records_and_finds_it_again(bank: Path) -> None:
    (bank / "test_bank.py").write_text(
        "def test_same(equivalence):\n"
        f"    equivalence.assert_same('a', 'b', questions=[{QUESTION!r}])\n",
        "utf-8",
    )
    plugin = ("-p", "equivalence.pytest_plugin")  # as if it were installed
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin)
    done = python(*command, "--equivalence-record", "none", cwd=bank)
    assert "nothing is recorded" in done.stdout
    for mode in ("once", "none"):
        done = python(*command, "--equivalence-record", mode, cwd=bank)
        assert done.returncode == 0, done.stdout
    recorded = [name for name in written(bank) if name.endswith(".jsonl")]
    assert len(recorded) == 1
    for secret in SECRETS:
        assert secret not in written(bank)[recorded[0]]


def test_the_gateway_alone_writes_nothing_that_it_cannot_clean(bank: Path) -> None:
    (bank / "pyproject.toml").write_text(TABLE + "function = 'bank:breaks'", "utf-8")
    process = start("--port", "0", "--record", "g.jsonl", cwd=bank)
    asked = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    assert send(url_of(process), json.dumps(asked).encode()).status == 200
    _, err = stop(process)
    assert "error: redact: bank:breaks failed: KeyError; nothing was written" in err
    assert process.returncode == 2
    assert (bank / "g.jsonl").read_bytes() == b""


def test_the_gateway_alone_takes_it_out(bank: Path) -> None:
    process = start("--port", "0", "--record", "g.jsonl", cwd=bank)
    tools = [{"type": "function", "function": {"name": "transfer", "parameters": {}}}]
    user = {"role": "user", "content": QUESTION}
    asked = {"model": "m", "messages": [user], "tools": tools}
    reply = send(url_of(process), json.dumps(asked).encode())
    assert ACCOUNT in json.dumps(reply.json)  # the client gets what the model said
    stop(process)
    (run,) = read_runs(bank / "g.jsonl")
    assert run.question == "Send 25 to ACC, phone [redacted phone]."
    for secret in SECRETS:
        assert secret not in (bank / "g.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("patterns = { a = '(' }", "tool.equivalence.redact.patterns.a: missing )"),
        ("patterns = { a = 'x*' }", "redact.patterns.a: it matches the empty text"),
        ("patterns = ['x']", "tool.equivalence.redact: Expected `table`, got `array`"),
        ("paths = ['account']", "redact.paths: 'account' is no path into a request"),
        ("path = ['$.user']", "redact: The table contains unknown field `path`"),
        ("function = 'bank:nowhere'", "bank has no 'nowhere'"),
        ("function = 'bank:breaks'", "bank:breaks failed: KeyError; nothing was"),
        ("function = 'bank:gives_nothing'", "must return a text, not NoneType"),
    ],
)
def test_a_rule_that_cannot_work_is_one_line_and_nothing_is_written(
    bank: Path, capsys: pytest.CaptureFixture[str], rules: str, words: str
) -> None:
    (bank / "pyproject.toml").write_text(TABLE + rules, "utf-8")
    assert main(["run", QUESTION, "--out", "r.jsonl"]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert err.count("\n") == 1
    for text in (out, err, *written(bank).values()):
        assert not any(secret in text for secret in SECRETS)


def test_the_rules_of_the_page_are_rules() -> None:
    rules = read_table(ROOT / "docs" / "examples" / "redact").redaction
    assert rules.texts([f"{MAIL} and {PHONE}"]) == (
        "[redacted mail] and [redacted phone]",
    )


def test_questions_that_become_one_are_refused(
    bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions: list[Any] = ["Whose is 13812345678?", "Whose is 13912345678?"]
    assert main(["run", *questions, "--out", "r.jsonl"]) == 2
    err = capsys.readouterr().err
    assert "redact makes two questions one, 'Whose is [redacted phone]?'" in err
    assert not any(question in err for question in questions)


def test_a_secret_in_the_settings_is_not_written(
    bank: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = "patterns = { host = '127[.]0[.]0[.]1', team = 'team-[0-9]+' }"
    (bank / "pyproject.toml").write_text(TABLE + rules, "utf-8")
    monkeypatch.setenv("LLM_EXTRA_BODY", '{"metadata": {"of": "team-7"}}')
    body = {"choices": [{"message": {"content": "I am team-7"}}]}
    with Gateway(Script([{"body": body}])) as server, server.open_run() as behind:
        place = ("--base-url", behind.url, "--model", "m")
        assert main(["record", "hi", *place, "--out", "r.jsonl"]) == 0
        before = Path("r.jsonl").read_bytes()
        assert main(["record", "hi", *place, "--out", "r.jsonl"]) == 0
        assert Path("r.jsonl").read_bytes() == before  # the same command goes on
    text = Path("r.jsonl").read_text("utf-8")
    assert "127.0.0.1" not in text
    assert "team-7" not in text
    assert "I am [redacted team]" in text
    assert main(["replay", "r.jsonl"]) == 0


def test_a_secret_that_is_a_number_is_one(
    bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = f'{{"account": "x", "amount": {PHONE}}}'
    (bank / "replies.yaml").write_text(
        f"- calls: [[transfer, '{call}']]\n- done\n", "utf-8"
    )
    (bank / "pyproject.toml").write_text(
        TABLE + "patterns = { phone = '1\\d{10}', any = '[0-9]{2,}' }", "utf-8"
    )
    assert main(["record", "hi", "--out", "r.jsonl"]) == 0
    assert PHONE not in Path("r.jsonl").read_text("utf-8")
    for run in read_runs(Path("r.jsonl")):
        assert run.steps[0].arguments == {"account": "x", "amount": "[redacted phone]"}
        assert run.settings["max_steps"] == 10  # a replay reads it
    assert main(["replay", "r.jsonl", "--tools", "recorded"]) == 0
    assert main(["report", "r.jsonl"]) == 0
    assert PHONE not in Path("report.html").read_text("utf-8")
