"""Which reader reads a file: told by its content, whatever its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs import files
from equivalence.runs.files import BOM, START, RunIndex
from equivalence.runs.record import SCHEMA, Run

FORMATS = (
    "run records (agent-run/2), lists of chat messages, OTLP JSON with GenAI or"
    " OpenInference spans, HAR, vcrpy cassettes, LangSmith run exports"
)
"""What is read."""


def read_runs(*paths: Path) -> Iterator[Run]:
    """Yield the runs of the files, whatever their format. Raises UsageError as
    runs.files.read_runs does, and if nothing here reads a file."""
    for path in paths:
        foreign = read(path)
        yield from files.read_runs(path) if foreign is None else foreign


def run_index(paths: Sequence[Path]) -> RunIndex:
    """Return where the runs of the files are, whatever their format. Raises UsageError
    as `read_runs` does."""
    return RunIndex(paths, read)


def read(path: Path) -> list[Run] | None:
    """Return the runs of a foreign trace; None where the file holds run records, or
    nothing. Raises UsageError if it is neither; it names what is read."""
    try:
        with path.open("rb") as file:
            first = next((line for line in file if line.strip(BOM + b" \t\r\n")), b"")
            first = first.lstrip(BOM).lstrip()
            if first.startswith(START) or START.startswith(first):
                return None
            file.seek(0)
            data = file.read()
    except OSError as error:
        raise UsageError(
            f"{path}: {translated(error.strerror or str(error))}"
        ) from None
    try:
        text = data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            _("{path}, line {number}: not UTF-8").format(path=path, number=number)
        ) from None
    documents, wrong = _documents(text)
    if documents and isinstance(documents[0], dict) and "schema" in documents[0]:
        return None
    if wrong is not None:
        raise UsageError(
            _(
                "{path}, line {wrong}: this is not JSON, or cut off; what"
                " is read: {formats}"
            ).format(path=path, wrong=wrong, formats=FORMATS)
        )
    import binascii
    import zlib

    reader = _reader(documents, path)
    if reader is None:
        raise UsageError(
            _(
                "{path}, line 1: no run record, and no trace that is read:"
                ' its "schema" must be "{schema}"; what is read: {formats}'
            ).format(path=path, schema=SCHEMA, formats=FORMATS)
        )
    try:
        return reader()
    except UsageError:
        raise
    except (
        # a foreign file may hold anything in any place
        ArithmeticError, AttributeError, LookupError, OSError, RecursionError,
        TypeError, ValueError, binascii.Error, zlib.error,
    ) as error:  # fmt: skip
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(
            _(
                "{path}: cut off, or not as its format has it ({told});"
                " what is read: {formats}"
            ).format(path=path, told=told[:200], formats=FORMATS)
        ) from None


def _reader(documents: Sequence[Any], path: Path) -> Callable[[], list[Run]] | None:
    """The reader that knows the documents. Run records need none of them."""
    from equivalence.traces import chat, langsmith, spans, wire

    first = documents[0] if documents else None
    if isinstance(first, dict):
        if any(isinstance(d, dict) and "resourceSpans" in d for d in documents):
            traces = [each for each in documents if isinstance(each, dict)]
            return lambda: spans.read(traces, path)
        if isinstance(first.get("log"), dict) and "entries" in first["log"]:
            return lambda: wire.har(first, path)
        if isinstance(first.get("interactions"), list):
            return lambda: wire.vcrpy(first, path)
    if traced := langsmith.spans(documents):
        return lambda: langsmith.read(traced, path)
    if conversations := chat.conversations(documents):
        return lambda: chat.read(conversations, path.stem)
    return None


def _documents(text: str) -> tuple[list[Any], int | None]:
    """The JSON values of the file, one or one a line, or the YAML of a cassette; and
    the line that is none, None where all are."""
    if text.startswith(("interactions:", "version:", "---")):
        return _yaml(text)
    try:
        return [json.loads(text)], None
    except RecursionError:
        return [], 1
    except ValueError:
        pass
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError):
                # one value over several lines ends before it is complete
                whole = not found and line.lstrip()[0] in "{["
                return found, text.rstrip().count("\n") + 1 if whole else number
    return found, None


def _yaml(text: str) -> tuple[list[Any], int | None]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [yaml.load(text, loader)], None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        return [], mark.line + 1 if mark else 1
