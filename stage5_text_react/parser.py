"""The parser: from the text of a reply to an action, an answer, or neither.

A reply is read label by label; of what is written the first action or answer counts:

- The arguments end where the JSON ends. Text behind them, further actions and invented
  observations are dropped; nothing of them enters the conversation.
- Arguments may also be a Python dict, name=value pairs, stand in a code fence or in
  brackets on the action's line; bare text is the only parameter of a tool that has one.
- An answer goes on to the next label at the start of a line.
- Plain text without a label is never an answer: it may be half a thought. The model is
  reminded of the format instead.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from equivalence.gateway.repairs import INVALID_ARGUMENTS
from toolkit.policy import Tool

LABELS = {
    "thought": ("thought", "思考"),
    "action": ("action", "行动"),
    "input": ("action input", "行动输入"),
    "observation": ("observation", "观察"),
    "answer": ("final answer", "最终答案"),
}
NO_ACTION = ("none", "n", "no", "无")
FORMAT_ERROR = 'Format error: {problem}. Go on with "Final Answer:" or with "Action:".'

_KINDS = {word.replace(" ", ""): k for k, words in LABELS.items() for word in words}
_WORDS = "|".join(
    word.replace(" ", r"[ \t]?\d{0,3}[ \t]?")  # "Action 1 Input 1:" is "Action Input:"
    for words in LABELS.values()
    for word in words
)
_LABEL = re.compile(
    r"(?:^|(?<=[.!?。！？:：]))[ \t>#*_`-]*"  # at the start of a line or of a sentence
    rf"(?P<word>{_WORDS})[ \t]?\d{{0,3}}[ \t*_`]{{0,4}}[:：][*_`]*",
    re.IGNORECASE | re.MULTILINE,
)
_NAME = re.compile(r"[\s\"'`\[*-]*(\w[\w-]*)[\"'`\]*]*")
_FENCE = re.compile(r"\A\s*```\w*\s*(.*?)(?:```|\Z)", re.DOTALL)
_THINKING = re.compile(r"\A.*?</think>|<think>.*?(?:</think>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Action:
    """The model wants a tool."""

    thought: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """The model answers the question."""

    text: str


@dataclass(frozen=True)
class Unreadable:
    """The reply is neither; the reminder tells the model what to write instead."""

    text: str
    reminder: str


def parse(
    reply: str, tools: Mapping[str, Tool], end: str = "stop"
) -> Action | Answer | Unreadable:
    """Return what the reply says. `end` is its finish_reason: one that the length limit
    cut off holds no action, as the arguments may lack their end; a refusal is final."""
    text = _readable(reply)
    if end == "content_filter":
        return Answer(text)
    parts = _parts(text)
    thoughts: list[str] = []
    for part, following in zip(parts, [*parts[1:], Part("", "", 0)], strict=True):
        if part.kind == "observation":  # invented, as all that comes after it
            break
        if part.kind == "thought":
            thoughts.append(part.body)
        if part.kind == "answer" and (answer := _answer(text[part.start :])):
            return Answer(answer)
        if part.kind == "action" and (found := _NAME.match(part.body)):
            name, inline = found[1], part.body[found.end() :]
            if name not in tools and name.lower() in NO_ACTION:
                continue
            if end == "length":
                return _unreadable(text, "your reply was cut off by the length limit")
            has_input = following.kind == "input"
            written = text[following.start :] if has_input else _inline(inline)
            thought = "\n".join(filter(None, thoughts))
            return Action(thought, name, _arguments(written, name, tools.get(name)))
    return _unreadable(text, "a thought alone is not enough")


class Part(NamedTuple):
    """A label's kind, the text from it to the next label, and where that starts."""

    kind: str
    body: str
    start: int


def _parts(text: str) -> list[Part]:
    """The text part by part; what stands before the first label is a thought."""
    labels = list(_LABEL.finditer(text))
    ends = [*(label.start() for label in labels), len(text)]
    parts = [Part("thought", text[: ends[0]].strip(), 0)]
    for label, end in zip(labels, ends[1:], strict=True):
        kind, start = _KINDS[re.sub(r"[\d\s]", "", label["word"]).lower()], label.end()
        parts.append(Part(kind, text[start:end].strip(), start))
    return parts


def _readable(reply: str) -> str:
    """The reply without think blocks and half characters."""
    text = reply.encode("utf-8", "replace").decode("utf-8")
    return _THINKING.sub("", text).strip()


def _unreadable(text: str, problem: str) -> Unreadable:
    return Unreadable(text, FORMAT_ERROR.format(problem=problem))


def _answer(text: str) -> str:
    """The text up to the next label that begins a line."""
    for label in _LABEL.finditer(text):
        if label.start() and text[label.start() - 1] == "\n":
            text = text[: label.start()]
            break
    return text.strip()


def _inline(text: str) -> str:
    """The arguments on the line of the action, or below it where they have brackets."""
    return text if text.lstrip()[:1] in ("{", "(", "`") else text.partition("\n")[0]


def _arguments(written: str, name: str, tool: Tool | None) -> dict[str, Any]:
    """The arguments; what cannot be read goes where the tool policy answers."""
    fenced = _FENCE.match(written)
    text = (fenced[1] if fenced else written).strip(" \t\r\n`")
    bracketed = text.removeprefix(name).lstrip("( \t")
    is_object = bracketed.startswith("{")
    found = _object(bracketed) if is_object else _pairs(bracketed)
    if found is not None:
        return found
    line = text.partition("\n")[0].strip()
    line = re.sub(r"\A\(([^()]*)\)\Z", r"\1", line).strip("\"'“”")
    parameters = list(inspect.signature(tool).parameters) if tool else []
    if not line or (tool and not parameters):
        return {}
    if len(parameters) == 1 and not is_object:
        return {parameters[0]: line}
    return {INVALID_ARGUMENTS: line, "reason": "its input is not a JSON object"}


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object or Python dict at the start of the text."""
    try:
        return _plain(json.JSONDecoder(strict=False).raw_decode(text)[0])
    except (ValueError, RecursionError):
        ends = (match.end() for match in re.finditer("}", text))
        literals = (_literal(text[:end]) for end in islice(ends, 50))
        return next((found for found in literals if found is not None), None)


def _pairs(text: str) -> dict[str, Any] | None:
    """The arguments of city="北京", written as in a Python call."""
    line = text.partition("\n")[0].strip().rstrip(")")
    return _literal(f"dict({line})") if re.match(r"\w+\s*=", line) else None


def _literal(text: str) -> dict[str, Any] | None:
    """The dict that a Python literal stands for; nothing of it is evaluated."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            node = _JsonNames().visit(ast.parse(text, mode="eval").body)
        if isinstance(node, ast.Call):
            pairs = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
            return _plain(pairs)
        return _plain(ast.literal_eval(node))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


class _JsonNames(ast.NodeTransformer):
    """Lets a Python dict have true, false and null in it."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        names = {"true": True, "false": False, "null": None}
        return ast.Constant(names[node.id]) if node.id in names else node


def _plain(value: Any) -> dict[str, Any] | None:
    """The value where a request can carry it: an object without NaN, sets, bytes; half
    characters are replaced."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    plain = json.loads(text.encode("utf-8", "replace"))
    return plain if isinstance(plain, dict) else None
