"""Run records for the report, each broken in one way."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equivalence.runs.files import from_line, to_json
from equivalence.runs.grounding import mark
from equivalence.runs.record import SCHEMA

ROOT = Path(__file__).parent.parent
HOSTILE = (
    "</script></style></title></mark><img src=x onerror=\"document.title='fired'\">"
    "<script>document.title='fired'</script>{{7*7}}\"'><svg onload=alert(1)>"
    "<a href=javascript:alert(2)>\u202ecba\u200b"
)


QUESTION = "北京和上海今天哪个更暖和？"
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Look up.", "parameters": {}},
}


Record = dict[str, Any]


def call(number: int, city: str) -> Record:
    arguments = json.dumps({"city": city}, ensure_ascii=False)
    function = {"name": "get_weather", "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


def reply(content: str | None, *calls: Record) -> Record:
    message: Record = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    reason = "tool_calls" if calls else "stop"
    return {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def exchange(messages: list[Record], answer: Record) -> Record:
    request = {"model": "m", "messages": messages, "temperature": 0.0, "tools": [TOOL]}
    return {
        "request": copy.deepcopy(request),
        "reply": answer,
        "status": 200,
        "repairs": [],
        "ms": 1.5,
        "attempt": 0,
    }


def record(name: str, question: str = QUESTION, **fields: Any) -> Record:
    """A run of two turns: two calls, then the answer."""
    asked = [
        {"role": "system", "content": "Be careful. Answer briefly."},
        {"role": "user", "content": question},
    ]
    first = reply(None, call(1, "北京"), call(2, "上海"))
    results = [("北京", "北京: 25 °C"), ("上海", "上海: 28 °C")]
    told = [
        {"role": "tool", "tool_call_id": f"call_{i}", "content": text}
        for i, (_, text) in enumerate(results, 1)
    ]
    answer = "上海更暖和。"
    later = [*asked, first["choices"][0]["message"], *told]
    steps = [
        {
            "turn": 1,
            "tool": "get_weather",
            "arguments": {"city": city},
            "arguments_text": json.dumps({"city": city}, ensure_ascii=False),
            "result": text,
            "ok": True,
            "order": index,
        }
        for index, (city, text) in enumerate(results)
    ]
    return {
        "schema": SCHEMA,
        "implementation": name,
        "question": question,
        "settings": {"model": "m", "max_steps": 10},
        "versions": {"langgraph": "1.2.3"},
        "status": "completed",
        "answer": answer,
        "steps": steps,
        "exchanges": [exchange(asked, first), exchange(later, reply(answer))],
        **fields,
    }


def another_prompt(run: Record) -> None:
    for each in run["exchanges"]:
        each["request"]["messages"][0]["content"] += " "


def lost_result(run: Record) -> None:
    del run["exchanges"][1]["request"]["messages"][4]


def one_key_more(run: Record) -> None:
    run["exchanges"][0]["request"]["top_p"] = 1


def other_arguments_in_history(run: Record) -> None:
    calls = run["exchanges"][1]["request"]["messages"][2]["tool_calls"]
    calls[1]["function"]["arguments"] = '{"city": "广州"}'


def another_tool_list(run: Record) -> None:
    run["exchanges"][0]["request"]["tools"][0]["function"]["description"] = "Look."


def no_tools(run: Record) -> None:
    del run["exchanges"][0]["request"]["tools"]


def another_reply(run: Record) -> None:
    run["exchanges"][1]["reply"] = reply("上海。")


def another_call(run: Record) -> None:
    run["exchanges"][0]["reply"] = reply(None, call(1, "北京"), call(2, "广州"))


def one_call_less(run: Record) -> None:
    run["exchanges"][0]["reply"] = reply(None, call(1, "北京"))


def failed_reply(run: Record) -> None:
    run["exchanges"][1] |= {"status": 503, "reply": {"error": {"message": "busy"}}}


def another_result(run: Record) -> None:
    run["steps"][1]["result"] = "上海: 8 °C"


def another_order(run: Record) -> None:
    run["steps"][0]["order"], run["steps"][1]["order"] = 1, 0


def not_executed(run: Record) -> None:
    run["steps"][1] |= {"order": None, "ok": False, "result": "no such tool"}


def stopped_early(run: Record) -> None:
    del run["exchanges"][1]
    run |= {"status": "step_limit", "answer": ""}


def invented_answer(run: Record) -> None:
    run["answer"] += "!"


def no_answer(run: Record) -> None:
    run |= {"status": "failed", "answer": "", "error": "KeyError: 'x'"}


def text_protocol(run: Record) -> None:
    run["protocol"] = "text"
    run["steps"][1]["arguments"] = {"city": "广州"}


DIVERGENCES = {
    another_prompt: ("request", 1, "$.messages[0].content"),
    lost_result: ("request", 2, "$.messages[4]"),
    one_key_more: ("request", 1, "$.top_p"),
    other_arguments_in_history: (
        "request",
        2,
        "$.messages[2].tool_calls[1].function.arguments.city",
    ),
    another_tool_list: ("request", 1, "$.tools[0].function.description"),
    no_tools: ("request", 1, "$.tools"),
    another_reply: ("reply", 2, "$.choices[0].message.content"),
    another_call: (
        "reply",
        1,
        "$.choices[0].message.tool_calls[1].function.arguments.city",
    ),
    one_call_less: ("reply", 1, "$.choices[0].message.tool_calls[1]"),
    failed_reply: ("reply", 2, "$.choices[0].message"),
    another_result: ("tool", 1, "steps[1].result"),
    another_order: ("control", 1, "steps[0].order"),
    not_executed: ("control", 1, "steps[1]"),
    stopped_early: ("control", 2, "status"),
    invented_answer: ("control", 0, "answer"),
    no_answer: ("control", 0, "status"),
    text_protocol: ("unknown", 1, "steps[1].arguments.city"),
}


def invented(question: str, expression: str, name: str = "stage3") -> Record:
    """A run that multiplies a price before it knows it, with its grounding marks."""
    run = record(name, question, answer="38,560 HKD")
    calls = [
        ("get_stock_price", {"symbol": "腾讯"}, "Tencent 0700.HK: 385.6 HKD"),
        ("calculate", {"expression": expression}, "30000"),
    ]
    for step, (tool, arguments, result) in zip(run["steps"], calls, strict=True):
        step |= {"tool": tool, "arguments": arguments, "result": result}
        step["arguments_text"] = json.dumps(arguments, ensure_ascii=False)
    mark(marked := from_line(json.dumps(run)))
    return to_json(marked)


def write(path: Path, *records: Record) -> Path:
    lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in records]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def changed(name: str, change: Callable[[Record], None]) -> Record:
    run = record(name)
    change(run)
    return run


def hostile() -> list[Record]:
    """Runs in which whatever can be a text is hostile."""
    spoilt = json.loads(json.dumps(record("x", HOSTILE)).replace("get_weather", "@@"))
    text = json.dumps(spoilt, ensure_ascii=False)
    inner = json.dumps(json.dumps(HOSTILE)[1:-1])[1:-1]  # inside arguments as text
    first = json.loads(text.replace("@@", inner).replace("°C", inner))
    for step in first["steps"]:
        step |= {"arguments": {HOSTILE: HOSTILE}, "result": HOSTILE * 9, "ok": False}
        number = {"number": HOSTILE, "argument": HOSTILE, "result": HOSTILE}
        step["ungrounded"] = [{**number, "arrived": 1, "in_answer": True}]
    for each in first["exchanges"]:
        each |= {"repairs": [HOSTILE], "raw_reply": {HOSTILE: HOSTILE}}
        each["raw_status"] = 200
        each["request"][HOSTILE] = HOSTILE
    first |= {
        "implementation": HOSTILE,
        "history": [HOSTILE],
        "settings": {HOSTILE: HOSTILE, "model": HOSTILE},
        "versions": {HOSTILE: HOSTILE},
        "status": "failed",
        "answer": HOSTILE,
        "error": HOSTILE,
        "warnings": [HOSTILE],
    }
    second, third = copy.deepcopy(first), copy.deepcopy(first)
    second["implementation"], third["implementation"] = "b" + HOSTILE, "c" + HOSTILE
    second["exchanges"][0]["request"][HOSTILE] = "other"
    third["steps"][0]["result"] = "other"
    return [first, second, third]
