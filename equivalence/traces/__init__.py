"""Traces of foreign formats, read as run records, and run records written as such.

A format is recognised by its content. What each of them keeps and loses is told in
docs/traces.md.

- messages: the messages of OpenAI, LangChain and OpenTelemetry as one form
- calls: from model calls and tool executions to runs
- chat, wire, spans, langsmith: the readers
- files: which of them reads a file
- write: the writers
"""

from equivalence.traces.files import FORMATS, read, read_runs, run_index

__all__ = ["FORMATS", "read", "read_runs", "run_index"]
