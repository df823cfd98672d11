"""Exercise 6: the judge, against stage 3, must find a difference of one cause."""

from __future__ import annotations

from itertools import zip_longest

from equivalence.judge.compare import judge, request
from equivalence.runs.implementation import Implementation
from exercises.checking import Checked

STAGE3 = Implementation("stage3", "stage3_pure_loop.agent:run_agent")
CITIES = "北京和上海今天哪个更暖和？"
OTHERS = (
    "北京今天天气怎么样？",
    "腾讯股票多少钱？持有 100 股市值多少港元？",
    "介绍一下你自己",
)


def check(file: Checked) -> None:
    run = file.completed(CITIES)
    stage3 = file.play(STAGE3, CITIES)
    place = judge(stage3, run).divergence
    if place is None:
        file.fail("no_difference", *file.seen(run))
    said = file.divergence(place, stage3, run)
    for ours, yours in zip_longest(stage3.exchanges, run.exchanges):
        if not ours or not yours or request(ours) != request(yours):
            file.fail("requests_differ", *said)
    if run.answer != stage3.answer:
        file.fail("answers_differ", *said)
    if place.cause != "control":
        file.fail("wrong_cause", *said, cause=place.cause)
    for question in OTHERS:
        file.same_as(STAGE3, question, "not_the_same")
