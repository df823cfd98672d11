"""The exact test: known values, and every table counted."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from equivalence.judge.fisher import SAMPLES, freeman_halton, smallest_p


def counted(*counts: int) -> Counter[int]:
    """So many of choice 0, so many of choice 1, …"""
    return Counter(dict(enumerate(counts)))


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
    test = freeman_halton(counted(*left), counted(*right))
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
        found = freeman_halton(counted(*left), counted(*right)).p
        assert found == pytest.approx(one_by_one(left, right)), (left, right)


def test_beyond_the_bound_it_is_sampled_and_says_so() -> None:
    sides = counted(1, 9), counted(11, 3)
    test = freeman_halton(*sides, most_states=3)
    assert test.method == f"sampled {SAMPLES:,} times, seed 0"
    assert test.p == pytest.approx(0.00276, abs=0.0015)
    assert test == freeman_halton(*sides, most_states=3)


def test_a_sampled_probability_is_the_exact_one() -> None:
    dice = random.Random(5)
    for _ in range(4):
        left, right = ([dice.randint(0, 30) for _ in range(3)] for _ in "lr")
        exact = freeman_halton(counted(*left), counted(*right))
        sampled = freeman_halton(counted(*left), counted(*right), most_exact=0)
        assert (exact.method, sampled.method[:7]) == ("exact", "sampled")
        error = 5 * math.sqrt(exact.p * (1 - exact.p) / SAMPLES) + 1 / SAMPLES
        assert sampled.p == pytest.approx(exact.p, abs=error), (left, right)


def test_many_single_choices_stay_exact_and_quick() -> None:
    left, right = Counter(range(100)), Counter(range(100, 200))
    started = time.process_time()
    assert freeman_halton(left, right).p == 1
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("left", "right", "low", "high"),
    [
        (counted(9_000, 1_000), counted(8_000, 2_000), 0, 1e-4),
        (counted(9_000, 1_000), counted(9_000, 1_000), 0.9, 1),
        pytest.param(
            *(counted(*range(200)), counted(*range(200)), 0.9, 1),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(counted(*range(200)), counted(*reversed(range(200))), 0, 1e-4),
            marks=pytest.mark.slow,
        ),
        (Counter(range(10_000)), Counter(range(10_000, 20_000)), 1, 1),
        (counted(10_000), Counter({1: 10}), 0, 1e-4),
    ],
)
def test_ten_thousand_runs_a_side_do_not_take_long(
    left: Counter[int], right: Counter[int], low: float, high: float
) -> None:
    started = time.process_time()
    assert low <= freeman_halton(left, right).p <= high
    assert time.process_time() - started < 20
