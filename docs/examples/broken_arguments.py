"""A model that writes broken JSON once, in front of the twenty lines of chapter 0 and
in front of stage 4. The gateway's repairs are off."""

from equivalence.gateway import Gateway, Script
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import observe
from equivalence.settings import load_settings
from exercises.first_tool import start
from stage4_mini_framework import agent
from tools import TOOLS


def asks(arguments):
    function = {"name": "get_weather", "arguments": arguments}
    call = {"id": f"call_{len(arguments)}", "type": "function", "function": function}
    return {"message": {"content": None, "tool_calls": [call]}}


REPLIES = [
    asks('{"city": "北京"'),  # the bracket at the end is missing
    asks('{"city": "北京"}'),
    {"message": {"content": "北京 25 °C。"}},
]

settings = load_settings(repair=False)
with Gateway(Script(REPLIES), repair=False) as gateway:
    for name, run_agent in (
        ("chapter 0", start.run_agent),
        ("stage 4", agent.run_agent),
    ):
        implementation = Implementation(name, agent=run_agent)
        script = Script(REPLIES)
        run = observe(
            implementation, "北京天气？", settings, gateway, TOOLS, upstream=script
        ).run
        print(f"{name}: {run.status}, {run.error or run.answer}")
        for step in run.steps:
            print(f"    turn {step.turn}: {step.arguments_text} → {step.result}")
