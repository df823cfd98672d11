"""`make bench`: how a figure stands beside its goal. What it measures is asserted in no
test: figures vary."""

from __future__ import annotations

from benchmarks.figures import Figure, interleaved, ratio, table


def test_a_figure_says_whether_its_goal_is_reached() -> None:
    assert Figure("x", 4.0, "times", 4).reached is True
    assert Figure("x", 4.1, "times", 4).reached is False
    assert Figure("x", 4.0, "times", 4, at_least=True).reached is True
    assert Figure("x", 3.9, "times", 4, at_least=True).reached is False
    assert Figure("x", 3.9, "times").reached is None


def test_the_table_has_figure_and_goal() -> None:
    figures = [
        Figure("memory", 1234.5, "MB", 200),
        Figure("speed", 5.0, "times", 4, at_least=True),
        Figure("alone", 1.0, "ms"),
    ]
    assert table(figures).splitlines() == [
        "what    figure      goal         reached",
        "memory  1,234 MB    at most 200  NO",
        "speed   5.00 times  at least 4   yes",
        "alone   1.00 ms",
    ]


def test_works_come_in_turn_and_the_warm_round_does_not_count() -> None:
    came: list[str] = []
    works = {"a": lambda: came.append("a"), "b": lambda: came.append("b")}
    times = interleaved(works, 3, warm=1)
    assert came == ["a", "b"] * 4
    assert {name: len(seen) for name, seen in times.items()} == {"a": 3, "b": 3}


def test_a_ratio_is_taken_within_each_round() -> None:
    assert ratio([2.0, 20.0, 3.0], [1.0, 10.0, 1.0]) == 2.0
