"""Twenty questions in one conversation: how many tokens does a request grow to?

Each number is the largest request for that question: prompt, tools, conversation.
"""

import json
from functools import partial

from equivalence.gateway import Gateway
from equivalence.runs.implementation import Implementation
from equivalence.runs.observe import observe
from equivalence.settings import load_settings
from offline_model import OfflineModel
from stage4_mini_framework import agent as stage4
from stage4_mini_framework.memory import TokenBudget
from stage5_text_react import agent as stage5
from toolkit.tokens import message_tokens, tokens
from tools import TOOLS

CITIES = ("北京", "上海", "Paris", "Tokyo", "London")
COMPANIES = ("腾讯", "阿里巴巴", "小米", "Apple", "Nvidia")
QUESTIONS = [
    question
    for city, company in zip(CITIES, COMPANIES, strict=True)
    for question in (
        f"What is the weather in {city}?",
        f"What is the share price of {company}?",
        f"How warm is it in {city} in Fahrenheit?",
        f"What are 100 shares of {company} worth?",
    )
]
AGENTS = {
    "stage 4, no memory": stage4.run_agent,
    "stage 5": stage5.run_agent,
    "stage 4, budget 400": partial(stage4.run_agent, memory=TokenBudget(400)),
}


def measure():
    """Return the tokens of the largest request for each question, by agent."""
    return {name: _peaks(name, run_agent) for name, run_agent in AGENTS.items()}


def _peaks(name, run_agent):
    implementation = Implementation(name, agent=run_agent)
    peaks, after = [], None
    with Gateway(OfflineModel()) as gateway:
        for question in QUESTIONS:
            after = observe(
                implementation, question, load_settings(), gateway, TOOLS, after=after
            )
            peaks.append(max(_size(each.request) for each in after.run.exchanges))
    return peaks


def _size(request):
    offered = json.dumps(request.get("tools", []), ensure_ascii=False)
    return message_tokens(request["messages"]) + tokens(offered)


if __name__ == "__main__":
    for name, peaks in measure().items():
        print(
            f"{name:20} first {peaks[0]:5,}  last {peaks[-1]:5,}  peak {max(peaks):5,}"
        )
