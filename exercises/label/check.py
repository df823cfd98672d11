"""Exercise 5: scripted models that keep the format, and ones that do not."""

from __future__ import annotations

from equivalence.runs.implementation import Implementation
from exercises.checking import Checked, says, script

STAGE5 = Implementation("stage5", "stage5_text_react.agent:run_agent", protocol="text")
QUESTION = "How warm is it in Beijing?"
ACTION = (
    'Thought: I look it up.\nAction: get_weather\nAction Input: {"city": "Beijing"}'
)
WORD_IN_THOUGHT = (
    "Thought: the user wants to read this. Answer: and then a number. I look it up."
    '\nAction: get_weather\nAction Input: {"city": "Beijing"}'
)
WANTED = "25 °C in Beijing."
ENDINGS = {
    f"Thought: I know enough.\nAnswer: {WANTED}": WANTED,
    f"Answer: {WANTED}": WANTED,
    f"Thought: I know enough.\nanswer: {WANTED}": WANTED,
    "Answer: Sunny.\nAnd 25 °C in Beijing.": "Sunny.\nAnd 25 °C in Beijing.",
}
KEPT = (
    f"Thought: I know enough.\nFinal Answer: {WANTED}",
    "Thought: I know enough.\nFinal Answer: You asked for a line.\nAnswer: 25 °C.",
    'Thought: I know enough.\nFinal Answer: The form is "Answer: 25 °C".',
    "I know that it is 25 °C.",
)


def check(file: Checked) -> None:
    for written, wanted in ENDINGS.items():
        run = file.run(QUESTION, model=script(says(ACTION), says(written)))[0].run
        file.require_answerable(run)
        file.require(
            run.answer == wanted and len(run.exchanges) == 2,
            "not_understood",
            run,
            written=written,
            wanted=wanted,
            turns=2,
            answer=run.answer,
            count=len(run.exchanges),
        )
    for ending in KEPT:
        for action in (ACTION, WORD_IN_THOUGHT):
            model = script(says(action), says(ending))
            file.same_as(STAGE5, QUESTION, "not_the_same", model=model)
    for question in ("北京和上海今天哪个更暖和？", "介绍一下你自己"):
        file.same_as(STAGE5, question, "not_the_same")
