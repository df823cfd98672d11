"""The tools of every agent in this folder: plain typed functions, no framework."""

WEATHER = {"Beijing": "25 °C, sunny", "Shanghai": "28 °C, cloudy"}


def get_weather(city: str) -> str:
    """Look up the weather of one city.

    Args:
        city: Beijing or Shanghai.
    """
    return WEATHER.get(city, f"Error: no city is named {city}.")


def to_fahrenheit(celsius: int) -> str:
    """Convert a temperature.

    Args:
        celsius: Degrees Celsius.
    """
    return f"{celsius * 9 / 5 + 32:.1f} °F"


TOOLS = [get_weather, to_fahrenheit]
INSTRUCTIONS = "Answer from what the tools return."
