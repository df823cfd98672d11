"""What is seen of one run, whatever its agent, its tools and its endpoint do."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
from command_lines import ROOT, environment, python
from recordings import call
from wire import send

from equivalence.cli import main
from equivalence.gateway import Gateway, Script
from equivalence.gateway.upstreams import Reply
from equivalence.judge.compare import compare, judge
from equivalence.runs.implementation import Implementation, command
from equivalence.runs.observe import Observed, observe
from equivalence.runs.record import Run
from equivalence.settings import Settings
from equivalence.table import read_table
from offline_model import OfflineModel
from tools import TOOLS

Agent = Callable[..., Any]


@pytest.fixture
def watch(gateway: Gateway, offline_settings: Settings) -> Callable[..., Observed]:
    """Observe an agent in front of scripted replies."""

    def run(
        agent: Agent | Implementation,
        *replies: Any,
        tools: Any = (),
        settings: Any = None,
        **more: Any,
    ) -> Observed:
        if not isinstance(agent, Implementation):
            agent = Implementation("agent", agent=agent, **more.pop("fields", {}))
        items = [
            {"message": {"content": r}} if isinstance(r, str) else r for r in replies
        ]
        return observe(
            agent,
            more.pop("question", "go"),
            offline_settings.model_copy(update={"max_steps": 4, **(settings or {})}),
            gateway,
            tools,
            upstream=Script(items or [{"message": {"content": "done"}}]),
            **more,
        )

    return run


def asks(*calls: Any, content: str | None = None) -> dict[str, Any]:
    """A reply with tool calls: (name, arguments, id)."""
    return {
        "message": {
            "content": content,
            "tool_calls": [call(name, text, i) for name, text, i in calls],
        }
    }


def client(settings: Settings) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=settings.gateway_url, api_key="x", max_retries=0, timeout=30
    )


def loop(
    run_all: Callable[[dict[str, Any], list[Any]], list[str]] | None = None,
    *,
    stop: Callable[[Any], bool] = lambda message: False,
) -> Agent:
    """A plain loop on the openai client, as anybody writes it: `run_all` runs the calls
    of a turn and returns what the model gets to read of each."""

    def agent(question: str, *, history: Any, settings: Any, tools: Any) -> list[Any]:
        known = {tool.__name__: tool for tool in tools}
        messages = [*history, {"role": "user", "content": question}]
        for _ in range(settings.max_steps):
            reply = client(settings).chat.completions.create(
                model="m", messages=messages, tools=offer(*known, "final_answer")
            )
            message = reply.choices[0].message.model_dump(exclude_none=True)
            messages.append(message)
            calls = message.get("tool_calls")
            if not calls or stop(message):
                break
            read = (run_all or one_by_one)(known, calls)
            for each, content in zip(calls, read, strict=True):
                messages.append(
                    {"role": "tool", "tool_call_id": each["id"], "content": content}
                )
        return messages

    return agent


def offer(*names: str) -> Any:
    return [{"type": "function", "function": {"name": name}} for name in names]


def one_by_one(known: dict[str, Any], calls: list[Any]) -> list[str]:
    return [run_one(known, each) for each in calls]


def run_one(known: dict[str, Any], each: Any) -> str:
    function = each["function"]
    try:
        return str(known[function["name"]](**json.loads(function["arguments"])))
    except Exception as error:
        return f"failed: {error}"


def backwards(known: dict[str, Any], calls: list[Any]) -> list[str]:
    return [run_one(known, each) for each in reversed(calls)][::-1]


def in_threads(known: dict[str, Any], calls: list[Any]) -> list[str]:
    """Each call in a thread of its own; they begin in any order."""
    read: dict[int, str] = {}
    threads = [
        threading.Thread(
            target=lambda at=at: read.update({at: run_one(known, calls[at])})
        )
        for at in reversed(range(len(calls)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [read[at] for at in range(len(calls))]


def in_tasks(known: dict[str, Any], calls: list[Any]) -> list[str]:
    async def one(each: Any) -> str:
        await asyncio.sleep(0)
        return run_one(known, each)

    async def everything() -> list[str]:
        started = [asyncio.ensure_future(one(each)) for each in reversed(calls)]
        return [await each for each in reversed(started)]

    return asyncio.run(everything())


def echo(text: str) -> str:
    """Say it again."""
    return f"echo {text}"


# -------------------------------------------------- whatever an agent does, it is a run


class Odd(BaseException):
    """No Exception at all."""


def raises(error: BaseException) -> Agent:
    def agent(*_: Any, **__: Any) -> Any:
        raise error

    return agent


def returns(value: Any) -> Agent:
    return lambda *_, **__: value


ENDINGS = {
    "exit 0": (raises(SystemExit(0)), "it ended the program: SystemExit(0)"),
    "exit with words": (raises(SystemExit("bye")), "SystemExit('bye')"),
    "exit without a code": (raises(SystemExit()), "SystemExit(None)"),
    "no Exception": (raises(Odd("at all")), "Odd: at all"),
    "cancelled": (raises(asyncio.CancelledError()), "CancelledError"),
    "an exception of many lines": (raises(ValueError("a\nb")), "ValueError: a b"),
    "None": (returns(None), "it returned None, not a list of messages"),
    "a number": (returns(5), "it returned an int, not a list"),
    "a state without messages": (returns({"x": []}), "it returned a dict, not a list"),
    "a set": (returns({1}), "it returned a set, not a list"),
    "a list of texts": (returns(["done"]), "it returned a str at place 0 of its list"),
    "a dict that is no message": (returns([{"text": "x"}]), "a dict at place 0"),
    "no call of the model": (returns([]), "no model call came through the gateway"),
}


@pytest.mark.parametrize("kind", ENDINGS)
def test_whatever_an_agent_does_is_a_run_that_says_so(
    watch: Callable[..., Observed], kind: str
) -> None:
    agent, words = ENDINGS[kind]
    run = watch(agent).run
    assert run.status == "failed"
    assert words in str(run.error)
    assert "\n" not in str(run.error)


def test_ctrl_c_passes(watch: Callable[..., Observed]) -> None:
    with pytest.raises(KeyboardInterrupt):
        watch(raises(KeyboardInterrupt()))


MODULES = {
    "exits at import": ("import sys; sys.exit(0)", "SystemExit(0)"),
    "raises at import": ("1 / 0", "ZeroDivisionError"),
    "does not parse": ("def agent(:", "SyntaxError"),
    "no function": (
        "agent = 5",
        "broken:agent is of type int, neither a function nor a graph",
    ),
    "nothing there": ("", "broken has no 'agent'"),
    "prints and exits": ("print('hello'); raise SystemExit", "SystemExit(None)"),
}


@pytest.mark.parametrize("kind", MODULES)
def test_a_module_that_breaks_at_import_is_a_failed_run_and_the_rest_goes_on(
    own: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    text, words = MODULES[kind]
    (own / "broken.py").write_text(text)
    both = ("--implementation", "broken:agent", "--implementation", "own:same")
    assert main(["run", "1 + 1", "2 + 2", *both, "--json", "--out", "a.jsonl"]) in (
        1,
        3,
    )
    printed = capsys.readouterr()
    document = json.loads(printed.out)  # whatever the module prints
    assert ("hello" in printed.err) is (kind == "prints and exits")
    errors = [r["error"] for r in document["runs"] if r["implementation"] != "own:same"]
    assert len(errors) == 2
    assert all(words in error for error in errors)
    statuses = [r["status"] for r in document["runs"]]
    assert statuses.count("completed") == 2
    assert len((own / "a.jsonl").read_bytes().splitlines()) == 4


CHATTY = """
import os, sys
print("I am imported")
def agent(question, **given):
    from stage3_pure_loop.agent import run_agent
    print("I am asked")
    return run_agent(question, **given)
"""
AS_JSON = {
    "run": ["run", "1 + 1"],
    "run --jobs": ["run", "1 + 1", "2 + 2", "--jobs", "2"],
    "record": ["record", "1 + 1", "--out", "a.jsonl"],
    "drift": ["drift", "1 + 1", "--repeats", "2"],
    "matrix": ["matrix", "--scenario", "arguments_cut_short"],
    "score": ["score"],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", AS_JSON.values(), ids=AS_JSON)
def test_what_an_agent_prints_is_never_in_the_json(
    own: Path, command: list[str]
) -> None:
    (own / "chatty.py").write_text(CHATTY)
    chatty = ["--implementation", "chatty:agent", "--json"]
    done = python("-m", "equivalence", *command, *chatty)
    assert "I am imported" in done.stderr, done
    assert "I am asked" in done.stderr
    assert json.loads(done.stdout)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("code", ["0", "1", "'words'", ""])
def test_an_agent_that_exits_never_ends_the_judge(own: Path, code: str) -> None:
    """Not even with the code that says that all is equivalent."""
    (own / "broken.py").write_text(
        f"import sys\ndef agent(*_, **__): sys.exit({code})\n"
    )
    for more in ([], ["--implementation", "own:same"]):
        command = ["run", "1 + 1", "--implementation", "broken:agent", *more]
        done = python("-m", "equivalence", *command)
        assert done.returncode in (1, 3), done
        assert "it ended the program" in done.stdout


# ------------------------------------------------------------ a call and its execution


@dataclass
class Item:
    sku: str
    qty: int


def order(item: Any) -> str:
    """Order an item, which is checked first."""
    return f"ordered {item.qty} of {item.sku}"


def checks(known: dict[str, Any], calls: list[Any]) -> list[str]:
    """A policy that turns arguments into what they are, so that they look different."""
    read = []
    for each in calls:
        data = json.loads(each["function"]["arguments"])["item"]
        try:
            item = Item(data["sku"], int(data["qty"]))
        except ValueError:
            read.append("refused: qty must be a number")
            continue
        read.append(known["order"](item=item))
    return read


REFUSED = '{"item": {"sku": "A", "qty": "many"}}'
FINE = '{"item": {"sku": "B", "qty": 2}}'


@pytest.mark.parametrize("arguments", [(REFUSED, FINE), (FINE, REFUSED)])
@pytest.mark.parametrize("concurrent", [False, True])
def test_a_refused_call_is_not_taken_for_the_executed_one(
    watch: Callable[..., Observed], arguments: tuple[str, str], concurrent: bool
) -> None:
    def in_threads_checked(known: dict[str, Any], calls: list[Any]) -> list[str]:
        return [checks(known, [each])[0] for each in calls]

    policy = in_threads_checked if concurrent else checks
    replies = asks(("order", arguments[0], "a"), ("order", arguments[1], "b"))
    run = watch(loop(policy), replies, "done", tools=[order]).run
    told = {step.arguments_text: step for step in run.steps}
    assert (told[REFUSED].result, told[REFUSED].ok) == (
        "refused: qty must be a number",
        False,
    )
    assert told[REFUSED].order is None
    assert (told[FINE].result, told[FINE].ok, told[FINE].order) == (
        "ordered 2 of B",
        True,
        0,
    )


def test_the_same_call_in_two_turns_is_two_steps(
    watch: Callable[..., Observed],
) -> None:
    same = ("echo", '{"text": "x"}')
    replies = [asks((*same, "a")), asks((*same, "b")), "done"]
    run = watch(loop(), *replies, tools=[echo]).run
    assert [(step.turn, step.order) for step in run.steps] == [(1, 0), (2, 1)]


# ------------------------------------------------------------------------ what was read


def unstable() -> Any:
    """Return what looks different in each process."""
    return {"b", "a", "c"}


def lazy() -> Any:
    """Return what can be read once."""
    return map(str, [1, 2])


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("do not look at me")

    __repr__ = __str__
    __eq__ = None  # type: ignore[assignment]


def hostile() -> Any:
    """Return what cannot be looked at."""
    return Hostile()


@pytest.mark.parametrize("tool", [unstable, lazy, hostile])
def test_the_record_holds_what_the_model_read(
    watch: Callable[..., Observed], tool: Any
) -> None:
    def policy(known: dict[str, Any], calls: list[Any]) -> list[str]:
        result = known[tool.__name__]()
        text = ",".join(sorted(result)) if tool is not hostile else "an object"
        return [text]

    runs = [
        watch(loop(policy), asks((tool.__name__, "{}", "a")), "done", tools=[tool]).run
        for _ in range(2)
    ]
    (step,) = runs[0].steps
    expected = {"unstable": "a,b,c", "lazy": "1,2", "hostile": "an object"}
    assert step.result == expected[tool.__name__]
    assert step.returned is None
    assert judge(*runs).verdict == "equivalent"


def test_what_the_tool_gave_back_is_kept_where_the_model_read_something_else(
    watch: Callable[..., Observed],
) -> None:
    def shortened(known: dict[str, Any], calls: list[Any]) -> list[str]:
        return [text[:4] for text in one_by_one(known, calls)]

    replies = [asks(("echo", '{"text": "x"}', "a")), "done"]
    whole = watch(loop(), *replies, tools=[echo]).run
    cut = watch(loop(shortened), *replies, tools=[echo]).run
    assert (cut.steps[0].result, cut.steps[0].returned) == ("echo", "echo x")
    found = compare(whole, cut)
    assert found is not None
    assert (found.cause, found.path) == ("request", "$.messages[2].content")


def test_an_interrupt_that_passes_through_a_tool_is_no_result(
    watch: Callable[..., Observed],
) -> None:
    from langgraph.errors import GraphInterrupt

    def ask_a_person() -> str:
        """Wait for a person."""
        raise GraphInterrupt()

    def policy(known: dict[str, Any], calls: list[Any]) -> list[str]:
        try:
            known["ask_a_person"]()
        except GraphInterrupt as interrupt:
            return [f"resumed {id(interrupt)}"[:7]]
        raise AssertionError

    run = watch(
        loop(policy), asks(("ask_a_person", "{}", "a")), "done", tools=[ask_a_person]
    ).run
    (step,) = run.steps
    assert (step.result, step.order, step.returned) == ("resumed", None, None)


# --------------------------------------------------------------------------- the order

TWO = asks(("echo", '{"text": "x"}', "a"), ("echo", '{"text": "y"}', "b"))


@pytest.mark.parametrize("policy", [in_threads, in_tasks])
def test_the_order_of_concurrent_executions_means_nothing(
    watch: Callable[..., Observed], policy: Any
) -> None:
    serial = watch(loop(), TWO, "done", tools=[echo]).run
    concurrent = watch(loop(policy), TWO, "done", tools=[echo]).run
    assert [step.result for step in concurrent.steps] == ["echo x", "echo y"]
    assert [step.concurrent for step in concurrent.steps] == [True, True]
    assert [step.concurrent for step in serial.steps] == [False, False]
    for pair in ((serial, concurrent), (concurrent, serial), (concurrent, concurrent)):
        assert judge(*pair).verdict == "equivalent"


def test_a_serial_agent_that_runs_calls_backwards_is_different(
    watch: Callable[..., Observed],
) -> None:
    serial = watch(loop(), TWO, "done", tools=[echo]).run
    found = compare(serial, watch(loop(backwards), TWO, "done", tools=[echo]).run)
    assert found is not None
    assert (found.cause, found.path) == ("control", "steps[0].order")


def twice(known: dict[str, Any], calls: list[Any]) -> list[str]:
    one_by_one(known, calls)
    return one_by_one(known, calls)


def first_of_two(known: dict[str, Any], calls: list[Any]) -> list[str]:
    """Runs the first call alone, and makes up the rest."""
    return [run_one(known, calls[0]), "echo y"]


@pytest.mark.parametrize("policy", [twice, first_of_two])
def test_executions_that_no_reply_accounts_for_are_a_difference(
    watch: Callable[..., Observed], policy: Any
) -> None:
    right = watch(loop(), TWO, "done", tools=[echo]).run
    other = watch(loop(policy), TWO, "done", tools=[echo]).run
    for pair in ((right, other), (other, right)):
        found = compare(*pair)
        assert found is not None
        assert (found.cause, found.model_call) == ("control", 1)


# ------------------------------------------------------------------- tools not watched


def test_another_value_in_a_command_agents_database_is_the_tools_fault(
    gateway: Gateway, offline_settings: Settings, tmp_path: Path
) -> None:
    script = tmp_path / "agent.py"
    script.write_text(COMMAND_AGENT)
    runs = []
    for value in ("25", "26"):
        upstream = Script(
            [asks(("look_up", "{}", "a")), {"message": {"content": "done"}}]
        )
        one = command(f"{sys.executable} {script} {value} {{question}}")
        observed = observe(one, "go", offline_settings, gateway, [], upstream=upstream)
        runs.append(observed.run)
        assert observed.run.status == "completed", observed.run.error
        assert observed.run.versions == {}, "of another interpreter nothing is known"
    found = compare(*runs)
    assert found is not None
    assert (found.cause, found.left, found.right) == ("tool", "25", "26")


COMMAND_AGENT = """
import json, os, sys, urllib.request
value, question = sys.argv[1:]
messages = [{"role": "user", "content": question}]
for _ in range(4):
    tools = [{"type": "function", "function": {"name": "look_up"}}]
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    kind = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body, kind)) as answer:
        message = json.load(answer)["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": value})
print(messages[-1]["content"])
"""


def test_a_command_keeps_all_that_it_said_and_no_key(
    gateway: Gateway, offline_settings: Settings, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-secret")
    script = tmp_path / "agent.py"
    script.write_text(
        "import os, sys\n"
        "print('first', file=sys.stderr)\n"
        "print(os.environ.get('LLM_API_KEY'), file=sys.stderr)\n"
        "sys.exit('last')\n"
    )
    one = command(f"{sys.executable} {script} {{question}}")
    run = observe(one, "go", offline_settings, gateway, []).run
    assert run.status == "failed"
    assert run.error == "CommandFailed: ended with 1: first None last"


@pytest.mark.parametrize(
    ("end", "fields", "status", "answer"),
    [
        # an answer by a tool of the agent's own, told in the table
        ([], {"final_tool": "final_answer"}, "completed", "it is 5"),
        # by one that it answers itself: structured output
        ([{"role": "tool", "tool_call_id": "a", "content": "5"}], {}, "completed", "5"),
        # an error is no answer, nor is a call that nobody answered
        ([{"role": "tool", "content": "x", "status": "error"}], {}, "malformed", ""),
        ([], {}, "malformed", ""),
    ],
)
def test_an_ending_that_the_agents_own_protocol_knows(
    watch: Callable[..., Observed], end: Any, fields: Any, status: str, answer: str
) -> None:
    def agent(question: str, *, settings: Any, **more: Any) -> list[Any]:
        ends = loop(stop=lambda message: True)
        return ends(question, settings=settings, **more) + end

    reply = asks(("final_answer", '{"answer": "it is 5"}', "a"))
    run = watch(agent, reply, tools=[echo], fields=fields).run
    assert (run.status, run.answer) == (status, answer)
    # The call that is the answer is no step; one that is not is.
    assert [step.tool for step in run.steps] == ["final_answer"] * (not fields)


# ----------------------------------------------------------------- the end of a run


class Held(OfflineModel):
    """An upstream that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = threading.Event(), threading.Event()
        self.cancelled = threading.Event()

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.asked.set()
        try:
            while not self.go.is_set():
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return await super().answer(request, authorization)


HI = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_nothing_is_added_to_a_run_after_its_end(gateway: Gateway) -> None:
    held = Held()
    late: list[Any] = []
    with gateway.open_run(held) as run:
        sender = threading.Thread(target=lambda: late.append(send(run.url, HI)))
        sender.start()
        assert held.asked.wait(10)
    assert held.cancelled.wait(10), "what was under way is cancelled"
    sender.join(10)
    assert [(e.status, e.ms) for e in run.exchanges] == [(None, None)]
    again = send(run.url, HI)
    assert again.status == 410
    assert "has ended" in again.error
    assert len(run.exchanges) == 1


def test_a_request_whose_client_has_gone_is_cancelled(gateway: Gateway) -> None:
    held = Held()
    with gateway.open_run(held) as run:
        with pytest.raises(openai.APITimeoutError):
            openai.OpenAI(
                base_url=run.url, api_key="x", max_retries=0, timeout=0.3
            ).chat.completions.create(**HI)
        assert held.cancelled.wait(10)
        held.go.set()
        assert send(run.url, HI).status == 200
        assert [e.status for e in run.exchanges] == [None, 200]
    run_record = Run("x", "q", exchanges=run.exchanges)
    assert [e.status for e in run_record.model_calls] == [200]


def test_two_runs_of_one_name_share_nothing(
    gateway: Gateway, offline_settings: Settings
) -> None:
    """A client of the first one that comes late does not land in the second."""
    urls: list[str] = []

    def agent(question: str, *, settings: Any, **_: Any) -> list[Any]:
        urls.append(settings.gateway_url)
        if len(urls) == 2:
            assert send(urls[0], HI).status == 410
        return loop()(question, history=[], settings=settings, tools=[])

    for _ in range(2):
        seen = observe(
            Implementation("same", agent=agent),
            "go",
            offline_settings,
            gateway,
            [],
            upstream=Script([{"message": {"content": "done"}}]),
        )
        assert [e.status for e in seen.run.exchanges] == [200]
    assert len({*urls}) == 2


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["stage3", "stage4"])
def test_the_gateways_words_are_read_when_a_server_is_too_slow(
    own: Path, implementation: str, tmp_path: Path
) -> None:
    """Twice into one file: the second time the same command goes on."""
    held = Held()
    with Gateway(held, repair=False) as endpoint:
        line = [
            *(
                sys.executable,
                "-m",
                "equivalence",
                "record",
                "hi",
                "--out",
                "same.jsonl",
            ),
            *("--base-url", endpoint.url, "--model", "m"),
            *("--implementation", implementation),
        ]
        for _ in range(2):
            began = time.monotonic()
            done = subprocess.run(
                line,
                cwd=own,
                env=environment(LLM_TIMEOUT="0.5", LLM_RETRIES="2"),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 3, done.stderr
            assert time.monotonic() - began < 20
    lines = (own / "same.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 2
    for record in records:
        assert record["status"] == "model_error"
        assert "within 0.5 s" in record["error"]
        assert len(record["exchanges"]) == 1, "too slow once is too slow"


def test_a_standing_address_belongs_to_the_one_run_that_is_open(
    gateway: Gateway,
) -> None:
    def hello() -> Any:
        return send(gateway.standing_url, HI)

    assert hello().status == 409
    with gateway.open_run(standing=True) as first:
        assert hello().status == 200
        with gateway.open_run(standing=True):
            refused = hello()
            assert refused.status == 409
            assert "two runs" in refused.error
        assert hello().status == 200
    assert hello().status == 409
    assert len(first.exchanges) == 2


def test_what_an_observer_raises_changes_nothing_and_is_not_lost(
    gateway: Gateway,
) -> None:
    def broken(exchange: Any) -> None:
        raise BrokenPipeError("the screen has gone")

    run = gateway.open_run(on_exchange=broken)
    assert send(run.url, HI).status == 200
    assert send(run.url, HI).status == 200
    with pytest.raises(BrokenPipeError):
        run.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stage1", "stage3", "stage4"])
def test_two_hundred_runs_at_once_lose_and_mix_up_nothing(
    gateway: Gateway, offline_settings: Settings, name: str
) -> None:
    one = read_table(ROOT).find(name)
    together = threading.Barrier(200, timeout=60)

    def run(number: int) -> Run:
        together.wait()
        question = f"{number} * 1000 + 7"
        return observe(one, question, offline_settings, gateway, TOOLS).run

    with ThreadPoolExecutor(200) as pool:
        runs = list(pool.map(run, range(200)))
    for number, each in enumerate(runs):
        written = f"{number} * 1000 + 7"
        assert each.status == "completed", each.error
        assert len(each.exchanges) == 2
        for exchange in each.exchanges:
            assert {"role": "user", "content": written} in exchange.request["messages"]
        (step,) = each.steps
        assert (step.arguments, step.result, step.ok) == (
            {"expression": written},
            str(number * 1000 + 7),
            True,
        )
        assert f"{number * 1000 + 7:,}" in each.answer
