"""One exact test: do two counts of choices come from the same distribution?"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, exp, lgamma, prod
from typing import TypeVar

MOST_STATES = 200_000
"""Beyond this many intermediate results the test is sampled instead."""

MOST_EXACT = 1_000
"""Beyond this many on both sides together, too: their numbers have too many digits."""

SAMPLES = 20_000

MOST_CHOICES = 20
"""Where the test is sampled and there are more, the rarest are taken as one, and so are
all that were made once. Which ones these are does not depend on how they fell to the
sides, so the test stays valid."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Test:
    """The probability, were the two alike, of a table as unlikely as this one."""

    p: float
    method: str
    """"exact", or "sampled" with the number of samples."""


def freeman_halton(
    left: Counter[K],
    right: Counter[K],
    *,
    most_states: int = MOST_STATES,
    most_exact: int = MOST_EXACT,
) -> Test:
    """Return Freeman and Halton's test (Fisher's, for any number of choices).

    With the margins given, a table's probability is the product of C(column, left) over
    comb(all, lefts): whole numbers, so nothing is lost to rounding. The tables are not
    listed one by one: those with the same left total and the same product so far are
    counted together, column by column.
    """
    both = left + right
    choices = sorted(both, key=lambda choice: (-both[choice], repr(choice)))
    columns = [(left[choice], both[choice]) for choice in choices]
    lefts, everything = left.total(), left.total() + right.total()
    if everything > most_exact:
        return _sampled(columns, lefts)
    observed = prod(comb(total, taken) for taken, total in columns)
    ways: dict[tuple[int, int], int] = {(0, 1): 1}
    for _, total in columns:
        following: dict[tuple[int, int], int] = {}
        for (taken, weight), count in ways.items():
            for more in range(min(total, lefts - taken) + 1):
                key = taken + more, weight * comb(total, more)
                following[key] = following.get(key, 0) + count
            if len(following) > most_states:
                return _sampled(columns, lefts)
        ways = following
    unlikely = sum(
        weight * count
        for (taken, weight), count in ways.items()
        if taken == lefts and weight <= observed
    )
    return Test(float(Fraction(unlikely, comb(everything, lefts))), "exact")


def smallest_p(lefts: int, rights: int) -> float:
    """Return the p of two samples of these sizes that have no choice in common: no two
    samples of these sizes can differ more clearly."""
    return float(Fraction(2 if lefts == rights else 1, comb(lefts + rights, lefts)))


def _sampled(columns: Sequence[tuple[int, int]], lefts: int) -> Test:
    """The same probability from seeded tables with these margins, which repeat; the
    columns come with the commonest choice first."""
    if len(columns) > MOST_CHOICES:
        kept = [column for column in columns[:MOST_CHOICES] if column[1] > 1]
        rarest = columns[len(kept) :]
        together = sum(taken for taken, _ in rarest), sum(total for _, total in rarest)
        columns = [*kept, together]
    totals = [total for _, total in columns]
    observed = sum(_log_comb(total, taken) for taken, total in columns)
    observed += 1e-9 * max(1.0, abs(observed))  # the same table, added in another order
    draw = random.Random(0)
    hits = 0
    for _ in range(SAMPLES):
        table = zip(totals, _table(totals, lefts, draw), strict=True)
        hits += sum(_log_comb(total, taken) for total, taken in table) <= observed
    return Test((hits + 1) / (SAMPLES + 1), f"sampled {SAMPLES:,} times, seed 0")


def _table(totals: Sequence[int], lefts: int, draw: random.Random) -> Iterator[int]:
    """How many of each column fall to the left side, drawn column by column."""
    others = sum(totals)
    for total in totals:
        others -= total
        taken = _hypergeometric(total, others, lefts, draw)
        lefts -= taken
        yield taken


def _hypergeometric(good: int, bad: int, drawn: int, draw: random.Random) -> int:
    """How many of `drawn` are good: from the likeliest number outwards, until the
    chances add up to a random one. So it takes as many steps as it is far from there.
    """
    lowest, highest = max(0, drawn - bad), min(good, drawn)
    if lowest == highest:
        return lowest
    mode = (drawn + 1) * (good + 1) // (good + bad + 2)
    down = up = min(max(mode, lowest), highest)
    below = above = exp(
        _log_comb(good, up) + _log_comb(bad, drawn - up) - _log_comb(good + bad, drawn)
    )
    left = draw.random() - above
    while left > 0 and (down > lowest or up < highest):
        if up < highest:
            above *= (good - up) * (drawn - up) / (up + 1) / (bad - drawn + up + 1)
            up += 1
            left -= above
            if left <= 0:
                return up
        if down > lowest:
            below *= (
                down * (bad - drawn + down) / (good - down + 1) / (drawn - down + 1)
            )
            down -= 1
            left -= below
            if left <= 0:
                return down
    return up if left <= 0 else mode


def _log_comb(total: int, taken: int) -> float:
    return lgamma(total + 1) - lgamma(taken + 1) - lgamma(total - taken + 1)
