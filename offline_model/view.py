"""A request as the offline model sees it, whichever of two forms it has: tools and tool
calls in their own fields, or all of it as text (ReAct: Action, Action Input,
Observation)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

REACT = "Action Input:"

# ---------------------------------------------------------------------------- the tools

LOOKS_UP = {"weather": "get_weather", "price": "get_stock_price"}
CLOCK = "get_current_time"
PARAMETERS: dict[str, tuple[str, ...]] = {
    "get_weather": ("city",),
    "get_stock_price": ("symbol",),
    "calculate": ("expression",),
    "unit_convert": ("value", "from_unit", "to_unit"),
    CLOCK: (),
}


@dataclass(frozen=True)
class Tool:
    """An offered tool. Its parameters are in our order, under its own names, and None
    when it takes others than the tool that we know by this name."""

    description: str
    parameters: tuple[str, ...] | None


def toolbox(functions: Iterable[object]) -> dict[str, Tool]:
    """The offered tools that we know by name, from their schemas in the request."""
    return {
        name: Tool(str(function.get("description", "")), _parameters(name, function))
        for function in map(as_dict, functions)
        if (name := str(function.get("name"))) in PARAMETERS
    }


def _parameters(name: str, function: dict[str, Any]) -> tuple[str, ...] | None:
    """Our names if the tool has them, else the name of its single required string."""
    schema, ours = as_dict(function.get("parameters")), PARAMETERS[name]
    offered = as_dict(schema.get("properties"))
    required = [p for p in offered if p in as_list(schema.get("required", [*offered]))]
    if not offered or set(required) <= set(ours) <= set(offered):
        return ours
    texts = [p for p in required if as_dict(offered[p]).get("type") == "string"]
    return tuple(texts) if len(ours) == len(required) == len(texts) == 1 else None


def as_list(value: object) -> list[Any]:
    """The value where it is a list; else an empty one."""
    return value if isinstance(value, list) else []


def as_dict(value: object) -> dict[str, Any]:
    """The value where it is a dict; else an empty one."""
    return value if isinstance(value, dict) else {}


# -------------------------------------------------------------------------- the request


@dataclass
class Call:
    """One tool call, its arguments in our order, with its result once there is one."""

    tool: str
    values: tuple[object, ...]
    id: str = ""
    result: str | None = None


@dataclass
class Turn:
    """One question, and what followed it."""

    question: str
    calls: list[Call] = field(default_factory=list)
    answer: str = ""


@dataclass
class View:
    """What a request says."""

    turn: Turn  # the last, which is to be answered
    earlier: list[Turn]
    tools: dict[str, Tool]
    react: bool
    one_at_a_time: bool
    temperature: float
    seed: str

    @classmethod
    def of(cls, request: Mapping[str, Any], run_seed: int) -> View:
        messages = [m for m in as_list(request.get("messages")) if isinstance(m, dict)]
        system = "\n".join(_text(m) for m in messages if m.get("role") == "system")
        listed = as_list(request.get("tools"))
        react = not listed and REACT in system
        functions = [as_dict(tool).get("function") for tool in listed]
        if request.get("tool_choice") == "none":
            functions = []
        elif react:
            functions = _tools_in(system)
        tools = toolbox(functions)
        temperature, seed = request.get("temperature"), request.get("seed")
        if not isinstance(temperature, int | float) or not 0 <= temperature <= 100:
            temperature = 0
        *earlier, turn = _turns(messages, react, tools)
        return cls(
            turn=turn,
            earlier=earlier,
            tools=tools,
            react=react,
            one_at_a_time=react or request.get("parallel_tool_calls") is False,
            temperature=float(temperature),
            seed=str(run_seed if seed is None else seed),
        )

    def said(self) -> list[str]:
        """The answers and results of the earlier turns, newest first."""
        return [
            text
            for turn in reversed(self.earlier)
            for text in (turn.answer, *(call.result for call in reversed(turn.calls)))
            if text
        ]


def _turns(
    messages: list[dict[str, Any]], react: bool, tools: Mapping[str, Tool]
) -> list[Turn]:
    """The conversation as turns; never empty."""
    turns = [Turn("")]
    for message in messages:
        role, text = message.get("role"), _text(message)
        if role == "user" and react and text.lstrip().startswith("Observation:"):
            _attach(turns[-1].calls, None, text.split("Observation:", 1)[1].strip())
        elif role == "user":
            turns.append(Turn(text))
        elif role == "tool":
            _attach(turns[-1].calls, message.get("tool_call_id"), text)
        elif role == "assistant":
            calls = _react_calls(text) if react else _chat_calls(message)
            for call_id, name, arguments in calls:
                tool = tools.get(name)
                names = (tool and tool.parameters) or PARAMETERS.get(name, ())
                values = tuple(as_dict(arguments).get(key) for key in names)
                turns[-1].calls.append(Call(name, values, call_id))
            if not calls:
                turns[-1].answer = text.rpartition("Final Answer:")[2].strip()
    return turns[1:] or turns


def _chat_calls(message: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """The id, tool and arguments of each call."""
    calls = []
    for call in map(as_dict, as_list(message.get("tool_calls"))):
        function = as_dict(call.get("function"))
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            arguments = _parsed(arguments)
        calls.append((str(call.get("id")), str(function.get("name")), arguments))
    return calls


def _react_calls(text: str) -> list[tuple[str, str, Any]]:
    found = re.search(r"Action:([^\n]*)\n\s*Action Input:(.*)", text, re.DOTALL)
    return [("", found[1].strip(), _parsed(found[2].strip()))] if found else []


def _attach(calls: list[Call], call_id: object, result: str) -> None:
    """Give the result to its call: by id, else to the first that has none."""
    waiting = [call for call in calls if call.result is None]
    same = [call for call in waiting if call.id == call_id]
    for call in (same or waiting)[:1]:
        call.result = result


def _tools_in(system: str) -> list[Any]:
    """The tools that a text prompt lists, one a line as JSON."""
    lines = [line.strip().lstrip("-* ") for line in system.splitlines()]
    tools = [as_dict(_parsed(line)) for line in lines if line.startswith("{")]
    return [tool for tool in tools if "name" in tool]


def _text(message: Mapping[str, Any]) -> str:
    """The text of a message, also of one whose content is a list of blocks."""
    content = message.get("content")
    if isinstance(content, list):
        texts = (b if isinstance(b, str) else as_dict(b).get("text") for b in content)
        content = "".join(text for text in texts if isinstance(text, str))
    text = content if isinstance(content, str) else ""
    return text.encode("utf-8", "replace").decode("utf-8")


def _parsed(text: str) -> Any:
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


# ---------------------------------------------------------------------------- the reply


def chat_message(view: View, calls: list[Call], text: str) -> dict[str, Any]:
    """The calls, under ids new to the conversation, or else the text."""
    if not calls:
        return {"role": "assistant", "content": text}
    taken = [call.id for turn in (*view.earlier, view.turn) for call in turn.calls]
    number, listed = len(taken), []
    for call in calls:
        number += 1
        while f"call_{number}" in taken:
            number += 1
        function = {"name": call.tool, "arguments": _arguments(view, call)}
        listed.append(
            {"id": f"call_{number}", "type": "function", "function": function}
        )
    return {"role": "assistant", "content": None, "tool_calls": listed}


def react_message(
    view: View, calls: list[Call], text: str, chinese: bool
) -> dict[str, Any]:
    """The same as text: a thought, then one action or the final answer."""
    if not calls:
        thought = "已经可以回答了。" if chinese else "I can answer now."
        rest = f"Final Answer: {text}"
    else:
        (call,) = calls
        thought = (
            f"需要先调用 {call.tool}。" if chinese else f"I need {call.tool} first."
        )
        rest = f"Action: {call.tool}\nAction Input: {_arguments(view, call)}"
    return {"role": "assistant", "content": f"Thought: {thought}\n{rest}"}


def _arguments(view: View, call: Call) -> str:
    names = view.tools[call.tool].parameters or ()
    return json.dumps(dict(zip(names, call.values, strict=True)), ensure_ascii=False)
