"""The offline model, driven with the demo tools as an implementation would drive it."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offline_model as offline
from equivalence.clock import clock
from tools import TOOLS

NOW = datetime(2025, 3, 5, 9, 30, tzinfo=timezone(timedelta(hours=8)))
BY_NAME = {tool.__name__: tool for tool in TOOLS}
PUBLISHED = "现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？"


@pytest.fixture(autouse=True)
def fixed_clock() -> Iterator[None]:
    token = clock.set(NOW)
    yield
    clock.reset(token)


def schema(name: str) -> dict[str, Any]:
    tool = BY_NAME[name]
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": inspect.getdoc(tool),
            "parameters": {"type": "object", "properties": {}},
        },
    }


SCHEMAS = [schema(name) for name in BY_NAME]


def execute(name: str, arguments: str) -> tuple[str, str]:
    """The call as people write it, and its result."""
    values = json.loads(arguments)
    shown = ", ".join(str(value) for value in values.values())
    return f"{name}({shown})", str(BY_NAME[name](**values))


class Run:
    """One question answered: calls per turn, the answer, the conversation after it."""

    def __init__(
        self,
        question: str,
        history: list[dict[str, Any]] | None = None,
        run_seed: int = 0,
        **extra: Any,
    ) -> None:
        self.turns: list[list[str]] = []
        self.messages = [*(history or []), {"role": "user", "content": question}]
        system = {"role": "system", "content": "Be careful."}
        for _ in range(15):
            request = {"messages": [system, *self.messages], "tools": SCHEMAS, **extra}
            message = offline.reply(json.loads(json.dumps(request)), run_seed)
            self.messages.append(message)
            if "tool_calls" not in message:
                break
            assert message["content"] is None
            self._execute(message["tool_calls"])
        self.answer = message["content"] or ""

    def _execute(self, calls: list[dict[str, Any]]) -> None:
        turn = []
        for call in calls:
            shown, result = execute(**call["function"])
            turn.append(shown)
            self.messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": result}
            )
        self.turns.append(turn)


def react(question: str, history: list[dict[str, Any]] | None = None) -> Run:
    """The same run with a text prompt and no tools in the request."""
    listed = "\n".join(json.dumps(s["function"], ensure_ascii=False) for s in SCHEMAS)
    prompt = f"Tools:\n{listed}\nAnswer with\nThought: …\nAction: …\nAction Input: …"
    run = Run.__new__(Run)
    run.turns = []
    run.messages = [*(history or []), {"role": "user", "content": question}]
    for _ in range(15):
        system = {"role": "system", "content": prompt}
        text = offline.reply({"messages": [system, *run.messages]})["content"]
        run.messages.append({"role": "assistant", "content": text})
        assert text.startswith("Thought: ")
        if "Final Answer: " in text:
            run.answer = text.split("Final Answer: ")[1]
            return run
        _, action, arguments = text.split("\n")
        name = action.removeprefix("Action: ")
        shown, result = execute(name, arguments.removeprefix("Action Input: "))
        run.turns.append([shown])
        run.messages.append({"role": "user", "content": f"Observation: {result}"})
    raise AssertionError("no final answer")


# question | calls: "=>" between turns, "&" within one | parts of the answer, by ";"
QUESTIONS = """
现在几点了？腾讯股票多少钱？持有 100 股市值多少港元？ | get_current_time() => get_stock_price(腾讯) => calculate(100 * 385.6) | 09:30 ; 385.6 HKD ; 38,560 ; HKD ; 港元
北京和上海今天哪个更暖和？ | get_weather(北京) & get_weather(上海) | 上海 ; 28 °C ; 25 °C
腾讯股价乘以 3，另外北京天气怎么样？ | get_stock_price(腾讯) => calculate(385.6 * 3) => get_weather(北京) | 1,156.8 ; 25 °C
介绍一下你自己 | | 脚本化的离线替身 ; 不是语言模型 ; 天气
Who are you? | | stand-in ; not a language model ; weather
What can you do? | | not a language model
你好 | | 你好
Thanks! | | welcome
What is the meaning of life? | | cannot answer
Tell me a joke | | cannot answer
Who is the CEO of Tencent? | | cannot answer
北京有什么好玩的 | | 答不了
How far is Beijing from Shanghai? | | cannot answer
What's the price of gold? | | cannot answer
What is the weather forecast for tomorrow? | | Which city ; only know the present ; left out: forecast, tomorrow.
2024-01-15 是个好日子吗 | | 答不了
Beijing's weather, and 18 °C in Fahrenheit | get_weather(Beijing) & unit_convert(18, celsius, fahrenheit) | 25 °C ; 64.4 °F
What time is it? | get_current_time() | 09:30 ; Wednesday
今天星期几 | get_current_time() | 星期三
what's the date today | get_current_time() | 2025-03-05
Tell me about yourself and the time | get_current_time() | stand-in ; 09:30
现在几点？北京天气怎么样？ | get_current_time() & get_weather(北京) | 09:30 ; 25 °C ; 晴
上海的天气和时间 | get_weather(上海) & get_current_time() | 28 °C ; 09:30
北京的天气 | get_weather(北京) | 25 °C ; 湿度 40%
weather in beijing | get_weather(beijing) | 25 °C ; sunny
北京市今天冷吗 | get_weather(北京) | 25 °C
is it raining in london | get_weather(london) | light rain
How hot is it in New York right now? | get_weather(New York) | 20 °C
What's the weather in Xi’an? | get_weather(Xi'an) | 24 °C
香港现在几度 | get_weather(香港) | 29 °C
What's the weather like? | | Which city
今天天气怎么样 | | 哪个城市
weather in Atlantis | get_weather(Atlantis) | could not get the weather in Atlantis: no weather for 'Atlantis'.
亚特兰蒂斯的天气 | get_weather(亚特兰蒂斯) | 没有得到亚特兰蒂斯的天气：没有“亚特兰蒂斯”的天气数据。
请告诉我火星的天气 | get_weather(火星) | 没有得到
Weather in Oslo and Beijing | get_weather(Oslo) & get_weather(Beijing) | Oslo: no weather for ; 25 °C
亚特兰蒂斯和北京的天气 | get_weather(亚特兰蒂斯) & get_weather(北京) | 没有“亚特兰蒂斯”的天气数据。 ; 25 °C
What's the weather in Beijing, Shanghai and Tokyo? | get_weather(Beijing) & get_weather(Shanghai) & get_weather(Tokyo) | 25 °C ; 28 °C ; 21 °C
Which is warmer, Beijing or Shanghai? | get_weather(Beijing) & get_weather(Shanghai) | Shanghai is warmer: 28 °C
北京、上海、广州哪个最热？ | get_weather(北京) & get_weather(上海) & get_weather(广州) | 广州最热 ; 31 °C
Which is coldest, Beijing, Harbin or Tokyo? | get_weather(Beijing) & get_weather(Harbin) & get_weather(Tokyo) | Harbin is the coldest: -6 °C
纽约和旧金山哪个更冷 | get_weather(纽约) & get_weather(旧金山) | 旧金山更冷 ; 17 °C
Is it warmer in London than in Paris? | get_weather(London) & get_weather(Paris) | Paris is warmer
Compare Beijing and Shanghai weather | get_weather(Beijing) & get_weather(Shanghai) | Shanghai is warmer
How's the weather in Beijing? Is it warmer than Shanghai? | get_weather(Beijing) & get_weather(Shanghai) | sunny ; Shanghai is warmer
北京和西安的温差是多少 | get_weather(北京) => get_weather(西安) => calculate(25 - 24) | 相差 1 °C
what's the temperature difference between Harbin and Singapore? | get_weather(Harbin) => get_weather(Singapore) => calculate(32 - (-6)) | 38 °C
Which is warmer, Tokyo or Singapore, and by how many degrees? | get_weather(Tokyo) => get_weather(Singapore) => calculate(32 - 21) | Singapore is warmer ; 11 °C
How much warmer is Shanghai than Beijing? | get_weather(Shanghai) => get_weather(Beijing) => calculate(28 - 25) | 3 °C
average temperature of Beijing and Shanghai | get_weather(Beijing) => get_weather(Shanghai) => calculate((25 + 28) / 2) | 26.5 °C
北京、上海和广州的平均气温是多少？ | get_weather(北京) => get_weather(上海) => get_weather(广州) => calculate((25 + 28 + 31) / 3) | 28 °C
Average temperature of Beijing and Shanghai in Fahrenheit | get_weather(Beijing) => get_weather(Shanghai) => calculate((25 + 28) / 2) => unit_convert(26.5, celsius, fahrenheit) | 79.7 °F
东京和伦敦的温度加起来是多少 | get_weather(东京) => get_weather(伦敦) => calculate(21 + 15) | 36 °C
新加坡和广州哪个更热，热多少？ | get_weather(新加坡) => get_weather(广州) => calculate(32 - 31) | 新加坡更热 ; 相差 1 °C
Is it hotter in Singapore or Guangzhou, and by how much? | get_weather(Singapore) => get_weather(Guangzhou) => calculate(32 - 31) | Singapore is hotter ; 1 °C
Weather in London and New York in Fahrenheit | get_weather(London) => get_weather(New York) => unit_convert(15, celsius, fahrenheit) => unit_convert(20, celsius, fahrenheit) | 59 °F ; 68 °F
Tell me the time, the weather in London and the price of Nvidia. | get_current_time() & get_weather(London) & get_stock_price(Nvidia) | 09:30 ; 15 °C ; 121.4 USD
Beijing's temperature in Fahrenheit | get_weather(Beijing) => unit_convert(25, celsius, fahrenheit) | 25 °C ; 77 °F
北京的气温是多少华氏度 | get_weather(北京) => unit_convert(25, celsius, fahrenheit) | 77 °F
北京天气怎么样，换成华氏度是多少？ | get_weather(北京) => unit_convert(25, celsius, fahrenheit) | 晴 ; 77 °F
weather in Atlantis in Fahrenheit | get_weather(Atlantis) | could not get
腾讯股价 | get_stock_price(腾讯) | 385.6 HKD ; +1.2 %
What is Apple's stock price? | get_stock_price(Apple) | 189.84 USD
苹果多少钱一股 | get_stock_price(苹果) | 189.84 USD
茅台股价 | get_stock_price(贵州茅台) | 1,688 CNY
0700.HK 股价 | get_stock_price(0700.HK) | 385.6 HKD
Price of TSLA | get_stock_price(TSLA) | 177.9 USD
Google stock price | get_stock_price(Google) | Google: no price for 'Google'.
持有 100 股谷歌的市值是多少 | get_stock_price(谷歌) | 没有得到谷歌的股价
股票多少钱 | | 哪家公司
Apple, Microsoft and Nvidia share prices | get_stock_price(Apple) & get_stock_price(Microsoft) & get_stock_price(Nvidia) | 189.84 ; 415.5 ; 121.4
Which is cheaper, Apple or Tesla stock? | get_stock_price(Apple) & get_stock_price(Tesla) | Tesla is cheaper: 177.9 USD
腾讯和阿里巴巴的股价哪个更贵？ | get_stock_price(腾讯) & get_stock_price(阿里巴巴) | 腾讯更贵
price difference between Tencent and Alibaba | get_stock_price(Tencent) => get_stock_price(Alibaba) => calculate(385.6 - 82.35) | 303.25 HKD
腾讯和苹果的股价相差多少 | get_stock_price(腾讯) => get_stock_price(苹果) | 货币不同
value of 200 Tencent shares | get_stock_price(Tencent) => calculate(200 * 385.6) | 77,120 HKD
If I hold 50 shares of Apple, how much are they worth? | get_stock_price(Apple) => calculate(50 * 189.84) | 9,492 USD
一百股腾讯值多少钱 | get_stock_price(腾讯) => calculate(100 * 385.6) | 38,560 港元
1 万股小米值多少港元 | get_stock_price(小米) => calculate(10000 * 18.74) | 187,400
What is Tencent's market value if I own 1,000 shares? | get_stock_price(Tencent) => calculate(1000 * 385.6) | 385,600 HKD
I have 100 Tencent shares and 50 Alibaba shares. What are they worth in total? | get_stock_price(Tencent) => get_stock_price(Alibaba) => calculate(100 * 385.6 + 50 * 82.35) | 42,677.5 HKD
我有100股腾讯和50股阿里巴巴，总市值多少 | get_stock_price(腾讯) => get_stock_price(阿里巴巴) => calculate(100 * 385.6 + 50 * 82.35) | 42,677.5 港元
100 股腾讯和 50 股苹果一共值多少？ | get_stock_price(腾讯) => get_stock_price(苹果) => calculate(100 * 385.6) => calculate(50 * 189.84) | 38,560 港元 ; 9,492 美元
15% of Tencent's share price | get_stock_price(Tencent) => calculate(15% * 385.6) | 57.84 HKD
腾讯涨10%后股价是多少 | get_stock_price(腾讯) => calculate(385.6 * (1 + 10%)) | 424.16 HKD
腾讯股价和北京天气 | get_stock_price(腾讯) & get_weather(北京) | 385.6 HKD ; 25 °C
Tencent stock price and 10 km in miles | get_stock_price(Tencent) & unit_convert(10, km, mile) | 385.6 ; 6.21371 miles
Compute (25 + 15) * 8 / 4 | calculate((25 + 15) * 8 / 4) | = 80
17 * 23 等于多少 | calculate(17 * 23) | 391
（１＋２）×３ | calculate((1 + 2) * 3) | 9
15% of 200 | calculate(15% * 200) | 30
200的15%是多少 | calculate(200 * 15%) | 30
三乘以四加五 | calculate(3 * 4 + 5) | 17
What is 10 divided by 4? | calculate(10 / 4) | 2.5
7 minus 10 | calculate(7 - 10) | -3
1,234.5 plus 1 | calculate(1234.5 + 1) | 1,235.5
Calculate 2^100 | calculate(2 ^ 100) | 1,267,650,600,228,229,401,496,703,205,376
average of 3, 5 and 10 | calculate((3 + 5 + 10) / 3) | 6
100 / 0 等于多少 | calculate(100 / 0) | 没有得到计算结果（100 ÷ 0）：除数为零。
17 * 23 等于多少？再乘以 2 | calculate(17 * 23) & calculate((17 * 23) * 2) | 391 ; 782
What is 2 + 2 and what time is it? | calculate(2 + 2) & get_current_time() | = 4 ; 09:30
10 km 是多少英里 | unit_convert(10, km, mile) | 6.21371 英里
5 kg to lb | unit_convert(5, kg, lb) | 11.0231 lb
how many feet is 1.8 m | unit_convert(1.8, m, foot) | 5.90551 feet
70公斤是多少磅 | unit_convert(70, kg, lb) | 154.324 磅
18度是多少华氏度 | unit_convert(18, celsius, fahrenheit) | 64.4 °F
零下5摄氏度是多少华氏度 | unit_convert(-5, celsius, fahrenheit) | 23 °F
-40 °F in Celsius | unit_convert(-40, fahrenheit, celsius) | -40 °C
10 km in kg | unit_convert(10, km, kg) | measure different things
1609.344 m in miles | unit_convert(1609.344, m, mile) | = 1 mile.
1 mile in km | unit_convert(1, mile, km) | 1 mile = 1.60934 km
value of 1 Tencent share | get_stock_price(Tencent) => calculate(1 * 385.6) | 1 share of Tencent ; is worth
Which is cooler, Beijing or Tokyo? | get_weather(Beijing) & get_weather(Tokyo) | Tokyo is cooler
Which has the lower price, Apple or Tesla stock? | get_stock_price(Apple) & get_stock_price(Tesla) | Tesla is lower
Is Beijing hotter than Shanghai, and is Apple more expensive than Tesla? | get_weather(Beijing) & get_weather(Shanghai) & get_stock_price(Apple) & get_stock_price(Tesla) | Shanghai is hotter ; Apple is more expensive
腾讯和苹果哪个更贵 | get_stock_price(腾讯) & get_stock_price(苹果) | 货币不同
北京天气怎么样，上海和广州哪个更热 | get_weather(北京) & get_weather(上海) & get_weather(广州) | 北京现在 25 °C ; 广州更热
北京和火星哪个更热 | get_weather(北京) & get_weather(火星) | 没有得到火星的天气
I have 100 Tencent shares and 500 Alibaba shares. Which holding is worth more? | get_stock_price(Tencent) => get_stock_price(Alibaba) => calculate(100 * 385.6) => calculate(500 * 82.35) | Alibaba is worth more: 41,175 HKD, against Tencent 38,560 HKD
100 股腾讯和 500 股阿里巴巴哪个更值钱 | get_stock_price(腾讯) => get_stock_price(阿里巴巴) => calculate(100 * 385.6) => calculate(500 * 82.35) | 阿里巴巴更值钱
2024-01-15 是星期几 | get_current_time() | 我只知道现在的情况 ; 没有用到：2024-01-15。
What day of the week was 2024-01-15? | get_current_time() | only know the present ; 2024-01-15.
What day is it tomorrow? | get_current_time() | only know the present ; left out: tomorrow.
What time is it in Tokyo? | get_current_time() | only know the local time ; left out: Tokyo.
time in Tokyo | get_current_time() | only know the local time ; left out: Tokyo.
What time is it in Madrid? | get_current_time() | only know the local time ; left out: Madrid.
100 股苹果加 50 股微软一共多少美元？ | get_stock_price(苹果) => get_stock_price(微软) => calculate(100 * 189.84 + 50 * 415.5) | 39,759 美元
If I buy 10 shares of Nvidia and 5 of Tesla, what do I pay? | get_stock_price(Nvidia) => get_stock_price(Tesla) => calculate(10 * 121.4 + 5 * 177.9) | 2,103.5 USD in total
腾讯股价乘以2再除以3等于多少 | get_stock_price(腾讯) => calculate(385.6 * 2 / 3) | = 257.066666667 HKD
苹果股价加 3 再乘以 2 | get_stock_price(苹果) => calculate((189.84 + 3) * 2) | 385.68 USD
Is it warmer in London or Paris, and by how much in Fahrenheit? | get_weather(London) => get_weather(Paris) => unit_convert(15, celsius, fahrenheit) => unit_convert(18, celsius, fahrenheit) => calculate(64.4 - 59) | Paris is warmer ; Difference: 5.4 °F.
明天北京会下雨吗？ | get_weather(北京) | 25 °C ; 我只知道现在的情况。没有用到：明天。
Will it snow in Harbin next week? | get_weather(Harbin) | I only know the present. I left out: Will, next week.
What is the price of Tesla in 2020? | get_stock_price(Tesla) | I left out: in 2020.
What is the square root of 144 plus 5? | calculate(144 + 5) | I left out: square root.
How much is Apple in euros? | get_stock_price(Apple) | I left out: euros.
茅台值多少美元？ | get_stock_price(贵州茅台) | 没有用到：美元。
10 km is how many miles and how many feet? | unit_convert(10, km, mile) | I left out: feet.
500 克是多少磅，再乘以 3？ | unit_convert(500, g, lb) => calculate(1.10231 * 3) | 500 克 = 1.10231 磅。1.10231 × 3 = 3.30693 磅。
What is 3 kg in lb plus 2? | unit_convert(3, kg, lb) => calculate(6.61387 + 2) | 6.61387 + 2 = 8.61387 lb.
98.6 °F in Celsius minus 7 | unit_convert(98.6, fahrenheit, celsius) => calculate(37 - 7) | 37 - 7 = 30 °C.
Convert 5 miles to km, then double it. | unit_convert(5, mile, km) => calculate(8.04672 * 2) | = 16.09344 km.
3 kg in lb plus 2 kg | unit_convert(3, kg, lb) | I left out: plus, 2, kg.
Beijing * 明天 31 | get_weather(Beijing) => calculate(25 * 31) | 我只知道现在的情况。没有用到：明天。
Is Moutai worth more than three Apple shares? | get_stock_price(Moutai) => get_stock_price(Apple) => calculate(1 * 1688) => calculate(3 * 189.84) | 1 share of Moutai
Which is worth more, 100 shares of Tencent or Alibaba? | get_stock_price(Tencent) => get_stock_price(Alibaba) => calculate(100 * 385.6) => calculate(100 * 82.35) | Tencent is worth more
深圳、拉萨和北京的天气怎么样 | get_weather(深圳) & get_weather(拉萨) & get_weather(北京) | 没有“深圳”的天气数据 ; 没有“拉萨”的天气数据 ; 北京现在 25 °C
现在伦敦几点？那里冷吗？ | get_current_time() & get_weather(伦敦) | 我只知道本地时间。
What do 12 Apple and 3 Microsoft shares cost, minus 10%? | get_stock_price(Apple) => get_stock_price(Microsoft) => calculate((12 * 189.84 + 3 * 415.5) * (1 - 10%)) | USD in total
Tell me the temperature in Beijing in celsius. | get_weather(Beijing) | 40 %, wind 12 km/h.
数之和：18 和 27 | calculate(18 + 27) | 18 + 27 = 45。
Which is colder, Harbin or London, and what time is it there? | get_weather(Harbin) & get_weather(London) & get_current_time() | I only know the local time. I left out: there.
腾讯 300 股减去 20 股还值多少？ | get_stock_price(腾讯) | 没有用到：300、减去、20。
(3 + 4) × 腾讯股价 | get_stock_price(腾讯) | 没有用到：3、+、4、*。
What is the median temperature of London and Paris? | get_weather(London) & get_weather(Paris) | I left out: median.
微软的股价是英伟达的几倍？ | get_stock_price(微软) & get_stock_price(英伟达) | 没有用到：倍。
巴黎现在的湿度比伦敦低多少？ | get_weather(巴黎) => get_weather(伦敦) => calculate(18 - 15) | 没有用到：湿度。
120 磅是多少公斤？那是多少吨？ | unit_convert(120, lb, kg) | 54.4311 公斤 ; 没有用到：吨。
美团股价减去 18.9 再除以 5 是多少？ | get_stock_price(美团) => calculate((118.9 - 18.9) / 5) | = 20 HKD。
12 x 4.5 | calculate(12 * 4.5) | = 54.
10 km 是多少公斤 | unit_convert(10, km, kg) | 没有得到换算结果：两个单位量的不是同一种东西，无法换算。
东京现在几点 | get_current_time() | 只知道本地时间 ; 没有用到：东京。
"""  # noqa: E501


def rows(table: str) -> list[tuple[str, list[list[str]], list[str]]]:
    out = []
    for line in table.strip().splitlines():
        question, calls, parts = (part.strip() for part in re.split(r" \|(?!\|)", line))
        turns = [turn.split(" & ") for turn in calls.split(" => ") if turn]
        out.append((question, turns, parts.split(" ; ")))
    return out


@pytest.mark.parametrize(("question", "turns", "parts"), rows(QUESTIONS))
def test_question(question: str, turns: list[list[str]], parts: list[str]) -> None:
    run = Run(question)
    assert run.turns == turns
    assert not re.search(r"Error:|。。|\.\.", run.answer)
    for part in parts:
        assert part in run.answer


@pytest.mark.parametrize(("question", "turns", "parts"), rows(QUESTIONS))
def test_text_react_makes_the_same_calls(
    question: str, turns: list[list[str]], parts: list[str]
) -> None:
    run = react(question)
    assert run.turns == [[call] for turn in turns for call in turn]
    assert run.answer == Run(question).answer


# ------------------------------------------------------------------------ follow-ups

CONVERSATIONS = """
Beijing's weather, and 18 °C in Fahrenheit || the temperature just mentioned in Fahrenheit | unit_convert(25, celsius, fahrenheit) | 77 °F
What is the weather in Beijing, and what is 18 °C in Fahrenheit? || And the temperature just mentioned for Beijing, in Fahrenheit? | unit_convert(25, celsius, fahrenheit) | 77 °F
北京天气怎么样 || 把刚才的温度换成华氏度 | unit_convert(25, celsius, fahrenheit) | 77 °F
北京和上海哪个更暖和？ || 把刚才的温度换成华氏度 | unit_convert(28, celsius, fahrenheit) | 82.4 °F
18 °C in Fahrenheit || and in Celsius? | unit_convert(64.4, fahrenheit, celsius) | 18 °C
10 km in miles || and in feet? | unit_convert(10, km, foot) | 32,808.4 feet
腾讯股价 || 那 200 股呢？ | calculate(200 * 385.6) | 77,120 港元
What is Tencent's stock price? || And for 200 shares? | calculate(200 * 385.6) | 77,120 HKD
Tencent price || How about Alibaba? | get_stock_price(Alibaba) | 82.35 HKD
Tencent price || How about Alibaba? || And Meituan? | get_stock_price(Meituan) | 118.9 HKD
Tencent price || How about Google? | get_stock_price(Google) | could not get
value of 200 Tencent shares || How about Alibaba? | get_stock_price(Alibaba) => calculate(200 * 82.35) | 16,470 HKD
持有 100 股腾讯市值多少 || 阿里巴巴呢？ | get_stock_price(阿里巴巴) => calculate(100 * 82.35) | 8,235 港元
腾讯股价 || 它和阿里巴巴的价差是多少？ | get_stock_price(阿里巴巴) => calculate(385.6 - 82.35) | 303.25
北京天气 || 那上海呢？ | get_weather(上海) | 28 °C ; 多云
Weather in Beijing || And Shanghai? | get_weather(Shanghai) | 28 °C
北京天气 || 火星呢？ | get_weather(火星) | 没有“火星”
北京的气温是多少华氏度 || 那上海呢？ | get_weather(上海) => unit_convert(28, celsius, fahrenheit) | 82.4 °F
北京天气 || 那上海呢？ || 哪个更暖和？ | | 上海更暖和
北京天气 || 比上海热吗？ | get_weather(上海) | 上海更热
What's 17 * 23? || double that | calculate(391 * 2) | 782
What's 17 * 23? || double that || plus 10 | calculate(782 + 10) | 792
Compute 17 * 23 || Thanks! || Now divide that result by 4. | calculate(391 / 4) | 97.75
What's 17 * 23? || Multiply the last result by 3. | calculate(391 * 3) | 1,173
持有 100 股腾讯市值多少 || 再乘以 2 | calculate(38560 * 2) | 77,120 HKD
北京天气 || 现在几点了？ | get_current_time() | 09:30
北京天气 || 你好 | | 你好
北京天气 || 北京天气 | get_weather(北京) | 25 °C
现在几点了 || 那 200 股呢？ | | 哪家公司
"""  # noqa: E501


@pytest.mark.parametrize("form", [Run, react])
@pytest.mark.parametrize(("questions", "turns", "parts"), rows(CONVERSATIONS))
def test_follow_up(
    form: Any, questions: str, turns: list[list[str]], parts: list[str]
) -> None:
    history: list[dict[str, Any]] = []
    for question in questions.split(" || "):
        run = form(question, history)
        history = run.messages
    assert run.turns == turns
    for part in parts:
        assert part in run.answer


def test_a_price_that_left_the_conversation_is_looked_up_again() -> None:
    history = [
        {"role": "user", "content": "Tencent price"},
        {"role": "assistant", "content": "Tencent is at 385.6 HKD."},
    ]
    run = Run("And for 200 shares?", history)
    assert run.turns == [["get_stock_price(Tencent)"], ["calculate(200 * 385.6)"]]


def test_ids_are_new_in_the_conversation() -> None:
    run = Run("Weather in Beijing and Shanghai", Run(PUBLISHED).messages)
    calls = [call for m in run.messages for call in m.get("tool_calls", [])]
    assert [call["id"] for call in calls] == [f"call_{n}" for n in range(1, 6)]


def test_ids_are_new_after_the_first_messages_were_dropped() -> None:
    kept = Run(PUBLISHED).messages[-3:]
    run = Run("北京天气", kept)
    ids = [call["id"] for m in run.messages for call in m.get("tool_calls", [])]
    assert len(ids) == len(set(ids)) == 2


# ---------------------------------------------------------------------- nothing lost

PIECES = """
Beijing 上海 Tencent 苹果 weather 股价 31 47 53% 67 89 shares 股 * + 减去 除以 ( ) km
miles °C 华氏度 and 和 ， ？ of 的 a b 更 warmer average 平均 涨 double that 呢 hello
明天
"""
NAMED = "Beijing 上海 Tencent 苹果 31 47 53 67 89 明天"
SHOWS = {  # a word of the question, and what a call or an answer has where it is used
    **{word: word for word in NAMED.split()},
    "km": "km",
    "miles": "mile",
    "华氏度": "fahrenheit|°F|华氏度",
    "*": r"\*",
    "减去": "-|减去",
    "除以": "/|除以",
    "double": r"\* 2|double",
}
pieces = st.lists(st.sampled_from(PIECES.split()), max_size=9).map(" ".join)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(pieces, st.sampled_from(["", "Tencent price", "北京天气", "10 km in miles"]))
def test_what_matters_is_used_or_named(question: str, before: str) -> None:
    """Where anything is done for a question, nothing of it is lost in silence."""
    run = Run(question, Run(before).messages if before else None)
    told = f"{run.turns} {run.answer}"
    failed = "could not get" in told or "没有得到" in told  # it planned, a tool failed
    if not failed and (run.turns or "left out" in told or "没有用到" in told):
        for word, shown in SHOWS.items():
            assert word not in question or re.search(shown, told)


@pytest.mark.parametrize(
    "question", ["北京的平均", "100 / 0", "持有 3 股谷歌", "5 km 转磅"]
)
def test_a_chinese_answer_quotes_no_english_error(question: str) -> None:
    answer = Run(f"{question}是多少？").answer
    assert "Error" not in answer
    assert "。。" not in answer
    assert not re.search(r"[a-z]{4}", answer)


def test_an_error_that_it_does_not_know_is_quoted() -> None:
    run = Run("北京天气")
    run.messages[-2]["content"] = "Error: get_weather failed with OSError: no line."
    message = offline.reply({"messages": run.messages[:-1], "tools": SCHEMAS})
    told = "没有得到北京的天气，工具给出的错误原文是“"
    assert message["content"] == f"{told}get_weather failed with OSError: no line”。"


# ------------------------------------------------------------------------ strategies


def strategy_of(run: Run) -> str:
    price = ["get_stock_price(腾讯)"]
    first = ["get_current_time()", *price]
    return {
        str([first[:1], price, ["calculate(100 * 385.6)"]]): "serial",
        str([first[:1], price, ["calculate(385.6 * 100)"]]): "swapped factors",
        str([[*first, "calculate(300 * 100)"]]): "eager",
        str([first, ["calculate(100 * 385.6)"]]): "independent first",
        str([first[:1], price]): "head",
    }[str(run.turns)]


def test_drift_of_the_published_question() -> None:
    runs = [Run(PUBLISHED, run_seed=seed, temperature=0.7) for seed in range(200)]
    counts = Counter(map(strategy_of, runs))
    assert len(counts) == 5
    assert 0.05 <= counts["eager"] / 200 <= 0.4
    assert counts.most_common(1)[0][0] == "serial"
    assert all("38,560" in run.answer for run in runs)
    eager = next(run for run in runs if strategy_of(run) == "eager")
    assert "30,000" in eager.answer
    assert "更正" in eager.answer


@pytest.mark.parametrize("temperature", [0, 0.0, None, "hot", float("nan"), -1])
def test_no_drift_at_temperature_0(temperature: Any) -> None:
    for seed in range(20):
        run = Run(PUBLISHED, run_seed=seed, temperature=temperature)
        assert strategy_of(run) == "serial"


def test_the_seed_of_the_request_wins_and_repeats() -> None:
    several = [Run(PUBLISHED, None, n, temperature=1, seed=7).turns for n in range(5)]
    assert all(turns == several[0] for turns in several)


@pytest.mark.slow
def test_a_hotter_model_drifts_more() -> None:
    def drifting(temperature: float) -> int:
        runs = (Run(PUBLISHED, None, n, temperature=temperature) for n in range(60))
        return sum(strategy_of(run) != "serial" for run in runs)

    assert drifting(0.1) < drifting(0.7) < drifting(2.0)


@pytest.mark.parametrize(
    "question",
    [
        "Beijing's temperature in Fahrenheit",
        "average temperature of Beijing and Shanghai",
        "value of 100 Atlantis shares",
        "100 股腾讯和 50 股苹果一共值多少？",
    ],
)
def test_every_strategy_ends_in_the_right_answer(question: str) -> None:
    right = Run(question).answer
    for seed in range(40):
        run = Run(question, None, seed, temperature=1.5)
        assert len(run.turns) < 6
        for number in ("77 °F", "26.5 °C", "38,560", "could not"):
            assert (number in right) == (number in run.answer)


def test_one_call_a_turn_when_parallel_calls_are_off() -> None:
    run = Run("Weather in Beijing and Shanghai", parallel_tool_calls=False)
    assert run.turns == [["get_weather(Beijing)"], ["get_weather(Shanghai)"]]


# ------------------------------------------------------------- tools that are missing


def answer(question: str, tools: list[str], **extra: Any) -> dict[str, Any]:
    offered = [schema(name) for name in tools]
    messages = [{"role": "user", "content": question}]
    return offline.reply({"messages": messages, "tools": offered, **extra})


def test_a_tool_that_is_not_offered_is_named_and_not_called() -> None:
    message = answer("What is 17 * 23?", ["get_weather"])
    assert "calculate is not offered" in message["content"]
    assert "tool_calls" not in message


def test_the_rest_is_still_called() -> None:
    message = answer(PUBLISHED, ["get_current_time", "calculate"])
    names = [call["function"]["name"] for call in message["tool_calls"]]
    assert names == ["get_current_time"]


@pytest.mark.parametrize("extra", [{}, {"tool_choice": "none"}])
def test_without_tools_it_answers_in_text(extra: dict[str, Any]) -> None:
    message = answer("北京天气", ["get_weather"] if extra else [], **extra)
    assert "没有提供 get_weather" in message["content"]


PLACE = {"type": "object", "properties": {"place": {"type": "string"}}}
OTHER = {"type": "object", "properties": {"lat": {"type": "number"}}}


def weather_tool(parameters: dict[str, Any]) -> dict[str, Any]:
    offered = schema("get_weather")
    offered["function"]["parameters"] = parameters
    return offered


@pytest.mark.parametrize("required", [{}, {"required": ["place"]}])
def test_a_parameter_of_another_name_is_read_from_the_schema(
    required: dict[str, Any],
) -> None:
    request = {
        "messages": [{"role": "user", "content": "Beijing weather"}],
        "tools": [weather_tool({**PLACE, **required})],
    }
    message = offline.reply(request)
    (call,) = message["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"place": "Beijing"}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "Beijing: 9 °C"}
    request["messages"] += [message, result]
    assert "9 °C" in offline.reply(request)["content"]


def test_a_parameter_of_another_name_in_a_text_prompt() -> None:
    listed = json.dumps(weather_tool(PLACE)["function"], ensure_ascii=False)
    system = {"role": "system", "content": f"{listed}\nAction Input: …"}
    question = {"role": "user", "content": "Beijing weather"}
    text = offline.reply({"messages": [system, question]})["content"]
    assert text.endswith('Action Input: {"place": "Beijing"}')


def test_a_tool_with_other_parameters_is_not_called() -> None:
    request = {
        "messages": [{"role": "user", "content": "Beijing weather"}],
        "tools": [weather_tool(OTHER)],
    }
    message = offline.reply(request)
    assert "get_weather is not one I know" in message["content"]
    assert "tool_calls" not in message


def test_a_result_that_never_comes_back_ends_in_an_answer() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "北京天气"}]
    for _ in range(6):
        message = offline.reply({"messages": messages, "tools": SCHEMAS})
        messages.append(message)
    assert "没有得到" in message["content"]


# ------------------------------------------------------------------------ robustness


def test_content_as_blocks() -> None:
    blocks = [{"type": "text", "text": "北京"}, {"type": "image_url"}, "天气", None]
    messages = [{"role": "user", "content": blocks}]
    message = offline.reply({"messages": messages, "tools": SCHEMAS})
    arguments = message["tool_calls"][0]["function"]["arguments"]
    assert arguments == '{"city": "北京"}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "function", "name", "arguments", "text", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
WORDS = """
北京 上海 天气 腾讯 股价 100 股 200 * ( ) + % 和 ， ？ 换成 华氏度 再乘以 2 °C 呢
那 ² 一百 万 Tencent weather and in which warmer double that 10 km miles what
"""
words = st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join)
messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "user", "assistant", "tool", "developer"])
        | json_values,
        "content": words | json_values,
        "tool_calls": st.lists(json_values, max_size=2) | json_values,
        "tool_call_id": json_values,
    },
)
requests = st.fixed_dictionaries(
    {"messages": st.lists(messages | json_values, max_size=6)},
    optional={
        "tools": st.just(SCHEMAS) | json_values,
        "temperature": st.sampled_from([0, 1.5]) | json_values,
        "seed": json_values,
    },
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(requests, st.integers())
def test_it_never_raises(request: dict[str, Any], seed: int) -> None:
    message = offline.reply(request, seed)
    assert message["role"] == "assistant"
    assert message.get("tool_calls") or message["content"]
    json.dumps(message, ensure_ascii=False, allow_nan=False).encode()


@settings(max_examples=150, deadline=None)
@given(words)
def test_every_question_ends(question: str) -> None:
    assert Run(question).answer


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.lists(words, max_size=2))
def test_it_never_raises_on_react(text: str, observations: list[str]) -> None:
    rounds = [{"role": "assistant", "content": f"Action: x\nAction Input: {text}"}]
    rounds += [{"role": "user", "content": f"Observation: {o}"} for o in observations]
    system = {"role": "system", "content": f"Action Input:\n{{{text}"}
    question = {"role": "user", "content": text}
    message = offline.reply({"messages": [system, question, *rounds]})
    assert "Final Answer:" in message["content"]


def test_long_questions_are_quick() -> None:
    for part in ("北京和", "1+", "(((", "How about ", "9" * 50, " ", "100 股", "a "):
        Run(part * 3000)


def test_it_imports_nothing_heavy_and_no_stage() -> None:
    for file in Path(offline.__file__).parent.glob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        froms = [n for n in nodes if isinstance(n, ast.ImportFrom) and not n.level]
        modules = {n.module or "" for n in froms}
        modules = {m for m in modules if m.split(".")[0] not in sys.stdlib_module_names}
        assert modules <= {"equivalence.gateway.upstreams", "toolkit.arithmetic"}
