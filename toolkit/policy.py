"""The one policy by which every stage runs a tool."""

from __future__ import annotations

import contextvars
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

from equivalence.clock import clock
from equivalence.errors import UsageError
from equivalence.gateway.repairs import INVALID_ARGUMENTS
from equivalence.runs.call import call_id

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
    """Return the tools by name, in order. Raises UsageError if two have the same name,
    or one cannot be called as a model calls it."""
    named: dict[str, Tool] = {}
    for tool in tools:
        _check(inspect.unwrap(tool))
        if tool.__name__ in named:
            raise UsageError(f"two tools are named {tool.__name__!r}: rename one")
        named[tool.__name__] = tool
    return named


NOT_BY_NAME = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
}
TAKEN_BY_LANGCHAIN = re.compile(r"args|kwargs|callbacks|run_manager|v__\w+|model_\w+")
"""Parameters that its schema renames, leaves out or cannot hold: to be the same in all
stages, they are refused in all."""


@lru_cache(maxsize=256)
def _check(tool: Tool) -> None:
    name = getattr(tool, "__name__", "")
    if not re.fullmatch(r"[\w-]{1,64}", name):
        raise UsageError(f"{tool!r} has no name to be called by: write it with def")
    if inspect.iscoroutinefunction(tool):
        raise UsageError(f"tool {name!r} is async: pass a plain function")
    for parameter in inspect.signature(tool).parameters.values():
        if parameter.kind in NOT_BY_NAME or parameter.name.startswith("_"):
            raise UsageError(
                f"tool {name!r}: a model cannot pass {parameter.name!r} by name"
            )
        if TAKEN_BY_LANGCHAIN.fullmatch(parameter.name):
            raise UsageError(
                f"tool {name!r}: rename the parameter {parameter.name!r}, a name that"
                " LangChain keeps for itself"
            )


def run_tool(
    name: str,
    arguments: Mapping[str, Any],
    tools: Mapping[str, Tool],
    settings: Settings,
    identifier: str | None = None,
) -> ToolOutcome:
    """Run one call and return what the model gets to read. It never raises for a
    mistake of the model or the tool: those become an error text that helps the model
    to correct itself, without traceback. KeyboardInterrupt and SystemExit pass.
    Whoever watches the tool is told the call's `identifier`.
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
    fixed, told = clock.set(settings.clock), call_id.set(identifier)
    try:
        result = tool(**accepted)
        if inspect.isawaitable(result):
            raise TypeError(_left_waiting(result))
        content = _as_text(result)
    except Exception as error:
        text = f"{name} failed with {type(error).__name__}: {_words(error)}"
        return _refused(_cut(text, settings.tool_result_limit))
    finally:
        clock.reset(fixed)
        call_id.reset(told)
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


def _left_waiting(result: Any) -> str:
    """Why an awaitable is no result; a coroutine is closed, else Python complains."""
    if inspect.iscoroutine(result):
        result.close()
    return f"it returned a {type(result).__name__}, which a plain function must await"


def _words(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # an exception can fail at being shown
        return "(no words)"


def _refused(text: str) -> ToolOutcome:
    return ToolOutcome(encodable(f"Error: {text}"), False)


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
    """Return the model of the arguments: one field for each parameter, under its name.
    Of a field's further traits only those count that LangChain's schema shows: type,
    constraints, default, description; an alias would be a name that nobody knows."""
    from pydantic import create_model
    from pydantic.fields import FieldInfo

    hints = get_type_hints(tool, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(tool).parameters.items():
        hint = hints.get(name, Any)
        if parameter.default is parameter.empty:
            field = FieldInfo.from_annotation(hint)
        else:
            field = FieldInfo.from_annotated_attribute(hint, parameter.default)
        plain = FieldInfo(
            default=field.default,
            default_factory=field.default_factory,
            description=field.description,
        )
        plain.metadata = field.metadata
        fields[name] = (field.annotation, plain)
    return create_model(tool.__name__, **fields)


def _as_text(result: Any) -> str:
    """Text as it is; anything else as JSON that keeps 北京 readable."""
    if isinstance(result, str):
        return encodable(result)
    from pydantic_core import to_jsonable_python

    try:
        plain = to_jsonable_python(result, fallback=str, inf_nan_mode="constants")
    except ValueError:  # bytes that are no text, a list that holds itself
        return encodable(str(result))
    return encodable(json.dumps(plain, ensure_ascii=False))


def encodable(text: str) -> str:
    """Replace lone surrogates, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: the first {limit} of {len(text)} characters]"
