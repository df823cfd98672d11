"""Runs asked by several processes at once: of this machine, or of a Dask cluster.

Processes and not threads: an agent may end its process, change its environment, or take
its base URL from there. What goes to a worker is plain data and holds no key: the
worker reads that from its own environment, and starts a gateway of its own. What it has
done comes back as lines of a run file, and the client alone writes them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.runs.files import from_line, to_line
from equivalence.runs.implementation import Implementation
from equivalence.runs.plan import Plan
from equivalence.runs.record import Asked, Run
from equivalence.runs.redaction import Redaction
from equivalence.runs.session import Session
from equivalence.runs.upstreams import Upstreams, new_gateway
from equivalence.runs.watched import load_tools
from equivalence.settings import Settings, check_endpoint, shown_url

Numbered = tuple[int, Asked]
"""What is asked, and the number that it has in its plan."""
Done = list[tuple[bool, bytes]]
"""The runs of a task as lines, each with whether it was asked now."""


@dataclass(frozen=True)
class Task:
    """What one implementation is asked that begins with one question: it needs one
    process, because an agent may keep the conversation."""

    implementation: Implementation
    asked: tuple[Numbered, ...]
    settings: Mapping[str, Any]
    """All but the key, and but a base URL that may hold one."""
    tools_name: str
    note: str
    redaction: Redaction
    upstream: str | None
    folder: str
    """Where modules and scripts are searched."""
    recorded: Mapping[Asked, bytes]
    """The lines of what need not be asked again."""
    seed: int
    jobs: int


def tasks(
    plan: Plan,
    upstreams: Upstreams,
    recorded: Callable[[Implementation, Asked], Run | None],
    seed: int,
) -> Iterator[Task]:
    """Yield the tasks of the plan, in its order."""
    fields = plan.settings.model_dump(exclude={"api_key", "gateway_url"})
    url = plan.settings.base_url
    if url and shown_url(url) != url:
        del fields["base_url"]
    groups: dict[tuple[str, int, str], tuple[Implementation, list[Numbered]]] = {}
    for number, implementation, asked in plan.runs():
        group = groups.setdefault(asked.conversation, (implementation, []))
        group[1].append((number, asked))
    for implementation, numbered in groups.values():
        known = {
            asked: to_line(run)
            for _number, asked in numbered
            if (run := recorded(implementation, asked))
        }
        yield Task(
            implementation,
            tuple(numbered),
            fields,
            plan.tools_name,
            plan.note,
            plan.redaction,
            upstreams.named,
            str(upstreams.folder),
            known,
            seed,
            plan.jobs,
        )


# ------------------------------------------------------------------------- in a worker

_ONE_AT_A_TIME = threading.Lock()
"""A worker of a cluster may have several threads, but there is one environment."""


def work(task: Task) -> Done:
    """Ask what the task says and return the runs. Raises UsageError if this process
    lacks something for it."""
    with _ONE_AT_A_TIME:
        if task.folder not in sys.path:
            sys.path.insert(0, task.folder)
        task.implementation.check()
        settings = Settings(**task.settings)
        if settings.base_url:
            check_endpoint(settings, needs_key=True)
        asked = [one for _number, one in task.asked]
        plan = Plan(
            [task.implementation],
            [[*one.history, one.question] for one in asked],
            settings,
            load_tools(task.tools_name),
            task.tools_name,
            note=task.note,
            redaction=task.redaction,
            jobs=task.jobs,
        )
        upstreams = Upstreams(settings, task.upstream, Path(task.folder))
        runs = ((number, task.implementation, one) for number, one in task.asked)

        def recorded(_one: Implementation, asked: Asked) -> Run | None:
            line = task.recorded.get(asked)
            return from_line(line) if line else None

        with new_gateway(settings, upstreams(0)) as gateway:
            session = Session(plan, gateway)
            done = session.ask_each(runs, upstreams, recorded, task.seed)
            return [(new, to_line(run)) for run, new in done]


_at_work = False


def _in_process(task: Task) -> Done:
    global _at_work
    _at_work = True
    try:
        return work(task)
    finally:
        _at_work = False


def _begin() -> None:
    """Ctrl-C reaches every process of the terminal: it ends a run, not a wait. What an
    agent prints goes to standard error: the parent's JSON may be on the other."""
    os.dup2(2, 1)

    def interrupt(*_: object) -> None:
        if _at_work:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)


# ------------------------------------------------------------------------ in the client


Map = Callable[[Iterator[Task]], Iterator[Done]]
"""Yields what comes of tasks, as it comes."""


def ask_each(
    tasks: Iterator[Task], map_tasks: Map, names: Sequence[str]
) -> Iterator[tuple[Run, bool]]:
    """Yield the runs of the tasks as they come, each with whether it was asked now. A
    task of which all is recorded goes to nobody.

    The first of each implementation come in the order of `names`, whoever is quicker:
    what stands first in a file is the baseline of those that read it.
    """
    known: deque[Task] = deque()
    waiting: list[Done] = []
    begun: set[str] = set()

    def to_ask() -> Iterator[Task]:
        for task in tasks:
            if len(task.recorded) < len(task.asked):
                yield task
            else:
                known.append(task)

    def recorded() -> Iterator[tuple[Run, bool]]:
        while known:
            for line in known.popleft().recorded.values():
                run = from_line(line)
                begun.add(run.implementation)
                yield run, False

    def ready(at_the_end: bool = False) -> Iterator[tuple[Run, bool]]:
        for name in names:
            if name not in begun:
                mine = [done for done in waiting if _of(done) == name]
                if not mine and not at_the_end:
                    break
                begun.add(name)
        may_go = [each for each in waiting if _of(each) in begun]
        for done in sorted(may_go, key=lambda done: names.index(_of(done))):
            waiting.remove(done)
            yield from ((from_line(line), new) for new, line in done)

    try:
        for done in map_tasks(to_ask()):
            yield from recorded()
            waiting.append(done)
            yield from ready()
    except KeyboardInterrupt:
        yield from ready(at_the_end=True)  # what is finished is not lost
        raise
    yield from recorded()
    yield from ready(at_the_end=True)


def _of(done: Done) -> str:
    """The implementation of a task's runs."""
    return from_line(done[0][1]).implementation


@contextlib.contextmanager
def processes(jobs: int) -> Iterator[tuple[int, Map]]:
    """Start that many processes of this machine; yield how many runs they take at once,
    and what maps tasks onto them. Raises UsageError if one ended before its task."""
    context = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin)

    def map_tasks(tasks: Iterator[Task]) -> Iterator[Done]:
        # No more than twice the jobs are handed over: a plan may have a million.
        begun = islice(tasks, 2 * jobs)
        pending = {pool.submit(_in_process, task) for task in begun}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                pending |= {pool.submit(_in_process, t) for t in islice(tasks, 1)}
                yield future.result()

    try:
        yield jobs, map_tasks
    except BrokenExecutor:
        raise UsageError(
            _(
                "a worker process ended in the middle of a run: an agent ended it, or"
                " the machine ran out of memory. The same command goes on from here"
            )
        ) from None
    finally:
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def cluster(address: str) -> Iterator[tuple[int, Map]]:
    """Connect to a Dask cluster; yield how many runs it takes at once, and what maps
    tasks onto it. Raises UsageError if there is none, or a worker lacks something."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise UsageError(
            _('Dask is not installed: pip install "distributed"')
        ) from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            _("no Dask cluster answers at {address}: {error}").format(
                address=address, error=type(error).__name__
            )
        ) from None
    with client:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise UsageError(
                _("the Dask cluster at {address} has no worker").format(address=address)
            )

        def map_tasks(tasks: Iterator[Task]) -> Iterator[Done]:
            def submit(task: Task) -> Any:
                return client.submit(work, task, pure=False, retries=0)

            coming = as_completed([submit(task) for task in islice(tasks, 2 * workers)])
            for future in coming:
                coming.update([submit(task) for task in islice(tasks, 1)])
                yield _result(future)

        yield workers, map_tasks


def _result(future: Any) -> Done:
    """The runs of a task. Raises UsageError with what its worker lacked."""
    error = future.exception()
    if error is None:
        done: Done = future.result()
        return done
    if isinstance(error, UsageError | ImportError):
        raise UsageError(_("a Dask worker: {error}").format(error=error))
    kind = type(error).__name__
    raise UsageError(
        _("a Dask worker failed: {kind}: {error}").format(kind=kind, error=error)
    )
