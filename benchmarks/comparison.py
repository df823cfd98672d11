"""The comparison core beside agentevals' strict match, in one run.

Pairs of traces of three turns, of which half differ in one argument. Ours names the
place and the cause; agentevals says yes or no. Both get their traces as each reads
them: records and messages that are in memory already.

    python -m benchmarks.comparison
"""

from __future__ import annotations

import json
import statistics
from typing import Any

from benchmarks.figures import Figure, interleaved, ratio, table
from equivalence.gateway import Exchange
from equivalence.judge.compare import compare
from equivalence.runs.record import Run, Step

PAIRS = 200
ROUNDS = 7
GOAL = 15


def trace(number: int, city: str) -> tuple[Run, list[dict[str, Any]]]:
    """Return three turns, two of them calls, as a record and as messages."""
    cities = ("Rome", "Paris", city)
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"question {number}"}]
    exchanges, steps = [], []
    system = {"role": "system", "content": "You are a careful assistant."}
    for turn in range(4):
        request = {"model": "m", "temperature": 0, "messages": [system, *messages]}
        message: dict[str, Any] = {"role": "assistant", "content": "It is sunny."}
        if turn < 3:
            arguments = json.dumps({"city": cities[turn], "days": turn})
            call = {
                "id": f"call{turn:05}",
                "type": "function",
                "function": {"name": "get_weather", "arguments": arguments},
            }
            message = {"role": "assistant", "content": "", "tool_calls": [call]}
        reply = {"choices": [{"message": message, "finish_reason": "stop"}]}
        exchanges.append(Exchange(request, reply, 200, began=turn * 10.0, ms=5.0))
        messages = [*messages, message]
        if turn < 3:
            result = f"{cities[turn]}: sunny"
            messages.append(
                {"role": "tool", "tool_call_id": f"call{turn:05}", "content": result}
            )
            parsed = json.loads(arguments)
            steps.append(
                Step(turn + 1, "get_weather", parsed, arguments, result, True, turn)
            )
    run = Run("x", f"question {number}", status="completed", answer="It is sunny.")
    run.steps, run.exchanges = steps, exchanges
    return run, messages


def measure() -> list[Figure]:
    """Return the ratio of the medians; both are checked to find the same."""
    try:
        from agentevals.trajectory.match import create_trajectory_match_evaluator
    except ImportError:
        print("agentevals is missing: pip install -r requirements.txt")
        return []

    strict = create_trajectory_match_evaluator(trajectory_match_mode="strict")
    pairs = [
        (trace(n, "Oslo"), trace(n, "Oslo" if n % 2 else "Bern")) for n in range(PAIRS)
    ]

    def ours() -> list[bool]:
        return [compare(a, b) is None for (a, _), (b, _) in pairs]

    def theirs() -> list[bool]:
        return [
            strict(outputs=a, reference_outputs=b)["score"] for (_, a), (_, b) in pairs
        ]

    assert ours() == theirs() == [bool(n % 2) for n in range(PAIRS)]
    place = compare(pairs[0][0][0], pairs[0][1][0])
    assert place is not None
    assert place.path.endswith("arguments.city")
    times = interleaved({"ours": ours, "agentevals": theirs}, ROUNDS)
    for name, seen in times.items():
        print(f"{name:12}{statistics.median(seen) / PAIRS * 1e6:9.1f} µs a pair")
    faster = ratio(times["agentevals"], times["ours"])
    what = "comparison core"
    return [Figure(what, faster, "times agentevals strict", GOAL, at_least=True)]


if __name__ == "__main__":
    print(table(measure()))
