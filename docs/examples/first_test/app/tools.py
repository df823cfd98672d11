"""The tools of both agents."""


def get_weather(city: str) -> str:
    """Look up the weather of one city."""
    return f"{city}: 21 °C, sunny"


TOOLS = [get_weather]
