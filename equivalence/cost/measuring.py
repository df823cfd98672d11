"""Measures implementations beside the floors, in turn, within one run.

The wire is taken out by the difference to the http.client loop in the same round: it
sends as many requests through the same gateway and does nothing else. That holds for
any implementation, whatever client it has; where its connections are not kept, opening
them counts as its own.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.util import find_spec
from operator import sub, truediv
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from equivalence.cost import peers
from equivalence.cost.agents import (
    FINAL_ANSWER,
    QUESTION,
    SCHEMA,
    ask,
    depths,
    look_up,
    script,
)
from equivalence.cost.floors import Loop, http_loop, openai_loop
from equivalence.cost.lines import implementation_lines
from equivalence.cost.peers import MODULES
from equivalence.errors import UsageError
from equivalence.gateway import Gateway
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import one_line, set_standing_address

CALLS = 4
GROWTH = (1, 10, 50, 200)
TIMEOUT = 60.0
"""Seconds that a process of its own may take."""
REPEATED = 3
"""Runs of each length, of which the median counts."""
NO_TIME = "the time was out (--seconds)"
HTTP, OPENAI = "http.client loop", "openai loop"

IMPORT = """
import json, sys, time

def resident():
    try:
        with open("/proc/self/status") as file:
            return next(int(x.split()[1]) * 1024 for x in file if x[:6] == "VmHWM:")
    except (OSError, StopIteration):
        return 0

sys.path.insert(0, sys.argv[2])
before = resident()
began = time.perf_counter()
__import__(sys.argv[1])
took = time.perf_counter() - began
print("\\n" + json.dumps([took, resident() - before]))
"""
"""Without the instrument, which would have loaded a part of it already."""


@dataclass
class Cost:
    """What one implementation, or a floor, costs; None where it cannot be known."""

    name: str
    floor: bool = False
    peer: bool = False
    """Whether it is another library, from an environment of its own."""
    ms_per_call: float | None = None
    """Median over the rounds, over the wire, all that a question builds included."""
    ms_without_wire: float | None = None
    """The same less the http.client loop of the same round."""
    ratio: float | None = None
    """Median of the ratios against the warm openai loop in the same round."""
    first_ms: float | None = None
    """The first question in a fresh process, after its import."""
    later_ms: float | None = None
    """The second question in that process."""
    import_ms: float | None = None
    memory_bytes: int | None = None
    """What importing it adds to the highest resident memory of a fresh process."""
    lines: int | None = None
    depth: int | None = None
    """Frames between who asked and the tool; those of its own thread, where it runs in
    one."""
    growth: dict[int, float] = field(default_factory=dict)
    """Model calls of a run: milliseconds per model call."""
    calls: int = CALLS
    """Model calls of a question, where not said differently."""
    rounds: int = 0
    """Of how many rounds the medians are."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Model calls of a run that has no figure: why."""
    error: str | None = None
    """Why it was not measured."""

    @property
    def exponent(self) -> float | None:
        """Return k where the time of a run grows as its model calls to the k, from the
        two longest runs; None if there are not two."""
        if len(self.growth) < 2:
            return None
        (a, fast), (b, slow) = sorted(self.growth.items())[-2:]
        return math.log(b * slow / (a * fast)) / math.log(b / a)

    def to_json(self) -> dict[str, Any]:
        """Return it with its exponent."""
        return {**asdict(self), "exponent": self.exponent}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Cost:
        """Return what to_json() made."""
        fields = {k: v for k, v in document.items() if k != "exponent"}
        growth = {int(calls): ms for calls, ms in fields["growth"].items()}
        return cls(**{**fields, "growth": growth})


class NotMeasured(UsageError):
    """An implementation did not make the model calls of the conversation."""


Candidate = Callable[[str, int], float | None]
"""Answers at a base URL with so many model calls; returns the seconds where it has
measured them itself."""


@dataclass
class Plan:
    """How much is measured, within what time."""

    rounds: int = 20
    seconds: float = 60.0
    """No measurement begins after so many."""
    longest: int = 50
    """Model calls of the longest run; longer ones of GROWTH are left out."""

    @property
    def lengths(self) -> list[int]:
        """Return the model calls of the runs whose growth is looked at."""
        return [calls for calls in GROWTH if calls <= self.longest]


class Measurement:
    """Costs that fill up while works() is gone through."""

    def __init__(
        self,
        implementations: Sequence[Implementation],
        known: Sequence[Implementation],
        root: Path,
        plan: Plan,
        peers_folder: Path | None = None,
    ) -> None:
        """`known`: all of the table, whose files are not each other's.
        `peers_folder`: an environment that has other agent libraries."""
        self.implementations = implementations
        self.known = known
        self.root = root
        self.plan = plan
        self.costs = {name: Cost(name, floor=True) for name in (HTTP, OPENAI)}
        self.costs |= {each.name: Cost(each.name) for each in implementations}
        self.peers = peers_folder
        if self.peers:
            self.costs |= {name: Cost(name, peer=True) for name in MODULES}
        self.candidates: dict[str, Candidate] = {}
        self.protocols = {each.name: each.protocol for each in implementations}
        if self.peers:
            self.protocols["smolagents"] = FINAL_ANSWER
        self.times: dict[str, list[float]] = {name: [] for name in self.costs}
        self.runs: dict[str, dict[int, list[float]]] = {n: {} for n in self.costs}

    @property
    def total(self) -> int:
        """Return how many works there are."""
        one_round = len(self.costs) * (self.plan.rounds + 1)
        return len(self.costs) * (1 + REPEATED * len(self.plan.lengths)) + one_round

    def works(self) -> Iterator[None]:
        """Measure; yield after each single measurement. What could not be measured
        stands in the `error` and the `left_out` of its cost."""
        self.ends = time.perf_counter() + self.plan.seconds
        with (
            Gateway(script(1, "tool_calls")) as self.gateway,
            ExitStack() as self.at_end,
        ):
            set_standing_address(self.gateway)
            loop = Loop(QUESTION, "Use the tools.", [SCHEMA], {"look_up": look_up})
            floors = {HTTP: ("http.client", http_loop), OPENAI: ("openai", openai_loop)}
            for name, (module, make) in floors.items():
                self._prepare(name, partial(self._floor, name, module, make, loop))
                yield
            for each in self.implementations:
                self._prepare(each.name, partial(self._add_fresh, each))
                yield
            for name in MODULES if self.peers else ():
                self._prepare(name, partial(self._peer, name))
                yield
            for name in self.costs:  # warms up, and the depth is looked at here
                depths.clear()
                if self._seconds(name, CALLS) is not None and depths:
                    self.costs[name].depth = max(depths)
                yield
            for _number in range(self.plan.rounds):
                for name in self.costs:
                    took = self._seconds(name, CALLS)
                    if took is not None:
                        self.times[name].append(took * 1000 / CALLS)
                    yield
            for _number in range(REPEATED):
                for calls in self.plan.lengths:
                    for name in self.costs:
                        self._grow(name, calls)
                        yield
        self._conclude()

    def _prepare(self, name: str, work: Callable[[], Candidate]) -> None:
        if time.perf_counter() > self.ends:
            self.costs[name].error = NO_TIME
            return
        try:
            self.candidates[name] = work()
        except Exception as error:
            self.costs[name].error = one_line(error)

    def _seconds(self, name: str, calls: int) -> float | None:
        """How long one run takes; None where it failed, or nothing may begin now."""
        cost = self.costs[name]
        if cost.error or time.perf_counter() > self.ends:
            return None
        model = script(calls, self.protocols.get(name, "tool_calls"))
        with self.gateway.open_run(model, standing=True) as wire:
            began = time.perf_counter()
            try:
                told = self.candidates[name](wire.url, calls)
                took = told or time.perf_counter() - began
                made = len(wire.exchanges)
                if made != calls:
                    raise NotMeasured(f"it made {made} model calls of {calls}")
            except Exception as error:
                words = one_line(error)
                if calls == CALLS:
                    cost.error = words
                else:
                    self._leave_out(cost, calls, words)
                return None
        return took

    def _grow(self, name: str, calls: int) -> None:
        cost, seen = self.costs[name], self.runs[name]
        if cost.error or str(calls) in cost.left_out:
            return
        shorter = [(length, took) for length, took in seen.items() if length < calls]
        if shorter:
            length, took = max(shorter)
            if time.perf_counter() + calls / length * took[0] > self.ends:
                return  # would end too late even if a call took no longer
        took_now = self._seconds(name, calls)
        if took_now is not None:
            seen.setdefault(calls, []).append(took_now)

    def _conclude(self) -> None:
        for name, cost in self.costs.items():
            if cost.error:
                continue
            seen = self.times[name]
            if not seen:
                cost.error = NO_TIME
                continue
            cost.ms_per_call = statistics.median(seen)
            cost.rounds = len(seen)
            cost.ms_without_wire = statistics.median(map(sub, seen, self.times[HTTP]))
            if self.times[OPENAI]:
                cost.ratio = statistics.median(map(truediv, seen, self.times[OPENAI]))
            for calls in self.plan.lengths:
                if took := self.runs[name].get(calls):
                    cost.growth[calls] = statistics.median(took) * 1000 / calls
                elif str(calls) not in cost.left_out:
                    self._leave_out(cost, calls, NO_TIME)

    def _leave_out(self, cost: Cost, calls: int, why: str) -> None:
        cost.left_out[str(calls)] = why

    def _floor(
        self,
        name: str,
        module: str,
        make: Callable[[Loop], Callable[[str], None]],
        loop: Loop,
    ) -> Candidate:
        if find_spec(module) is None:
            raise NotMeasured(f"{module} is not installed")
        run = make(loop)
        self._add_import(self.costs[name], module)
        return lambda url, calls: run(url)

    def _add_fresh(self, each: Implementation) -> Candidate:
        """Its lines, its import, its first question in a fresh process."""
        cost = self.costs[each.name]
        agent = each.load()
        _add_lines(cost, each, self.known, self.root)
        if each.target:
            self._add_import(cost, each.target.partition(":")[0])
        if each.target and agent.tells_address:
            # one that finds the standing address would need a gateway of its own
            models = [script(CALLS, each.protocol) for _number in range(2)]
            with (
                self.gateway.open_run(models[0]) as one,
                self.gateway.open_run(models[1]) as two,
            ):
                words = ["-m", "equivalence.cost.fresh", each.target, str(CALLS)]
                first, later = self._printed([*words, one.url, two.url])
            cost.first_ms, cost.later_ms = first * 1000, later * 1000

        def run(url: str, calls: int) -> None:
            each.reset()
            ask(agent, url, calls)

        return run

    def _peer(self, name: str) -> Candidate:
        """Its import, its first question and the second one; it stays warm."""
        cost, python = self.costs[name], self._python_of_peers()
        self._add_import(cost, MODULES[name], python)
        told_errors = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  # at the end
        errors = self.at_end.enter_context(told_errors)
        process = subprocess.Popen(
            [python, "-P", peers.__file__, name, QUESTION],  # -P: `agents` is theirs
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
        )
        self.at_end.callback(_end, process)
        assert process.stdin
        assert process.stdout
        asked, told = process.stdin, process.stdout

        def run(url: str, calls: int) -> float:
            watch = threading.Timer(TIMEOUT, process.kill)
            watch.start()
            try:
                asked.write(f"{url} {calls}\n")
                asked.flush()
                line = told.readline()
            finally:
                watch.cancel()
            if not line:
                errors.seek(0)
                lines = errors.read().strip().splitlines()
                raise NotMeasured(lines[-1] if lines else f"no end in {TIMEOUT:g} s")
            took, depth = json.loads(line)
            depths.append(depth)
            return float(took)

        protocol = self.protocols.get(name, "tool_calls")
        for field_name in ("first_ms", "later_ms"):
            with self.gateway.open_run(script(CALLS, protocol)) as wire:
                setattr(cost, field_name, run(wire.url, CALLS) * 1000)
        return run

    def _python_of_peers(self) -> str:
        assert self.peers
        for place in ("bin/python", "Scripts/python.exe"):
            if (self.peers / place).exists():
                return str((self.peers / place).absolute())
        raise NotMeasured(f"{self.peers} is no environment")

    def _add_import(
        self, cost: Cost, module: str, python: str = sys.executable
    ) -> None:
        own = self.root if python == sys.executable else self.peers
        words = ["-P", "-c", IMPORT, module, str(own)]
        seconds, added = self._printed(words, python)
        cost.import_ms, cost.memory_bytes = seconds * 1000, int(added)

    def _printed(
        self, words: Sequence[str], python: str = sys.executable
    ) -> list[float]:
        """The list that a process of its own prints last."""
        remaining = max(self.ends - time.perf_counter(), 1.0)
        try:
            done = subprocess.run(
                [python, *words],
                cwd=self.root,
                capture_output=True,
                encoding="utf-8",
                timeout=min(TIMEOUT, remaining),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotMeasured(NO_TIME) from None
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise NotMeasured(lines[-1] if lines else f"exit code {done.returncode}")
        printed: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
        return printed


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _add_lines(
    cost: Cost, each: Implementation, known: Sequence[Implementation], root: Path
) -> None:
    file = _file(each, root)
    if file:
        others = tuple(x for x in (_file(other, root) for other in known) if x)
        cost.lines = implementation_lines(file, root, others)


def _file(implementation: Implementation, root: Path) -> Path | None:
    """Its source, where it lies in the project: what is installed is nobody's own."""
    if not implementation.target:
        return None
    spec = find_spec(implementation.target.partition(":")[0])
    file = Path(spec.origin) if spec and spec.origin else None
    inside = file and file.suffix == ".py" and root in file.parents
    return file if inside else None
