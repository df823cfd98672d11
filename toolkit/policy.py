"""The one policy by which every stage runs a tool."""

from __future__ import annotations

import contextvars
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

from equivalence.clock import clock
from equivalence.errors import UsageError
from equivalence.gateway.repairs import INVALID_ARGUMENTS

if TYPE_CHECKING:
    from pydantic import BaseModel

    from equivalence.settings import Settings

Tool = Callable[..., Any]


class ToolError(str):
    """What a tool returns when it could not do its work: a text for the model."""

    is_error = True
    """The observer recognises by it a result that reports a failure."""


class ToolOutcome(NamedTuple):
    """The tool message for the model, and whether the tool did its work."""

    content: str
    ok: bool


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return the tools by name, in order. UsageError: a duplicate, or an async one."""
    named: dict[str, Tool] = {}
    for tool in tools:
        if tool.__name__ in named:
            raise UsageError(f"two tools are named {tool.__name__!r}: rename one")
        if inspect.iscoroutinefunction(inspect.unwrap(tool)):
            raise UsageError(f"tool {tool.__name__!r} is async: pass a plain function")
        named[tool.__name__] = tool
    return named


def run_tool(
    name: str,
    arguments: Mapping[str, Any],
    tools: Mapping[str, Tool],
    settings: Settings,
) -> ToolOutcome:
    """Run one call and return what the model gets to read. It never raises for a
    mistake of the model or the tool: those become an error text that helps the model
    to correct itself, without traceback. KeyboardInterrupt and SystemExit pass.
    """
    if name not in tools:
        return _refused(f"there is no tool named {name!r}. Tools: {', '.join(tools)}.")
    if arguments.keys() == {INVALID_ARGUMENTS, "reason"}:
        return _refused(f"{name} was not run: {arguments['reason']}. Call it again.")
    tool = tools[name]
    try:
        accepted = _accept(tool, arguments)
    except Exception as error:  # hints that do not resolve are the tool's mistake
        problem = _words(error)
        return _refused(
            f"{name} was not run: {problem}. Correct this and call it again."
        )
    token = clock.set(settings.clock)
    try:
        result = tool(**accepted)
        content = _as_text(result)
    except Exception as error:
        text = f"{name} failed with {type(error).__name__}: {_words(error)}"
        return _refused(_cut(text, settings.tool_result_limit))
    finally:
        clock.reset(token)
    return ToolOutcome(
        _cut(content, settings.tool_result_limit), not isinstance(result, ToolError)
    )


_T = TypeVar("_T")
_R = TypeVar("_R")


def map_calls(
    function: Callable[[_T], _R], calls: Sequence[_T], concurrency: int
) -> list[_R]:
    """Apply `function` to the calls of one turn, at most `concurrency` at a time; the
    results are in call order whichever finishes first."""
    if concurrency == 1 or len(calls) < 2:
        return [function(call) for call in calls]
    contexts = [contextvars.copy_context() for _ in calls]
    with ThreadPoolExecutor(concurrency) as pool:
        return list(
            pool.map(lambda run, call: run.run(function, call), contexts, calls)
        )


def _words(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # an exception can fail at being shown
        return "(no words)"


def _refused(text: str) -> ToolOutcome:
    return ToolOutcome(_encodable(f"Error: {text}"), False)


def _accept(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments validated against the signature; unknown ones are dropped.
    ValueError names each parameter that does not fit."""
    from pydantic import ValidationError

    model = arguments_model(inspect.unwrap(tool))
    try:
        valid = model.model_validate(dict(arguments))
    except ValidationError as error:
        raise ValueError(
            "; ".join(
                f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_context=False)
            )
        ) from None
    return {field: getattr(valid, field) for field in type(valid).model_fields}


@lru_cache(maxsize=256)
def arguments_model(tool: Tool) -> type[BaseModel]:
    """Return the model of the arguments: one field for each parameter."""
    from pydantic import create_model

    hints = get_type_hints(tool, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints.get(name, Any), ... if p.default is p.empty else p.default)
        for name, p in inspect.signature(tool).parameters.items()
    }
    return create_model(tool.__name__, **fields)


def _as_text(result: Any) -> str:
    """Text as it is; anything else as JSON that keeps 北京 readable."""
    if isinstance(result, str):
        return _encodable(result)
    from pydantic_core import to_jsonable_python

    try:
        plain = to_jsonable_python(result, fallback=str, inf_nan_mode="constants")
    except ValueError:  # bytes that are no text, a list that holds itself
        return _encodable(str(result))
    return _encodable(json.dumps(plain, ensure_ascii=False))


def _encodable(text: str) -> str:
    """Replace lone surrogates, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: the first {limit} of {len(text)} characters]"
