"""The shapes in which servers put what a model said, in a whole reply or in a stream.

What is read here counts for both: a message and a delta of a stream are read by the
same functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

REASONING = ("reasoning_content", "reasoning")
"""The fields of a message in which its thoughts stand as text."""

KNOWN = frozenset(("role", "content", "tool_calls", "function_call", "refusal"))
"""The fields of a message that are read by name; so are those of REASONING."""


def first_candidate(choices: Any) -> dict[str, Any] | None:
    """Return the candidate with index 0, else the first; None where there is none.
    Servers asked for several send them in any order."""
    candidates = [each for each in choices or () if isinstance(each, dict)]
    for candidate in candidates:
        if candidate.get("index") == 0:
            return candidate
    return candidates[0] if candidates else None


def first_choice(reply: Any) -> dict[str, Any] | None:
    """Return the choice of a chat completion that counts, None where there is none."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = first_candidate(choices) if isinstance(choices, list) else None
    if choice and isinstance(choice.get("message"), dict):
        return choice
    return None


class Content(NamedTuple):
    """A content, read: its parts for the user, and those that are thoughts."""

    text: str
    thoughts: str = ""
    refusal: str = ""
    odd: bool = False
    """Whether it came as something else than text."""


def read_content(content: Any) -> Content:
    """Return what stands in the content of a message or of a delta."""
    if content is None or isinstance(content, str):
        return Content(content or "")
    if not isinstance(content, list):
        return Content(json.dumps(content, ensure_ascii=False), odd=True)
    texts, thoughts, refusals = [], [], []
    for block in content:
        kind = str(block.get("type")) if isinstance(block, dict) else ""
        if kind in ("thinking", "reasoning"):  # Mistral's, Anthropic's
            thoughts.append(_block_text(block, kind, "text", "content"))
        elif kind == "refusal":
            refusals.append(_block_text(block, "refusal"))
        else:
            texts.append(_block_text(block, "text"))
    return Content("".join(texts), "".join(thoughts), "".join(refusals), odd=True)


def _block_text(block: Any, *fields: str) -> str:
    if isinstance(block, str):
        return block
    for field in fields:
        value = block.get(field) if isinstance(block, dict) else None
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return "".join(_block_text(inner, "text") for inner in value)
    return ""


def read_reasoning(message: Mapping[str, Any]) -> str:
    """Return the thoughts beside the content; some servers send them twice."""
    for name in REASONING:
        if isinstance(value := message.get(name), str) and value:
            return value
    return ""


def read_calls(message: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each tool call as {"id", "index", "function": {…}} and the name of the
    repair that its shape took, "" for none. What is no call at all is yielded as {}."""
    calls, legacy = message.get("tool_calls"), message.get("function_call")
    if not calls and isinstance(legacy, dict):
        yield {"id": None, "index": 0, "function": legacy}, "legacy_function_call"
        return
    repair = ""
    if calls is not None and not isinstance(calls, list):
        calls, repair = [calls], "tool_call_shape"
    for call in calls or ():
        function = call.get("function", call) if isinstance(call, dict) else None
        if isinstance(function, dict):
            found = {"id": call.get("id"), "index": call.get("index")}
            yield {**found, "function": function}, repair
        else:
            yield {}, "tool_call_shape"


# ------------------------------------------------------------------- think blocks

THINK_BLOCKS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
THINK_BEGIN = re.compile("|".join(map(re.escape, THINK_BLOCKS)))
THINK_END = re.compile("|".join(map(re.escape, THINK_BLOCKS.values())))
_THINK_MARK = re.compile(f"{THINK_BEGIN.pattern}|{THINK_END.pattern}")


def began_inside(text: str) -> bool | None:
    """Return whether the text began in a think block, as the chat templates of some
    models make it: its first mark ends one. None: no mark has come."""
    mark = _THINK_MARK.search(text)
    return mark[0] not in THINK_BLOCKS if mark else None


def split_thinking(text: str, *, begun: bool = True) -> tuple[str, list[str]]:
    """Part the text from its think blocks and the blanks behind them. A block that
    never ends hides all that follows; one that never began (the chat template began it)
    hides all before its end, unless `begun` is False: then its end is text."""
    thoughts: list[str] = []
    parts: list[str] = []
    at = 0
    end = THINK_END.search(text) if begun else None
    begin = THINK_BEGIN.search(text)
    if end and not (begin and begin.start() < end.start()):
        thoughts.append(text[: end.start()])
        at = end.end()
    while begin := THINK_BEGIN.search(text, at):
        parts.append(text[at : begin.start()])
        close = THINK_BLOCKS[begin[0]]
        stop = text.find(close, begin.end())
        thoughts.append(text[begin.end() : stop if stop >= 0 else len(text)])
        at = stop + len(close) if stop >= 0 else len(text)
    if not thoughts:
        return text, []
    parts.append(text[at:])
    began_inside = len(parts) == len(thoughts)
    before = "" if began_inside or not parts[0].strip() else parts[0]
    behind = parts if began_inside else parts[1:]
    rest = before + "".join(part.lstrip() for part in behind)
    return rest.rstrip(), [t.strip() for t in thoughts if t.strip()]


def whole_characters(text: str) -> str:
    """Return the text with halves of characters joined, and those left alone replaced:
    no request can carry one. Streams cut a character in two."""
    joined = text.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "surrogatepass"
    )
    return joined.encode("utf-8", "replace").decode("utf-8")
