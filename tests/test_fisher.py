"""The exact test: known values, and every table counted."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Sequence

import pytest

from equivalence.judge.fisher import SAMPLES, freeman_halton, smallest_p


def spread(*counts: int) -> list[int]:
    """So many of choice 0, so many of choice 1, …"""
    return [choice for choice, count in enumerate(counts) for _ in range(count)]


@pytest.mark.parametrize(
    ("left", "right", "p"),
    [
        ((3, 1), (1, 3), 34 / 70),  # Fisher's lady tasting tea, two-sided
        ((1, 9), (11, 3), 0.002759456),  # Wikipedia's example of Fisher's test
        ((8, 2), (1, 5), 0.03496503),  # scipy's example
        ((10, 0), (0, 10), 2 / math.comb(20, 10)),
        ((20, 0), (0, 20), smallest_p(20, 20)),
        ((5, 5), (5, 5), 1.0),
        ((4, 0), (4, 0), 1.0),
    ],
)
def test_known_values(left: Sequence[int], right: Sequence[int], p: float) -> None:
    test = freeman_halton(spread(*left), spread(*right))
    assert test.p == pytest.approx(p, rel=1e-6)
    assert test.method == "exact"


def one_by_one(left: Sequence[int], right: Sequence[int]) -> float:
    """The same probability, from every table with these margins."""
    totals = [a + b for a, b in zip(left, right, strict=True)]
    every = math.comb(sum(totals), sum(left))

    def probability(taken: Sequence[int]) -> float:
        pairs = zip(totals, taken, strict=True)
        return math.prod(math.comb(total, x) for total, x in pairs) / every

    tables = itertools.product(*(range(total + 1) for total in totals))
    chances = [probability(t) for t in tables if sum(t) == sum(left)]
    return sum(p for p in chances if p <= probability(left) * (1 + 1e-9))


def test_it_equals_the_sum_over_all_tables() -> None:
    dice = random.Random(4)
    for _ in range(60):
        choices = dice.randint(1, 5)
        left, right = ([dice.randint(0, 4) for _ in range(choices)] for _ in "lr")
        left[0] += 1
        right[-1] += 1
        found = freeman_halton(spread(*left), spread(*right)).p
        assert found == pytest.approx(one_by_one(left, right)), (left, right)


def test_beyond_the_bound_it_is_sampled_and_says_so() -> None:
    sides = spread(1, 9), spread(11, 3)
    test = freeman_halton(*sides, most_states=3)
    assert test.method == f"sampled {SAMPLES:,} times, seed 0"
    assert test.p == pytest.approx(0.00276, abs=0.0015)
    assert test == freeman_halton(*sides, most_states=3)


def test_many_single_choices_stay_exact_and_quick() -> None:
    started = time.perf_counter()
    assert freeman_halton(range(100), range(100, 200)).p == 1
    assert time.perf_counter() - started < 10
