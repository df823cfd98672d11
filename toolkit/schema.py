"""A tool's JSON Schema, from its signature, type hints and docstring.

It is the schema that LangChain makes of the same function, so that a model gets to read
the same of a tool whichever stage offers it.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_type_hints

from toolkit.policy import Tool, arguments_model


def tool_schema(tool: Tool) -> dict[str, Any]:
    """Return {"name", "description", "parameters"} of a tool that by_name took; its
    parameters are shared by all who ask. Raises ValueError if it has no docstring, or a
    type that JSON lacks."""
    name = tool.__name__
    if not (tool.__doc__ or "").strip():
        raise ValueError(f"tool {name!r} has no docstring: the model chooses by it")
    return {
        "name": name,
        # Not inspect.getdoc: LangChain leaves the indentation of later lines, too.
        "description": textwrap.dedent(tool.__doc__ or "").strip(),
        "parameters": _parameters(inspect.unwrap(tool), name),
    }


@lru_cache(maxsize=256)
def _parameters(function: Tool, name: str) -> dict[str, Any]:
    try:
        schema = arguments_model(function).model_json_schema()
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:  # hints that do not resolve, types that JSON lacks
        raise ValueError(f"tool {name!r} has no JSON Schema: {error}") from None
    for parameter, property_ in schema["properties"].items():
        for note in getattr(hints.get(parameter), "__metadata__", ()):
            if isinstance(note, str):  # Annotated[int, "what it is"]
                property_["description"] = note
    definitions = schema.pop("$defs", {})
    return _without_titles(_inlined(schema, definitions))


def _inlined(schema: Any, definitions: Mapping[str, Any], within: Any = ()) -> Any:
    """The schema with each $ref replaced by what it stands for; a model inside itself
    is left open."""
    if isinstance(schema, list):
        return [_inlined(item, definitions, within) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    rest = {
        key: _inlined(value, definitions, within)
        for key, value in schema.items()
        if key != "$ref"
    }
    if not name or name in within:
        return rest
    return {**_inlined(definitions[name], definitions, (*within, name)), **rest}


def _without_titles(schema: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """The schema less pydantic's titles, but for those inside lists, which LangChain
    leaves; a property that is named title stays."""
    return {
        key: _without_titles(value, key) if isinstance(value, dict) else value
        for key, value in schema.items()
        if key != "title" or (above == "properties" and isinstance(value, dict))
    }
