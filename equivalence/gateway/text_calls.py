"""Tool calls that a model wrote as text, because its server did not parse them.

The rule is narrow, so that prose which merely quotes a call stays prose: either the
whole text, less one code fence, is calls and nothing else, or the calls stand in marks
that say so; and every name is one of the offered tools. Marks are the tags and special
tokens with which chat templates set calls off: <tool_call>, [TOOL_CALLS],
<|python_tag|>, and dozens more.

No list of marks is ever complete, so `looks_like_call` is a general rule beside it.

Every text is read once from its beginning to its end: a reply may hold 12,000 tags that
nothing closes.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Collection, Iterator
from typing import Any

Call = dict[str, Any]

_BAR = "[|\uff5c]"
"""In special tokens; DeepSeek's are full-width."""

OPENING = re.compile(
    # <tool_call>, <minimax:tool_call>, <function_calls>, <tools>, <invoke name="…">
    r"<(?:[\w-]{1,20}:)?(?:tool_calls?|tools|function_calls?)>"
    rf"|<(?:[\w-]{{1,20}}:|{_BAR}DSML{_BAR})?invoke\s[^<>]{{1,200}}>"
    rf"|<{_BAR}DSML{_BAR}\w{{1,40}}>"
    # Qwen3-Coder's XML, also where it forgets the tags around it; Llama's
    r"|<function=[^<>\s]{1,200}>"
    # <|python_tag|>, <|tool_call|>, <|action_start|>, <｜tool▁calls▁begin｜>
    rf"|<{_BAR}[^<>|\uff5c\s]{{0,20}}(?:tool|python|action|function)[^<>|\uff5c\s]{{0,30}}{_BAR}>"
    # gpt-oss: <|channel|>commentary to=functions.get_weather
    rf"|<{_BAR}channel{_BAR}>\w{{1,20}} to=functions\."
    # Mistral, LM Studio
    r"|\[TOOL_(?:CALLS?|REQUEST)\]",
    re.IGNORECASE,
)
"""A mark in which calls begin."""

_MARK = re.compile(
    rf"<{_BAR}[^<>\s]{{1,60}}{_BAR}>|<[^<>]{{1,250}}>|\[/?[A-Z_]{{3,30}}\]"
)
_TOKEN = re.compile(rf"<{_BAR}")
_MARK_BEGINS = re.compile(r"[<\[]")
_END = re.compile(
    rf"</|\[/|\[END|<{_BAR}(?:[^<>]*(?:end|eom|eot)|call{_BAR})", re.IGNORECASE
)
_INVOKE = re.compile(
    r"<(?:[^<>\s=/]{0,30}[:\uff5c|])?(?:invoke\s+name|function\s+name|function)\s*=\s*"
    r"[\"']?([^<>\s\"']{1,200})[\"']?[^<>]{0,100}>"
)
_INVOKE_END = re.compile(r"</[^<>]{0,30}(?:invoke|function)>")
_PARAMETER = re.compile(
    r"<(?:[^<>\s=/]{0,30}[:\uff5c|])?parameter(?:\s+name)?\s*=\s*"
    r"[\"']?([^<>\s\"']{1,200})[\"']?([^<>]{0,100})>"
)
_PARAMETER_END = re.compile(r"</[^<>]{0,30}parameter>")
_FENCE = re.compile(r"```[\w-]*[ \t]*\n?")
_FENCED = re.compile(r"\A```([\w-]*)[ \t]*\n?(.*?)\n?[ \t]*```\Z", re.DOTALL)
_OPEN_FENCE = re.compile(r"```[\w-]*\s*\Z")
_WORD = re.compile(r"[^\s<>\[\]{}()`,;]+")
_NAME = re.compile(r'"(?:name|tool_name)"\s*:\s*"([^"]+)"')
_WITH_ARGUMENTS = re.compile(r'"(?:arguments|parameters|args)"\s*:')
_BRACES = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|\{\{|\}\}', re.DOTALL)

NAMES = ("name", "tool_name", "function", "tool")
ARGUMENTS = ("arguments", "parameters", "args")
LONGEST_PYTHON = 20_000
"""Characters of a call written in Python; longer ones are not tried."""


def calls_in_text(text: str, offered: Collection[str]) -> tuple[str, list[Call]] | None:
    """Return the text before the calls and the calls, in the shape of `tool_calls`
    without ids, in order of appearance; None where the text is just text."""
    if not offered:
        return None
    if opening := OPENING.search(text):
        before = _OPEN_FENCE.sub("", text[: opening.start()]).rstrip()
        calls = list(_marked(text, opening.start(), offered))
    else:
        before = ""
        calls = _bare(text.strip(), offered)
    names = [call["function"]["name"] for call in calls]
    if names and all(name in offered for name in names):
        return before, calls
    return None


def may_become_calls(begun: str, offered: Collection[str]) -> bool | None:
    """Tell whether a text that begins so can be calls without marks around them as a
    whole; None while that cannot be said yet."""
    text = begun.lstrip()
    if not offered:
        return False
    if text.startswith("`"):
        if not (fence := re.match(r"```([\w-]{0,30})[ \t]*\n", text)):
            return None if re.fullmatch(r"`{1,3}[\w-]{0,30}[ \t]*", text) else False
        text = text[fence.end() :].lstrip()
    if not text:
        return None
    if text[0] in "{[":
        inner = text[1:].lstrip()
        if not inner:
            return None
        if text[0] == "{":
            inner = inner[1:].lstrip() if inner[0] == "{" else inner
            return inner[0] in "\"'" if inner else None
        return inner[0] == "{" or _begins_call(inner, offered)
    return _begins_call(text, offered)


def _begins_call(text: str, offered: Collection[str]) -> bool | None:
    """Whether the text begins with a call in Python, or Phi-4's functools[…]."""
    word = re.match(r"[\w.]*", text)
    assert word
    if word.end() < len(text):
        known = word[0] == "print" or any(n in offered for n in word[0].split("."))
        bracket = text[word.end()]
        return (known and bracket == "(") or (word[0], bracket) == ("functools", "[")
    beginnings = (*offered, "print", "functools")
    begun = word[0].rpartition(".")[2]
    return None if any(name.startswith(begun) for name in beginnings) else False


# -------------------------------------------------------------- the general rule

_UNKNOWN = re.compile(
    rf"<{_BAR}[^<>\s]{{1,60}}{_BAR}>|\[[A-Z][A-Z_]{{2,30}}\]|<(?P<tag>[\w:-]{{1,40}})\b[^<>]{{0,200}}>"
)
_OF_HTML = re.compile(
    r"a|abbr|b|blockquote|br|center|code|details|div|em|font|h[1-6]|head|hr|html|body|i"
    r"|img|kbd|li|mark|ol|p|pre|q|s|small|span|strong|style|sub|summary|sup|svg|table"
    r"|tbody|td|th|thead|tr|u|ul",
    re.IGNORECASE,
)


def looks_like_call(text: str, offered: Collection[str]) -> bool:
    """Tell whether the text begins like a call of an offered tool in a form that nobody
    here reads: with a special token or a tag, and the name of the tool behind it; or
    with JSON that names tool and arguments, and is broken or goes on as prose."""
    text = text.lstrip()
    text = _FENCE.sub("", text, count=1) if text[:3] == "```" else text
    named = _NAME.search(text, 0, 200) if text[:1] in ("{", "[") else None
    if named and named[1] in offered and _WITH_ARGUMENTS.search(text):
        return True
    mark = _UNKNOWN.match(text)
    if not mark or _OF_HTML.fullmatch(mark["tag"] or ""):
        return False
    names = "|".join(re.escape(name) for name in offered)
    return bool(names and re.search(rf"(?<!\w)(?:{names})(?!\w)", text))


# ---------------------------------------------------------------- calls in marks


def _marked(text: str, at: int, offered: Collection[str]) -> Iterator[Call]:
    """Yield the calls from the opening mark on. What stands behind a mark that ends a
    call, up to the next mark, is prose."""
    inside, name = False, None
    named_here = False  # in the text since the last mark
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif invoke := _INVOKE.match(text, at):
            yield from _without_arguments(name)
            closed = _INVOKE_END.search(text, invoke.end())
            body = text[invoke.end() : closed.start() if closed else len(text)].strip()
            yield _call(invoke[1], _parameters(body))
            at, inside, name = closed.end() if closed else len(text), False, None
        elif text.startswith("<arg_key>", at):  # GLM
            pairs, at = _key_by_key(text, at)
            if name:
                yield _call(name, pairs)
            inside, name = False, None
        elif text.startswith("```", at) and (fence := _FENCE.match(text, at)):
            at = fence.end()
        elif mark := _MARK.match(text, at):
            if inside and _END.match(mark[0]):
                yield from _without_arguments(name)
                inside, name = False, None
            else:
                inside = True
                if mark[0].lower().startswith("<|channel"):
                    name = None
            at, named_here = mark.end(), False
        elif not inside:
            at = _next_mark(text, at)
        elif text[at] in "{[":
            calls, at = _json_at(text, at, name, offered)
            yield from calls
            name = None
        elif word := _WORD.match(text, at):
            if word.end() < len(text) and text[word.end()] == "(":
                end = _next_mark(text, at)
                yield from _python(text[at:end].strip(), offered)
                at = end
                continue
            at = word.end()
            if named := _named(word[0], offered):
                name, named_here = named, True
            elif named_here:  # a sentence that begins with the name
                name, named_here = None, False
        else:
            at += 1
    if inside:
        yield from _without_arguments(name)


def _without_arguments(name: str | None) -> Iterator[Call]:
    if name:
        yield _call(name, None)


def _named(word: str, offered: Collection[str]) -> str | None:
    """The offered tool that the word names: "functions.get_weather:0" (Kimi),
    "to=functions.get_weather" (gpt-oss)."""
    for candidate in (word, re.sub(r"\A(?:to=)?(?:functions\.)?|:\d+\Z", "", word)):
        if candidate in offered:
            return candidate
    return None


def _next_mark(text: str, at: int) -> int:
    mark = _MARK_BEGINS.search(text, at + 1)
    return mark.start() if mark else len(text)


def _json_at(
    text: str, at: int, name: str | None, offered: Collection[str]
) -> tuple[list[Call], int]:
    """The calls of the JSON at that place, and where it ends. What is plainly a call
    but not valid JSON keeps its text as arguments: the model then learns that they did
    not parse."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        end = text.find("</", at)
        rest = text[at : end if end >= 0 else len(text)].strip()
        python = _TOKEN.split(rest, maxsplit=1)[0]
        if text[at] == "[" and (calls := list(_python(python, offered))):
            return calls, len(text)
        if name is None and (found := _NAME.search(rest)):
            name = found[1]
        return [_call(name, rest)] if name else [], len(text)
    while end < len(text) and text[end] in " \t\r\n,;":
        end += 1
    if name and isinstance(value, dict):
        return [_call(name, value)], end
    entries = value if isinstance(value, list) else [value]
    nobody = _call("", None)  # a name that is not offered
    return [_as_call(e, may_lack_arguments=True) or nobody for e in entries], end


def _parameters(body: str) -> Any:
    """The arguments of an element: parameters as XML, or JSON (Llama 3.1)."""
    if body.startswith("{"):
        return body
    found, at = {}, 0
    while parameter := _PARAMETER.search(body, at):
        end = _PARAMETER_END.search(body, parameter.end())
        if not end:
            break
        text = body[parameter.end() : end.start()]
        as_text = 'string="true"' in parameter[2]
        found[parameter[1]] = text.strip() if as_text else _value(text)
        at = end.end()
    return found


def _key_by_key(text: str, at: int) -> tuple[dict[str, Any], int]:
    """GLM's <arg_key>city</arg_key><arg_value>北京</arg_value>, and where they end."""
    found: dict[str, Any] = {}
    while text.startswith("<arg_key>", at):
        key_end = text.find("</arg_key>", at)
        start = text.find("<arg_value>", key_end)
        end = text.find("</arg_value>", start)
        if min(key_end, start, end) < 0:
            return found, len(text)
        found[text[at + len("<arg_key>") : key_end].strip()] = _value(
            text[start + len("<arg_value>") : end]
        )
        at = end + len("</arg_value>")
        while at < len(text) and text[at].isspace():
            at += 1
    return found, at


def _value(text: str) -> Any:
    """A parameter written in XML: JSON where it is a list or an object, else the text,
    which the validation of the tool's arguments turns into numbers."""
    text = text.strip()
    try:
        return json.loads(text) if text[:1] in ("[", "{") else text
    except (ValueError, RecursionError):
        return text


# ------------------------------------------------------- calls as the whole text


def _bare(text: str, offered: Collection[str]) -> list[Call]:
    """The calls where the whole text is calls, else none."""
    fenced = _FENCED.match(text)
    inner = fenced[2].strip() if fenced else text
    inner = inner.removeprefix("functools") if inner.startswith("functools[") else inner
    if inner[:1] in ("{", "["):
        try:
            values = list(_json_values(_undoubled(inner)))
        except (ValueError, RecursionError):
            return list(_python(inner, offered)) if inner[0] == "[" else []
        entries = [e for v in values for e in (v if isinstance(v, list) else [v])]
        found = [_as_call(entry, may_lack_arguments=False) for entry in entries]
        return [call for call in found if call] if all(found) else []
    return list(_python(inner, offered))


def _undoubled(text: str) -> str:
    """The text; braces that come in pairs, as a template writes them and Qwen2.5 copies
    them, {{"name": …}}, are single outside of strings."""
    if not text.startswith("{{"):
        return text
    return _BRACES.sub(lambda found: found[1] or found[0][0], text)


_DECODER = json.JSONDecoder(strict=False)


def _json_values(text: str) -> Iterator[Any]:
    position = 0
    while position < len(text):
        value, position = _DECODER.raw_decode(text, position)
        yield value
        while position < len(text) and text[position] in " \t\r\n,;":
            position += 1


def _as_call(value: Any, *, may_lack_arguments: bool) -> Call | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    value = inner if isinstance(inner, dict) else value
    name = next((value[key] for key in NAMES if isinstance(value.get(key), str)), None)
    if name is None:
        return None
    for key in ARGUMENTS:
        if key in value:
            return _call(name, value[key])
    return _call(name, None) if may_lack_arguments and len(value) == 1 else None


def _python(text: str, offered: Collection[str]) -> Iterator[Call]:
    """Yield the calls of [get_weather(city="北京")] (Llama) or of print(…) (Gemma), if
    there is nothing else in the text."""
    if len(text) > LONGEST_PYTHON or not text.rstrip().endswith((")", "]")):
        return
    if not any(name in text for name in offered):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            body = ast.parse(text).body
        nodes = [node.value for node in body if isinstance(node, ast.Expr)]
        if len(nodes) != len(body):
            return
        calls = [call for node in nodes for call in _python_calls(node)]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return
    yield from calls


def _python_calls(node: ast.expr) -> Iterator[Call]:
    """Yield the calls of one expression. Raises ValueError if it is anything else."""
    if isinstance(node, ast.List | ast.Tuple):
        for inner in node.elts:
            yield from _python_calls(inner)
        return
    if not isinstance(node, ast.Call):
        raise ValueError("no call")
    function = node.func
    if isinstance(function, ast.Name) and function.id == "print" and node.args:
        for inner in node.args:
            yield from _python_calls(inner)
        return
    if isinstance(function, ast.Attribute):  # default_api.get_weather, get_weather.call
        owner = function.value
        built_in = function.attr == "call" and isinstance(owner, ast.Name)
        name = owner.id if built_in and isinstance(owner, ast.Name) else function.attr
    elif isinstance(function, ast.Name):
        name = function.id
    else:
        raise ValueError("no name")
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("arguments without names")
    json_names = _JsonNames()
    arguments = {
        str(keyword.arg): ast.literal_eval(json_names.visit(keyword.value))
        for keyword in node.keywords
    }
    json.dumps(arguments)  # TypeError for bytes and sets, which no JSON can hold
    yield _call(name, arguments)


class _JsonNames(ast.NodeTransformer):
    """Lets a call in Python have true, false and null in it."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        names = {"true": True, "false": False, "null": None}
        return ast.Constant(names[node.id]) if node.id in names else node


def _call(name: str, arguments: Any) -> Call:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}
