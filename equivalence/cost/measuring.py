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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from operator import sub, truediv
from pathlib import Path
from typing import Any

from equivalence.cost.agents import QUESTION, SCHEMA, ask, depths, look_up, script
from equivalence.cost.floors import Loop, http_loop, openai_loop
from equivalence.cost.lines import implementation_lines
from equivalence.errors import UsageError
from equivalence.gateway import Gateway
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import one_line, set_standing_address

CALLS = 4
GROWTH = (1, 10, 50, 200)
TIMEOUT = 60.0
"""Seconds that a process of its own may take."""
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


class NotMeasured(UsageError):
    """An implementation did not make the model calls of the conversation."""


Candidate = Callable[[str, int], None]
"""Answers at a base URL with so many model calls."""


def measure(
    implementations: Sequence[Implementation],
    known: Sequence[Implementation],
    root: Path,
    rounds: int,
) -> Iterator[list[Cost]]:
    """Yield the costs so far, once for each finished round and growth step; the last
    ones are whole. `known`: all of the table, whose files are not each other's."""
    loop = Loop(QUESTION, "Use the tools.", [SCHEMA], {"look_up": look_up})
    http = http_loop(loop)
    candidates: dict[str, Candidate] = {HTTP: lambda url, calls: http(url)}
    costs = {HTTP: Cost(HTTP, floor=True)}
    _add_import(costs[HTTP], "http.client", root)
    costs[OPENAI] = Cost(OPENAI, floor=True)
    try:
        warm = openai_loop(loop)
    except ImportError:
        costs[OPENAI].error = "openai is not installed"
    else:
        candidates[OPENAI] = lambda url, calls: warm(url)
        _add_import(costs[OPENAI], "openai", root)
    protocols: dict[str, str] = {}
    with Gateway(script(1, "tool_calls")) as gateway:
        set_standing_address(gateway)
        for each in implementations:
            cost = costs[each.name] = Cost(each.name)
            protocols[each.name] = each.protocol
            try:
                _add_lines(cost, each, known, root)
                _add_fresh(cost, each, gateway, root)
                candidates[each.name] = _candidate(each)
            except Exception as error:
                cost.error = one_line(error)
        yield [*costs.values()]

        def seconds(name: str, calls: int) -> float | None:
            protocol = protocols.get(name, "tool_calls")
            with gateway.open_run(script(calls, protocol), standing=True) as wire:
                began = time.perf_counter()
                try:
                    candidates[name](wire.url, calls)
                    took = time.perf_counter() - began
                    if len(wire.exchanges) != calls:
                        raise NotMeasured(
                            f"it made {len(wire.exchanges)} model calls of {calls}"
                        )
                except Exception as error:
                    costs[name].error = one_line(error)
                    return None
            return took

        def turn(calls: int) -> dict[str, float]:
            names = [name for name in candidates if not costs[name].error]
            took = {name: seconds(name, calls) for name in names}
            return {name: each for name, each in took.items() if each is not None}

        for name in candidates:  # warms up, and the depth is looked at here
            depths.clear()
            if seconds(name, CALLS) is not None and depths:
                costs[name].depth = max(depths)
        times: dict[str, list[float]] = {name: [] for name in candidates}
        for _number in range(rounds):
            for name, took in turn(CALLS).items():
                times[name].append(took * 1000 / CALLS)
            _add_times(costs, times)
            yield [*costs.values()]
        for calls in GROWTH:
            for name, took in turn(calls).items():
                costs[name].growth[calls] = took * 1000 / calls
            yield [*costs.values()]


def _candidate(implementation: Implementation) -> Candidate:
    agent = implementation.load()

    def run(url: str, calls: int) -> None:
        implementation.reset()
        ask(agent, url, calls)

    return run


def _add_times(costs: Mapping[str, Cost], times: Mapping[str, list[float]]) -> None:
    for name, seen in times.items():
        if costs[name].error or not seen:
            continue
        cost = costs[name]
        cost.ms_per_call = statistics.median(seen)
        cost.ms_without_wire = statistics.median(map(sub, seen, times[HTTP]))
        if times.get(OPENAI):
            cost.ratio = statistics.median(map(truediv, seen, times[OPENAI]))


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


def _add_fresh(cost: Cost, each: Implementation, gateway: Gateway, root: Path) -> None:
    if not each.target:
        return
    _add_import(cost, each.target.partition(":")[0], root)
    model = script(CALLS, each.protocol)
    with gateway.open_run(model, standing=True) as one:
        if not each.load().tells_address:
            return  # its process would need a gateway of its own
        with gateway.open_run(script(CALLS, each.protocol)) as two:
            words = ["-m", "equivalence.cost.fresh", each.target, str(CALLS)]
            first, later = _printed([*words, one.url, two.url], root)
    cost.first_ms, cost.later_ms = first * 1000, later * 1000


def _add_import(cost: Cost, module: str, root: Path) -> None:
    seconds, added = _printed(["-c", IMPORT, module, str(root)], root)
    cost.import_ms, cost.memory_bytes = seconds * 1000, int(added) or None


def _printed(words: Sequence[str], folder: Path) -> list[float]:
    """The list that a process of its own prints last."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NotMeasured(lines[-1])
    printed: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return printed
