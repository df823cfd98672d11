"""The cases that a real model, recorded, did not complete, by what it did instead."""

from collections import Counter
from pathlib import Path

from equivalence.runs.files import read_runs
from equivalence.score.cases import read_cases, told
from equivalence.score.figures import Benchmark
from tools import TOOLS

RECORDED = Path("cassettes/qwen2.5-coder-1.5b-temperature-0.jsonl")


def what_it_did(each):
    """Say what was wrong with an answered case, and show it."""
    steps = [step for run in each.runs for step in run.steps]
    calls = Counter(told(step.tool, step.arguments) for step in steps)
    call, times = (calls.most_common(1) or [("", 0)])[0]
    guesses = [told(s.tool, s.arguments) for s in steps if s.ungrounded]
    answer = each.runs[-1].answer
    if each.case.kind == "none":
        return "used a tool where none is needed", call
    if times > 2 and steps[-1].ok is False:
        return "repeated a call that the tool refused", f"{times} times {call}"
    if each.runs[-1].status == "step_limit" and times > 2:
        return (
            "asked for the same thing until the budget ended",
            f"{times} times {call}",
        )
    if each.runs[-1].status == "step_limit":
        return "went on with other calls until the budget ended", list(calls)[-1]
    if guesses:
        return "made up a number and counted with it", guesses[0]
    return "left out a call, and answered", answer


def failed(implementation):
    """Return what went wrong, each with the cases in which it did."""
    cases, _ = read_cases(Path("scenarios/benchmark.yaml"), TOOLS)
    benchmark = Benchmark(cases)
    for run in read_runs(RECORDED):
        if run.implementation == implementation:
            benchmark.add(run)
    found = {}
    for each in benchmark.answered:
        if not each.outcome.completed:
            wrong, shown = what_it_did(each)
            found.setdefault(wrong, []).append(f"{each.case.id}: {shown}")
    return found


if __name__ == "__main__":
    found = failed("stage3")
    print(f"stage3: {sum(map(len, found.values()))} cases not completed")
    for wrong, cases in sorted(found.items(), key=lambda pair: -len(pair[1])):
        print(wrong)
        print(*(f"    {case}" for case in cases), sep="\n")
