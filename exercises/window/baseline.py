"""Exercise 4a, the baseline: stage 4 with a window of 3 messages."""

from functools import partial

from stage4_mini_framework import agent
from stage4_mini_framework.memory import Window

run_agent = partial(agent.run_agent, memory=Window(3))
