"""Tools of your own: plain typed functions with a docstring, in a list."""


def get_weather(city: str) -> str:
    """Look up the weather of ONE city now. Known cities: 深圳 Shenzhen."""
    return "深圳 Shenzhen: 30 °C, 晴 sunny, humidity 70 %, wind 8 km/h"


TOOLS = [get_weather]
