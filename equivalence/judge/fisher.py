"""One exact test: do two lists of choices come from the same distribution?"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, prod

MOST_STATES = 200_000
"""Beyond this many intermediate results the test is sampled instead."""

SAMPLES = 20_000


@dataclass(frozen=True)
class Test:
    """The probability, were the two alike, of a table as unlikely as this one."""

    p: float
    method: str
    """"exact", or "sampled" with the number of samples."""


def freeman_halton(
    lefts: Sequence[Hashable],
    rights: Sequence[Hashable],
    *,
    most_states: int = MOST_STATES,
) -> Test:
    """Return Freeman and Halton's test (Fisher's, for any number of choices).

    With the margins given, a table's probability is the product of C(column, left) over
    comb(all, lefts): whole numbers, so nothing is lost to rounding. The tables are not
    listed one by one: those with the same left total and the same product so far are
    counted together, column by column.
    """
    left, right = Counter(lefts), Counter(rights)
    columns = [(left[key], left[key] + right[key]) for key in left | right]
    observed = prod(comb(total, taken) for taken, total in columns)
    ways: dict[tuple[int, int], int] = {(0, 1): 1}
    for _, total in columns:
        following: dict[tuple[int, int], int] = {}
        for (taken, weight), count in ways.items():
            for more in range(min(total, len(lefts) - taken) + 1):
                key = taken + more, weight * comb(total, more)
                following[key] = following.get(key, 0) + count
        ways = following
        if len(ways) > most_states:
            return _sampled(lefts, rights, observed)
    unlikely = sum(
        weight * count
        for (taken, weight), count in ways.items()
        if taken == len(lefts) and weight <= observed
    )
    tables = comb(len(lefts) + len(rights), len(lefts))
    return Test(float(Fraction(unlikely, tables)), "exact")


def smallest_p(lefts: int, rights: int) -> float:
    """Return the p of two samples of these sizes that have no choice in common: no two
    samples of these sizes can differ more clearly."""
    return (2 if lefts == rights else 1) / comb(lefts + rights, lefts)


def _sampled(
    lefts: Sequence[Hashable], rights: Sequence[Hashable], observed: int
) -> Test:
    """The same probability from seeded shuffles, which repeat."""
    everything = [*lefts, *rights]
    totals = Counter(everything)
    shuffle = random.Random(0)
    hits = 0
    for _ in range(SAMPLES):
        shuffle.shuffle(everything)
        taken = Counter(everything[: len(lefts)])
        hits += prod(comb(totals[key], taken[key]) for key in taken) <= observed
    return Test((hits + 1) / (SAMPLES + 1), f"sampled {SAMPLES:,} times, seed 0")
