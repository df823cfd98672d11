"""Exercise 5, the check: a scripted model that writes "Answer:" after its action.

python -m docs.exercises.label.check my_agent:run_agent
"""

import sys

from config import load_settings
from equivalence.gateway import Gateway, Script
from equivalence.runs.implementation import load
from equivalence.runs.observe import observe
from equivalence.show import terminal as show
from tools import TOOLS

REPLIES = (
    'Thought: I look it up.\nAction: get_weather\nAction Input: {"city": "Beijing"}',
    "Thought: I know enough.\nAnswer: 25 °C in Beijing.",
)

script = Script([{"message": {"content": reply}} for reply in REPLIES])
with Gateway(script) as gateway:
    observed = observe(
        "yours",
        load(sys.argv[1]),
        "How warm is it in Beijing?",
        load_settings(model="script"),
        gateway,
        TOOLS,
    )
run = observed.run
print(f"{len(run.model_calls)} model calls, answer: {show.short(run.answer)}")
sys.exit(run.answer != "25 °C in Beijing.")
