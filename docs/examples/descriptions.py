"""The first model call of twenty questions, recorded from a real model: the same tools,
described well and described in two words."""

import sys
from pathlib import Path

from equivalence.runs.files import read_runs
from equivalence.score.cases import read_cases, told
from tools import TOOLS

RECORDED = Path("cassettes/qwen2.5-coder-1.5b-descriptions.jsonl")
NAMES = {
    "stage3": "described well",
    "docs.examples.short_descriptions:run_agent": "short",
}

cases, _ = read_cases(Path("scenarios/benchmark.yaml"), TOOLS)
asked = {case.questions[0].ask: case for case in cases}


def first_call(run):
    """Say whether the tools are right, and whether the calls are: nothing is called
    where nothing is to be called."""
    case = asked[run.question]
    wanted = [call for call in case.questions[0].calls if not call.after]
    right_tools = {s.tool for s in run.steps} <= {call.tool for call in wanted}
    right_tools = right_tools and bool(run.steps) == bool(wanted)
    made = all(any(c.made_by(s, case.names) for c in wanted) for s in run.steps)
    return right_tools, right_tools and made


if __name__ == "__main__":
    recorded = Path(sys.argv[1]) if sys.argv[1:] else RECORDED
    for implementation, name in NAMES.items():
        runs = [r for r in read_runs(recorded) if r.implementation == implementation]
        judged = [(run, *first_call(run)) for run in runs]
        print(f"{name}: {len(judged)} questions")
        print(f"    right tool, or none: {sum(tools for _, tools, _ in judged)}")
        print(f"    right arguments too: {sum(calls for _, _, calls in judged)}")
        for run, _, right in judged:
            if not right:
                calls = [told(step.tool, step.arguments) for step in run.steps]
                print(f"      {run.question} → {', '.join(calls) or 'no call'}")
