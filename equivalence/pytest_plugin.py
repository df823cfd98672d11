"""The pytest plugin: two agents that must do the same, as one line of a test.

    def test_migration(equivalence):
        equivalence.assert_same("old", "new", questions=["Is it warm in Rome?"])

The first time it is run with --equivalence-record once, and asks the model; from then
on it replays what stands beside the test, without a model, without running a tool, and
without a network. One file for each test, so that the workers of xdist share none.

Nothing heavy is imported until the fixture is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from equivalence.language import N_, _
from equivalence.phrases import translated

if TYPE_CHECKING:
    from equivalence.gateway import Gateway
    from equivalence.judge.compare import Judge, Verdict
    from equivalence.runs.implementation import Implementation
    from equivalence.runs.plan import Plan
    from equivalence.runs.record import Run

MODES = {
    "none": N_("replay what is recorded, never ask a model (default)"),
    "once": N_("record where there is no file yet"),
    "new": N_("record the questions that the file does not hold"),
    "all": N_("record everything anew"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --equivalence-record."""
    group = parser.getgroup("equivalence")
    group.addoption(
        "--equivalence-record",
        choices=list(MODES),
        default="none",
        help="; ".join(mode + ": " + _(words) for mode, words in MODES.items()),
    )


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marker is."""
    config.addinivalue_line(
        "markers",
        _(
            "equivalence(**defaults): defaults of equivalence.assert_same for the test,"
            " for example compare='steps' or ignore=['$.temperature']"
        ),
    )


class Different(AssertionError):
    """Two implementations did not do the same; the message says where and why."""


class NotRecorded(AssertionError):
    """There is no recording to replay; the message is the command that makes one."""


@pytest.fixture(scope="session")
def _equivalence_gateway() -> Iterator[Callable[..., Gateway]]:
    """One gateway for each way of repairing, for the whole session: a client that an
    agent's module makes keeps its address."""
    gateways: dict[bool, Gateway] = {}

    def gateway(settings: Any) -> Gateway:
        from equivalence.gateway import Playback
        from equivalence.runs.upstreams import new_gateway

        if settings.repair not in gateways:
            gateways[settings.repair] = new_gateway(settings, Playback()).start()
        return gateways[settings.repair]

    yield gateway
    for each in gateways.values():
        each.close()


@pytest.fixture
def equivalence(
    request: pytest.FixtureRequest, _equivalence_gateway: Callable[..., Gateway]
) -> Equivalence:
    """What compares implementations, on the recording of this test."""
    marker = request.node.get_closest_marker("equivalence")
    defaults = dict(marker.kwargs) if marker else {}
    return Equivalence(
        node_id=request.node.nodeid,
        file=_recording(request.node),
        root=request.config.rootpath,
        mode=request.config.getoption("--equivalence-record"),
        gateway=_equivalence_gateway,
        defaults=defaults,
    )


def _recording(node: pytest.Item) -> Path:
    """The file beside the test: recordings/test_module/test_name.jsonl."""
    name = re.sub(r"[^\w.=,-]+", "-", node.nodeid.partition("::")[2]).strip("-")
    return node.path.parent / "recordings" / node.path.stem / f"{name}.jsonl"


class Equivalence:
    """Compares implementations, on the recording of one test."""

    def __init__(
        self,
        *,
        node_id: str,
        file: Path,
        root: Path,
        mode: str,
        gateway: Callable[..., Gateway],
        defaults: dict[str, Any],
    ) -> None:
        self.node_id = node_id
        self.file = file
        self.root = root
        self.mode = mode
        self.defaults = defaults
        self._gateway = gateway

    def assert_same(
        self,
        baseline: Any,
        *others: Any,
        questions: Sequence[str | Sequence[str]] | None = None,
        **options: Any,
    ) -> list[Verdict]:
        """Assert that each of the others does what the baseline does, and return the
        verdicts.

        Implementations are names of the table, "module:attribute", or the agents
        themselves. `questions`: those of the table where none are given; a list within
        the list is a conversation. Options are `compare` ("requests" or "steps"),
        `ignore` (paths), `accept` (a file), `tools` ("run" to run them in replays, or
        the tools themselves), and settings: model=, temperature=, max_steps= …

        Raises Different (an AssertionError) at the first that differs, NotRecorded
        where there is nothing to replay and nothing may be recorded.
        """
        __tracebackhide__ = True
        options = {**self.defaults, **options}
        run_tools = options.get("tools") == "run"
        plan, judge = self._plan(baseline, others, questions, options)
        recorded = self._recorded(plan)
        verdicts = list(self._verdicts(plan, judge, recorded, run_tools))
        wrong = [v for v in verdicts if v.verdict not in ("equivalent", "accepted")]
        if wrong:
            raise Different("\n".join(_told(wrong[0], len(wrong), len(verdicts))))
        return verdicts

    def _plan(
        self,
        baseline: Any,
        others: Sequence[Any],
        questions: Sequence[str | Sequence[str]] | None,
        options: dict[str, Any],
    ) -> tuple[Plan, Judge]:
        from equivalence.commands.arguments import conversations_of
        from equivalence.judge.accepted import read_accepted
        from equivalence.judge.compare import Judge, Rules
        from equivalence.runs.plan import Plan
        from equivalence.runs.watched import load_tools
        from equivalence.settings import load_settings
        from equivalence.table import read_table

        table = self.table = read_table(self.root)
        asked = (
            conversations_of(table, (), None)
            if questions is None
            else [[q] if isinstance(q, str) else list(q) for q in questions]
        )
        rules = Rules(
            options.pop("compare", "requests"), tuple(options.pop("ignore", ()))
        )
        accept = options.pop("accept", None)
        tools = options.pop("tools", None)
        name = table.tools or ""
        offered = load_tools(name) if tools in (None, "run") else list(tools)
        plan = Plan(
            [_implementation(table, one) for one in (baseline, *others)],
            asked,
            load_settings(needs_key=self.mode != "none", **options),
            offered,
            name,
            redaction=table.redaction,
        )
        return plan, Judge(rules, read_accepted(Path(accept) if accept else None))

    # ------------------------------------------------------------------- the recording

    def _recorded(self, plan: Plan) -> dict[Any, Run]:
        """The recorded runs of the plan, recorded now where the mode says so. Of all
        that ask in one form, the first alone is recorded: its replies are for all."""
        sources = self._sources(plan)
        exists = self.file.exists()
        if self.mode in ("new", "all") or (self.mode == "once" and not exists):
            self._record(replace(plan, implementations=sources))
        elif not exists:
            raise NotRecorded(
                _("nothing is recorded for this test: record it with")
                + f"\n  {self._command()}"
            )
        from equivalence.runs.files import read_runs

        recorded = {run.asked: run for run in read_runs(self.file)}
        for _number, one, asked in replace(plan, implementations=sources).runs():
            written = plan.redaction.asked(asked)
            if written not in recorded:
                raise NotRecorded(
                    _(
                        "{question!r} is not in {file} for {name}: record it with"
                    ).format(
                        question=written.question, file=self.file.name, name=one.name
                    )
                    + f"\n  {self._command('new')}"
                )
        return recorded

    def _record(self, plan: Plan) -> None:
        from equivalence.runs.files import RunFile
        from equivalence.runs.session import Session
        from equivalence.runs.upstreams import Upstreams

        if self.mode == "all":
            self.file.unlink(missing_ok=True)
        new_upstream = Upstreams(plan.settings, self.table.upstream, self.table.folder)
        with RunFile(self.file) as out:
            session = Session(plan, self._gateway(plan.settings))
            for number, one, asked in plan.runs():
                if taken := out.get(plan.redaction.asked(asked)):
                    session.take(one, asked, taken)
                    continue
                run = session.ask(one, asked, new_upstream(number))
                if run.status == "model_error":
                    words = _("the model could not be asked: {error}")
                    raise NotRecorded(words.format(error=translated(run.error)))
                out.append(run)

    def _sources(self, plan: Plan) -> list[Implementation]:
        """The implementations that are recorded: the first of each protocol."""
        first: dict[str, Implementation] = {}
        for one in plan.implementations:
            first.setdefault(one.protocol, one)
        return list(first.values())

    def _command(self, mode: str = "once") -> str:
        return f'python -m pytest "{self.node_id}" --equivalence-record {mode}'

    # ---------------------------------------------------------------------- the replay

    def _verdicts(
        self, plan: Plan, judge: Judge, recorded: dict[Any, Run], run_tools: bool
    ) -> Iterator[Verdict]:
        """Each implementation on the recorded replies, compared with the first."""
        from equivalence.gateway import Playback
        from equivalence.runs.recorded_tools import RecordedTools
        from equivalence.runs.session import Session

        sources = {one.protocol: one.name for one in self._sources(plan)}
        session = Session(plan, self._gateway(plan.settings))
        first = plan.implementations[0].name
        ignores = judge.rules.ignores_in_request
        played: dict[Any, dict[str, Run]] = {}
        for _number, one, asked in plan.runs():
            source = replace(asked, implementation=sources[one.protocol])
            run = recorded[plan.redaction.asked(source)]
            tools = None if run_tools else RecordedTools(plan.tools, run)
            playback = Playback(run.model_calls, ignores, plan.redaction.request)
            again = session.ask(one, asked, playback, tools)
            if one.name == source.implementation and _strayed(again):
                words = _(
                    "{name} does not do any more what was recorded of it: {error}\n"
                    "If that is meant, record it again with"
                ).format(name=one.name, error=translated(again.error))
                raise NotRecorded(f"{words}\n  {self._command('all')}")
            played.setdefault(replace(asked, implementation=""), {})[one.name] = again
        for runs in played.values():
            for name, run in runs.items():
                if name != first:
                    yield judge(runs[first], run)


def _strayed(run: Run) -> bool:
    """Whether a run asked for what the recording does not hold."""
    return run.status == "model_error" and "not in the recording" in (run.error or "")


def _implementation(table: Any, one: Any) -> Implementation:
    from equivalence.runs.implementation import Implementation

    if isinstance(one, Implementation):
        return one
    if isinstance(one, str):
        return table.find(one)  # type: ignore[no-any-return]
    name = getattr(one, "__qualname__", None) or getattr(one, "name", None)
    return Implementation(str(name or type(one).__name__), agent=one)


def _told(verdict: Verdict, count: int, total: int) -> Iterator[str]:
    """The first difference, as pytest shows an assertion."""
    from equivalence.judge.compare import explain
    from equivalence.runs.words import short

    place = verdict.divergence
    versus = _("{left} vs {right}: ").format(left=verdict.left, right=verdict.right)
    head = versus + _(verdict.verdict)
    if place:
        head += _(", cause: {cause}, model call {model_call}, {path}").format(
            cause=place.cause, model_call=place.model_call, path=place.path
        )
    yield head
    yield _("question: {question}").format(question=verdict.question)
    for earlier in verdict.history:
        yield _("  after: {question}").format(question=earlier)
    if place:
        yield f"- {verdict.left}: {short(place.left)}"
        yield f"+ {verdict.right}: {short(place.right)}"
    yield explain(verdict)
    if total > 1:
        words = _("{count} of {total} comparisons differ")
        yield words.format(count=count, total=total)
