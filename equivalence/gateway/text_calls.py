"""Tool calls that a model wrote as text, because its server did not parse them.

The rule is narrow, so that prose which merely quotes a call stays prose: either the
whole text, less one code fence, is calls and nothing else, or the calls stand in
explicit call tags; and every name is one of the offered tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

Call = dict[str, Any]

# the tags of Qwen and Hermes; Qwen3-Coder's XML, also where it forgets the tags around
# it; the markers of Mistral and Llama, which nothing ends
_TAGGED = re.compile(
    r"<(tool_call|tools|function_call)>(?P<tag>.*?)(?:</\1>|\Z)"
    r"|(?P<xml><function=[^<>\s]+>.*?(?:</function>|\Z))"
    r"|(?:\[TOOL_CALLS\]|<\|python_tag\|>)(?P<rest>.*)\Z",
    re.DOTALL,
)
_FENCED = re.compile(r"\A```[\w-]*[ \t]*\n?(.*?)\n?[ \t]*```\Z", re.DOTALL)
_OPEN_FENCE = re.compile(r"```[\w-]*\s*\Z")
_XML = re.compile(r"<function=([^<>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_XML_PARAMETER = re.compile(r"<parameter=([^<>\s]+)>(.*?)</parameter>", re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*"([^"]+)"')


def calls_in_text(text: str, offered: Collection[str]) -> tuple[str, list[Call]] | None:
    """Return the text before the calls and the calls, in the shape of `tool_calls`
    without ids, in order of appearance; None where the text is just text."""
    tagged = list(_TAGGED.finditer(text))
    if tagged:
        before = _OPEN_FENCE.sub("", text[: tagged[0].start()]).strip()
        inner = (
            match["tag"] or match["xml"] or match["rest"] or "" for match in tagged
        )
        calls = [call for written in inner for call in _in_tag(written.strip())]
    else:
        before = ""
        stripped = text.strip()
        fenced = _FENCED.match(stripped)
        calls = _in_json(fenced[1].strip() if fenced else stripped) or []
    names = [call["function"]["name"] for call in calls]
    if names and all(name in offered for name in names):
        return before, calls
    return None


def _in_tag(inner: str) -> list[Call]:
    """The calls inside one tag. What is plainly a call but not valid JSON keeps its
    text as arguments: the model then learns that they did not parse."""
    if found := _XML.findall(inner):
        return [_call(name, _xml_arguments(body.strip())) for name, body in found]
    calls = _in_json(inner, may_lack_arguments=True)
    if calls is None and (name := _NAME.search(inner)):
        calls = [_call(name[1], inner)]
    return calls or []


def _xml_arguments(body: str) -> Any:
    """Qwen3-Coder writes parameters as XML, Llama 3.1 as JSON."""
    if body.startswith("{"):
        return body
    return {name: _value(text) for name, text in _XML_PARAMETER.findall(body)}


def _in_json(text: str, *, may_lack_arguments: bool = False) -> list[Call] | None:
    """The calls where the text is JSON values that are all calls, else None."""
    try:
        values = list(_json_values(text))
    except (ValueError, RecursionError):
        return None
    entries = [e for v in values for e in (v if isinstance(v, list) else [v])]
    calls = [_as_call(entry, may_lack_arguments) for entry in entries]
    return [c for c in calls if c] if calls and all(calls) else None


def _json_values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        yield value
        while position < len(text) and text[position] in " \t\r\n,;":
            position += 1


def _as_call(value: Any, may_lack_arguments: bool) -> Call | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    value = inner if isinstance(inner, dict) else value
    name = value.get("name")
    for key in ("arguments", "parameters"):
        if isinstance(name, str) and key in value:
            return _call(name, value[key])
    if isinstance(name, str) and may_lack_arguments and len(value) == 1:
        return _call(name, None)
    return None


def _call(name: str, arguments: Any) -> Call:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def _value(text: str) -> Any:
    """A parameter written in XML: JSON where it is a list or an object, else the text,
    which the validation of the tool's arguments turns into numbers."""
    text = text.strip()
    try:
        return json.loads(text) if text[:1] in ("[", "{") else text
    except ValueError:
        return text
