"""The parser: from the text of a reply to an action, an answer, or neither.

A reply is read label by label; of what is written the first action or answer counts:

- The arguments end where the JSON ends. Text behind them, further actions and invented
  observations are dropped; nothing of them enters the conversation.
- Arguments may also be a Python dict, name=value pairs, stand in a code fence or in
  brackets on the action's line; bare text is the only parameter of a tool that has one,
  without the punctuation, brackets or label around it.
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
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from equivalence.gateway.repairs import INVALID_ARGUMENTS
from equivalence.gateway.shapes import split_thinking, whole_characters
from toolkit.policy import Tool

LABELS = {
    "thought": ("thought", "思考"),
    "action": ("action", "行动"),
    "input": ("action input", "行动输入", "input", "输入"),
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
_NAME = re.compile(r"[\s\"'`\[*-]*(\w[\w-]*)[\"'`*]*(?:\](?!\w))?")
_INLINE_LABEL = re.compile(  # "Action: get_weather, Action Input: 北京"
    rf"[\s,，;；:：]*(?:(?:{_WORDS})\s*[:：=]\s*)?", re.IGNORECASE
)
_FENCE = re.compile(r"\A\s*```\w*\s*(.*?)(?:```|\Z)", re.DOTALL)


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
    text, _ = split_thinking(whole_characters(reply))
    return text.strip()


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
    if text.lstrip()[:1] in ("{", "(", "`", "["):
        return text
    line = text.partition("\n")[0]
    label = _INLINE_LABEL.match(line)
    rest = line[label.end() :] if label else line
    # an object goes on below the line
    return text[len(line) - len(rest) :] if rest[:1] in ("{", "`") else rest


def _arguments(written: str, name: str, tool: Tool | None) -> dict[str, Any]:
    """The arguments; what cannot be read goes where the tool policy answers."""
    fenced = _FENCE.match(written)
    text = (fenced[1] if fenced else written).strip(" \t\r\n`")
    bare = _inside_brackets(text.removeprefix(name).lstrip())
    is_object = bare.startswith("{")
    parameters = list(inspect.signature(tool).parameters) if tool else []
    found = _object(bare) if is_object else _pairs(bare, parameters)
    if found is not None:
        return found
    line = _without_punctuation(bare.partition("\n")[0])
    if not line or (tool and not parameters):
        return {}
    # a name that the tool does not have must not pass for a part of the text
    is_text = not is_object and not re.match(r"[A-Za-z_]\w*\s*=(?!=)", line)
    if len(parameters) == 1 and is_text:
        return {parameters[0]: line}
    return {INVALID_ARGUMENTS: line, "reason": "its input is not a JSON object"}


_CLOSING = {"(": ")", "[": "]"}


def _inside_brackets(text: str) -> str:
    """What stands in the brackets around the arguments: get_weather[北京]. Text behind
    them is dropped; brackets around a part alone, as in (1+2)*3, belong to it."""
    if text[:1] not in _CLOSING:
        return text
    closing = _CLOSING[text[0]]
    depth = 0
    for place, character in enumerate(text[:_LONGEST_BRACKETED]):
        depth += (character == text[0]) - (character == closing)
        if depth == 0:
            behind = text[place + 1 :].partition("\n")[0].strip()
            is_part = text[0] == "(" and behind and not behind[0].isalpha()
            return text if is_part else text[1:place].strip()
    return text[1:].strip()  # the bracket was never closed


_LONGEST_BRACKETED = 10_000


def _without_punctuation(line: str) -> str:
    """The text without quotes around it and without what ends a sentence."""
    line = line.strip().rstrip("。，,；;、")
    if " " not in line:
        line = line.rstrip(".")
    return line.strip("\"'“”「」").strip()


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object or Python dict at the start of the text."""
    try:
        return _plain(json.JSONDecoder(strict=False).raw_decode(text)[0])
    except (ValueError, RecursionError):
        ends = (match.end() for match in re.finditer("}", text))
        literals = (_literal(text[:end]) for end in islice(ends, 50))
        return next((found for found in literals if found is not None), None)


def _pairs(text: str, parameters: Collection[str]) -> dict[str, Any] | None:
    """The arguments of city="北京", written as in a Python call, or of city=北京 and
    city: 北京, where these are the tool's own names."""
    line = text.partition("\n")[0].strip()
    found = (
        _literal(f"dict({line.rstrip(')')})") if re.match(r"\w+\s*=", line) else None
    )
    if found is not None:
        return found
    names = "|".join(map(re.escape, parameters))
    if not names or not re.match(rf"(?:{names})\s*[=:：]", line, re.IGNORECASE):
        return None
    parts = re.split(rf"[,，;；]?\s*\b({names})\s*[=:：]\s*", line, flags=re.IGNORECASE)
    own = {name.lower(): name for name in parameters}
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return {own[name.lower()]: _without_punctuation(value) for name, value in pairs}


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
