"""The file under check: its agent is run, watched from outside, and compared.

Nothing here looks into the code. A checker sees what the judge sees: the requests on
the wire, the tools that ran, and the conversation that came back.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from equivalence.gateway import Gateway, Script
from equivalence.gateway.canonical import excerpts
from equivalence.gateway.script import item
from equivalence.gateway.strict import violation
from equivalence.gateway.upstreams import Reply, Upstream, error_reply
from equivalence.judge.compare import CAUSES, Divergence, judge
from equivalence.language import _
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import NO_MODEL_CALL, Observed, observe
from equivalence.runs.plan import CLOCK
from equivalence.runs.record import Run
from equivalence.runs.words import call, mark, short
from equivalence.settings import Settings
from exercises.exercise import Exercise
from exercises.texts import TEXTS
from offline_model import OfflineModel
from tools import TOOLS

Tools = Iterable[Callable[..., Any]]
Call = tuple[str, dict[str, Any]]
"""A tool and its arguments."""
Question = str | Sequence[str]
"""A question, or those of a conversation."""

YOURS = "yours"
MOST_REQUESTS = 40
"""What an agent without a budget may send before the model says no more."""


class Failed(Exception):
    """The exercise is not done: the reason, and what was seen, line by line."""

    def __init__(self, key: str, reason: str, details: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.key = key
        """Which of the texts the reason is."""
        self.reason = reason
        self.details = details


class Strict:
    """A model behind a strict server: 400 to what strict providers refuse, and to an
    agent that never stops asking."""

    def __init__(self, inner: Upstream) -> None:
        self.inner = inner
        self.requests = 0

    def __str__(self) -> str:
        return f"{self.inner}, strict"

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        self.requests += 1
        if self.requests > MOST_REQUESTS:
            return error_reply(400, TEXTS["any"]["never_stops"], retry=False)
        if refusal := violation(request):
            return error_reply(400, refusal, retry=False)
        return await self.inner.answer(request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self.inner.models(authorization)

    async def close(self) -> None:
        await self.inner.close()


def asks(*calls: Call, text: str | None = None) -> dict[str, Any]:
    """Return a scripted reply that asks for these tools, by name and arguments."""
    written = [
        [name, json.dumps(arguments, ensure_ascii=False), f"id_{name}_{number}"]
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    return item({"calls": written, "content": text})


def says(text: str) -> dict[str, Any]:
    """Return a scripted reply that is a text."""
    return item(text)


def script(*replies: dict[str, Any]) -> Callable[[], Upstream]:
    """Return what makes a model that gives these replies in turn. The ids of the calls
    differ from turn to turn."""
    numbered = []
    for turn, reply in enumerate(replies, 1):
        message = dict(reply["message"])
        if calls := message.get("tool_calls"):
            message["tool_calls"] = [{**c, "id": f"{c['id']}_{turn}"} for c in calls]
        numbered.append({**reply, "message": message})
    return lambda: Script(numbered)


class Checked:
    """One file under check, in front of a gateway."""

    def __init__(self, exercise: Exercise, path: Path, gateway: Gateway) -> None:
        self.exercise = exercise
        self.path = path
        self._gateway = gateway
        self._raised_at = ""

    def check(self) -> None:
        """Check the file. Raises Failed with the reason if the exercise is not done."""
        self.module = self._load()
        self.exercise.checker()(self)

    # ------------------------------------------------------------------- what is run

    def run(
        self,
        question: Question,
        *,
        model: Callable[[], Upstream] = OfflineModel,
        tools: Tools = TOOLS,
        agent: Callable[..., list[Any]] | None = None,
        **settings: Any,
    ) -> list[Observed]:
        """Return what the agent did, one for each question of the conversation; `agent`
        in the place of the file's run_agent."""
        implementation = Implementation(YOURS, agent=agent or self._watched_agent())
        return self._play(implementation, question, model, tools, settings)

    def completed(self, question: Question, **how: Any) -> Run:
        """Return the last run. Raises Failed unless each was completed."""
        observed = self.run(question, **how)
        for each in observed:
            self.require_completed(each.run)
        return observed[-1].run

    def same_as(
        self,
        baseline: Implementation,
        question: Question,
        key: str,
        *,
        model: Callable[[], Upstream] = OfflineModel,
        tools: Tools = TOOLS,
        **settings: Any,
    ) -> list[Observed]:
        """Return what the agent did. Raises Failed with the reason `key` unless it is
        what the baseline does, by the judge and by the length of the conversation."""
        tools = list(tools)
        ours = self._play(baseline, question, model, tools, settings)
        assert all(each.run.status != "failed" for each in ours), ours[-1].run.error
        yours = self.run(question, model=model, tools=tools, **settings)
        for left, right in zip(ours, yours, strict=True):
            if left.run.status == "completed":
                self.require_answerable(right.run)
            verdict = judge(left.run, right.run)
            if verdict.divergence:
                said = self.divergence(verdict.divergence, left.run, right.run)
                self.fail(key, *said, *self.seen(right.run))
            lengths = len(left.conversation), len(right.conversation)
            if lengths[0] != lengths[1]:
                self.fail("length", *self.seen(right.run), wanted=lengths)
        return yours

    def play(
        self,
        implementation: Implementation,
        question: Question,
        *,
        model: Callable[[], Upstream] = OfflineModel,
        tools: Tools = TOOLS,
        **settings: Any,
    ) -> Run:
        """Return what a baseline did, its last run."""
        return self._play(implementation, question, model, tools, settings)[-1].run

    def _play(
        self,
        implementation: Implementation,
        question: Question,
        model: Callable[[], Upstream],
        tools: Tools,
        settings: dict[str, Any],
    ) -> list[Observed]:
        upstream = Strict(model())
        played: list[Observed] = []
        for each in [question] if isinstance(question, str) else question:
            after = played[-1] if played else None
            played.append(
                observe(
                    implementation,
                    each,
                    fixed(**settings),
                    self._gateway,
                    tools,
                    upstream=upstream,
                    after=after,
                )
            )
        return played

    # ---------------------------------------------------------------------- reasons

    def fail(self, key: str, *details: str, **values: Any) -> NoReturn:
        """Raise Failed with the text `key` of the exercise, or of all exercises."""
        own = TEXTS[self.exercise.name]
        text = own[key] if key in own else TEXTS["any"][key]
        raise Failed(key, text.format(file=self.path.name, **values), details)

    def require(self, fulfilled: object, key: str, run: Run, **values: Any) -> None:
        """Raise Failed with the text `key`, and what was seen of the run, unless it is
        fulfilled."""
        if not fulfilled:
            self.fail(key, *self.seen(run), **values)

    def require_completed(self, run: Run) -> None:
        """Raise Failed unless the run has come to an answer."""
        self.require_answerable(run)
        self.require(run.status == "completed", "not_completed", run, status=run.status)

    def require_answerable(self, run: Run) -> None:
        """Raise Failed if the agent or the server gave up on the run."""
        self.require(run.error != NO_MODEL_CALL, "no_model_call", run)
        where, error = self._raised_at, run.error
        self.require(run.status != "failed", "raised", run, where=where, error=error)
        self.require(run.status != "model_error", "refused", run)

    def seen(self, run: Run) -> list[str]:
        """Return what the agent did, line by line."""
        asked = " → ".join([*run.history, run.question])
        lines = [TEXTS["any"]["asked"].format(question=asked)]
        for step in run.steps:
            turn = _("turn {number}").format(number=step.turn)
            lines.append(f"  {turn}  {short(call(step), 90)}")
            came = TEXTS["any"]["not_run"] if step.order is None else ""
            lines.append(f"          {mark(step)} {short(step.result or came, 90)}")
        if run.error:
            lines.append(f"  {short(run.error)}")
        elif run.answer:
            lines.append(f"  {short(run.answer, 90)}")
        return lines

    def divergence(self, place: Divergence, left: Run, right: Run) -> list[str]:
        """Return the judge's words on the first divergence."""
        values = excerpts(place.left, place.right, 160)
        return [
            TEXTS["any"]["judge"].format(
                baseline=left.implementation,
                cause=place.cause,
                number=place.model_call,
                path=place.path,
            ),
            f"  {left.implementation}: {values[0]}",
            f"  {right.implementation}: {values[1]}",
            "  " + _(CAUSES[place.cause]),
        ]

    # -------------------------------------------------------------------- the file

    def value(self, name: str) -> Any:
        """Return what the file calls by that name. Raises Failed if it does not."""
        if not hasattr(self.module, name):
            self.fail("no_attribute", name=name)
        return getattr(self.module, name)

    def _load(self) -> ModuleType:
        module = load(self.path)
        if isinstance(module, BaseException):
            where = self._line(module)
            self.fail("cannot_import", where=where, error=_words(module))
        if not callable(getattr(module, "run_agent", None)):
            self.fail("no_attribute", name="run_agent")
        return module

    def _watched_agent(self) -> Callable[..., list[Any]]:
        """The agent; where it raises, the error says at which line of the file."""
        agent = self.module.run_agent

        def run_agent(question: str, **more: Any) -> list[Any]:
            self._raised_at = ""
            try:
                return agent(question, **more)  # type: ignore[no-any-return]
            except Exception as error:
                self._raised_at = self._line(error)
                raise

        return run_agent

    def _line(self, error: BaseException) -> str:
        """The last line of the file on the way to the error; "" where there is none."""
        if isinstance(error, SyntaxError) and error.filename == str(self.path):
            return f"{self.path.name}:{error.lineno}: "
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(self.path)
        ]
        return f"{self.path.name}:{lines[-1]}: " if lines else ""


def load(path: Path) -> ModuleType | BaseException:
    """Return the module of a file, run anew, or what it raised."""
    spec = importlib.util.spec_from_file_location(f"checked_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a file may end its program
        return error
    return module


def fixed(**more: Any) -> Settings:
    """Return the settings of a check: the defaults, whatever the environment says."""
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in Settings.model_fields.items()
    }
    return Settings(**{**defaults, "clock": CLOCK, "retries": 0, "timeout": 30, **more})


def _words(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
