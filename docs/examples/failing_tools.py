"""The demo tools, but the weather service knows nothing of Shanghai and says so by an
exception, as a tool does whose author had other things in mind."""

import tools


def get_weather(city: str) -> str:
    if city in ("上海", "Shanghai"):
        raise ConnectionError("the weather service is down")
    return tools.get_weather(city)


get_weather.__doc__ = tools.get_weather.__doc__
TOOLS = [get_weather, *tools.TOOLS[1:]]
