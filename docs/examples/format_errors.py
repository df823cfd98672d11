"""How often a real model, recorded, broke the format of its replies."""

from pathlib import Path

from equivalence.runs.files import read_runs
from stage5_text_react.parser import Unreadable, parse
from tools import TOOLS

NAME = "cassettes/qwen2.5-coder-1.5b-temperature-{}.jsonl"
tools = {tool.__name__: tool for tool in TOOLS}


def shown(what, broken, replies):
    share = 100 * len(broken) / len(replies)
    print(f"{what}: {len(broken)} of {len(replies)} replies, {share:.1f} %")


for temperature in ("0", "0.7"):
    runs = read_runs(Path(NAME.format(temperature)))
    replies = [
        each
        for run in runs
        if run.implementation in ("stage1", "stage3")
        for each in run.model_calls
    ]
    broken = [each for each in replies if each.repairs]
    shown(f"tool calls broken at temperature {temperature}", broken, replies)

runs = read_runs(Path(NAME.format("0")))
texts = [
    parse(choice["message"]["content"], tools, choice["finish_reason"])
    for run in runs
    if run.implementation == "stage5"
    for each in run.model_calls
    for choice in each.raw_reply["choices"]
]
unreadable = [each for each in texts if isinstance(each, Unreadable)]
shown("ReAct text unreadable at temperature 0", unreadable, texts)
