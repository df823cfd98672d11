"""What is asked: the demo questions, a user's own, or a file of them."""

from __future__ import annotations

import json
from pathlib import Path

from usage import UsageError

DEMO = Path(__file__).parent.parent / "scenarios" / "demo_questions.jsonl"

Conversation = list[str]
"""Questions asked one after another; each sees what was said before it."""


def read_questions(path: Path) -> list[Conversation]:
    """Return the conversations of a file, one a line: a question as plain text or JSON
    string, or a JSON list of questions that follow each other. ValueError names the
    line that is neither."""
    found = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            value = json.loads(line) if line[0] in '["' else line
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
        turns = value if isinstance(value, list) else [value]
        if not turns or not all(isinstance(q, str) and q.strip() for q in turns):
            raise UsageError(f"{path}, line {number}: a question must be a text")
        found.append(turns)
    if not found:
        raise UsageError(f"{path} holds no question")
    return found
