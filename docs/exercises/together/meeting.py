"""Exercise 3b, the tools: a get_weather that works only while another one runs."""

import threading

import tools
from toolkit.policy import ToolError

MEETING = threading.Barrier(2)


def get_weather(city: str) -> str:
    try:
        MEETING.wait(timeout=1)
    except threading.BrokenBarrierError:
        MEETING.reset()
        return ToolError("Error: no other call was under way.")
    return tools.get_weather(city)


get_weather.__doc__ = tools.get_weather.__doc__
TOOLS = [get_weather]
