"""The one table by which the instrument learns what to compare: [tool.equivalence].

It stands in the pyproject.toml of the working folder, or of the nearest folder above
it, and that folder is searched for modules:

    [tool.equivalence]
    tools = "app.tools:TOOLS"              # offered to each implementation
    questions = "tests/questions.jsonl"    # asked where none are given
    cases = "tests/cases.yaml"             # the benchmark of `score`
    upstream = "script:replies.yaml"       # the model where no endpoint is set;
                                           # or "module:name", see open_upstream

    [tool.equivalence.implementations]     # compared where none are named
    old = "app.v1:run"
    new = { target = "app.v2:run", about = "after the migration" }

    [tool.equivalence.variants]            # known by name, not run by default

    [tool.equivalence.redact]              # taken out before anything is written
    patterns = { phone = "1[0-9]{10}" }    # see runs/redaction.py
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs.implementation import Implementation
from equivalence.runs.redaction import NOTHING, Redaction


class _Redact(msgspec.Struct, forbid_unknown_fields=True):
    """The rules of redaction as the table writes them, see Redaction."""

    patterns: dict[str, str] = {}
    paths: tuple[str, ...] = ()
    function: str = ""


FIELDS: Mapping[str, Any] = {
    "tools": str,
    "questions": str,
    "cases": str,
    "upstream": str,
    "implementations": dict[str, Any],
    "variants": dict[str, Any],
    "redact": _Redact,
}
"""What the table may say, and of what type it is."""


@dataclass(frozen=True)
class Table:
    """What the table says; paths are absolute, what it does not say is None."""

    file: Path | None = None
    implementations: dict[str, Implementation] = field(default_factory=dict)
    variants: dict[str, Implementation] = field(default_factory=dict)
    tools: str | None = None
    questions: Path | None = None
    cases: Path | None = None
    upstream: str | None = None
    redaction: Redaction = NOTHING

    @property
    def folder(self) -> Path:
        """The folder of the table, the working folder where there is none."""
        return self.file.parent if self.file else Path.cwd()

    def find(self, name: str) -> Implementation:
        """Return the implementation of that name, or a user's own "module:function".
        Raises UsageError if there is none."""
        known = {**self.implementations, **self.variants}
        if name in known:
            return known[name]
        if ":" in name:
            return Implementation(name, name)
        names = (
            _("known are {names}").format(names=", ".join(known))
            if known
            else _("no table lists any")
        )
        raise UsageError(
            _(
                "no implementation is named {name!r}; {names}; your own is"
                " written module:function"
            ).format(name=name, names=names)
        )


def read_table(start: Path | None = None) -> Table:
    """Return the table of the working folder, an empty one where there is none, and put
    its folder on the module path. Raises UsageError if it cannot be read or a field is
    not known."""
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(
                _("{file} is not TOML in UTF-8: {error}").format(file=file, error=error)
            ) from None
        tool = data.get("tool")
        table = tool.get("equivalence") if isinstance(tool, dict) else None
        if table is not None:
            _search(place)
            return _table(file, table)
    _search(folder)
    return Table()


def _search(folder: Path) -> None:
    """Search the folder for modules, first of all, as `python -m` does."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _table(file: Path, data: Any) -> Table:
    if not isinstance(data, dict):
        raise UsageError(
            _("{file}, tool.equivalence: it must be a table, {fields_are}").format(
                file=file, fields_are=_fields_are()
            )
        )
    for name, value in data.items():
        if name not in FIELDS:
            raise UsageError(
                _(
                    "{file}, tool.equivalence.{name}: not a field of the table;"
                    " {fields_are}"
                ).format(file=file, name=name, fields_are=_fields_are())
            )
        _typed(file, name, value, FIELDS[name])

    def path(name: str) -> Path | None:
        return file.parent / data[name] if name in data else None

    def group(name: str) -> dict[str, Implementation]:
        return {
            key: _implementation(file, f"{name}.{key}", key, value)
            for key, value in data.get(name, {}).items()
        }

    return Table(
        file,
        group("implementations"),
        group("variants"),
        data.get("tools"),
        path("questions"),
        path("cases"),
        data.get("upstream"),
        _redaction(file, data.get("redact", {})),
    )


def _redaction(file: Path, value: Any) -> Redaction:
    rules = msgspec.convert(value, _Redact)
    try:
        return Redaction(rules.patterns, rules.paths, rules.function)
    except UsageError as error:
        raise UsageError(f"{file}, tool.equivalence.{error}") from None


def _fields_are() -> str:
    return _("its fields are {fields}").format(fields=", ".join(FIELDS))


def _implementation(file: Path, place: str, name: str, value: Any) -> Implementation:
    entry = _typed(file, place, value, str | _Entry)
    fields = {"target": entry} if isinstance(entry, str) else msgspec.to_builtins(entry)
    try:
        return Implementation(name, **fields)
    except ValueError as error:
        raise UsageError(
            _("{file}, tool.equivalence.{place}: {error}").format(
                file=file, place=place, error=translated(str(error))
            )
        ) from None


class _Entry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An implementation as the table writes it, see Implementation."""

    target: str = ""
    about: str = ""
    protocol: str = ""
    command: str = ""
    final_tool: str = ""
    reset_by: str = ""


def _typed(file: Path, place: str, value: Any, wanted: Any) -> Any:
    """The value as the type wanted there. Raises UsageError if it is another."""
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        # TOML's words for what msgspec calls by JSON's.
        words = str(error).replace("`object`", "`table`").replace("Object", "The table")
        raise UsageError(
            _("{file}, tool.equivalence.{place}: {words}").format(
                file=file, place=place, words=translated(words)
            )
        ) from None
