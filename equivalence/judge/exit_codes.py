"""The exit codes, one table for all commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from equivalence.language import N_

if TYPE_CHECKING:
    from equivalence.judge.compare import Verdict

EXIT_CODES = N_(
    "exit codes:\n  0    every pair is equivalent or accepted;"
    " with one implementation, every run\n       is completed"
    "\n  1    a difference; or a case, a scenario, an exercise"
    " or a probe that failed\n  3    inconclusive (a run failed"
    " before it could be judged), or indistinguishable\n  2"
    "    wrong usage, settings or files\n  130  interrupted by"
    " Ctrl-C\n"
)


def exit_code(
    verdicts: Sequence[Verdict], statuses: Iterable[str] = (), *, failed: bool = False
) -> int:
    """Return the exit code for these verdicts; for how the runs ended where there was
    nobody to compare with. `failed`: what was asked for did not come to its end."""
    found = {verdict.verdict for verdict in verdicts}
    if "different" in found:
        return 1
    if failed or found - {"equivalent", "accepted"}:
        return 3
    if found:
        return 0
    ends = set(statuses)
    if not ends or ends & {"failed", "model_error"}:
        return 3
    return 0 if ends == {"completed"} else 1
