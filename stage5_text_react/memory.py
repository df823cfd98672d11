"""The memory across questions: the last one with all that was done for it, those before
with their answers alone, and a summary of the oldest, together under a token budget.

Apart from it stands the scratchpad: the actions and observations of the question being
answered. The summary is kept beside the question at which it was made, under "memory",
so that the conversation holds all there is to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stage5_text_react.prompt import Message, as_text, scratchpad, system_prompt
from stage5_text_react.reply import read_text
from toolkit.policy import Tool
from toolkit.tokens import message_tokens, tokens

Model = Callable[..., Any]
"""The openai client's call, which wants the messages."""

CONTEXT = 2000
"""The tokens that prompt, memory and an ordinary scratchpad fit in together."""
SCRATCHPAD = 350
"""What of them is left to the question and its actions."""
LEAST = 300
"""What the memory has even where the tools fill the prompt."""
LAST = 300
"""What of the memory the last question may take with its actions and observations."""
SUMMARY = 150
"""What of the memory a summary may take."""
LONGEST_LINE = 60
"""Characters of a question or an answer in a summary made by extraction."""

NO_ANSWER = "(no answer)"
SUMMARISE = (
    "Sum up this conversation in at most 80 words, in its language. Keep every name and"
    " number. Reply with the summary alone.\n\n"
)


@dataclass(frozen=True)
class Memory:
    """What is known of the conversation before a question."""

    summary: str
    covered: int
    """How many questions the summary covers."""
    recent: Sequence[Message]
    """The questions after these and their answers, the last one whole."""
    model_calls: int = 0
    """What the summary has cost."""

    def note(self) -> Message:
        """Return what to keep with the question, for the next one to go on from."""
        return {"memory": [self.summary, self.covered]} if self.covered else {}


def recall(
    history: Iterable[Message], tools: Mapping[str, Tool], model: Model | None
) -> Memory:
    """Return the memory of a conversation. Where it is too long, half of it and more
    goes into the summary, so that this is not done for every question. The `model` sums
    up, if there is one; else what matters is extracted."""
    history = [message for message in history if "unreadable" not in message]
    notes = [message["memory"] for message in history if "memory" in message]
    summary, covered = notes[-1] if notes else ("", 0)
    last = _answered(scratchpad(history))
    if _size(last) > LAST:
        last = dialogue(last)
    earlier = dialogue(history)[2 * covered : -2]
    room = max(CONTEXT - SCRATCHPAD - tokens(system_prompt(tools)), LEAST) - _size(last)
    if tokens(summary) + _size(earlier) <= room:
        return Memory(summary, covered, [*earlier, *last])
    leaving: list[Message] = []
    while _size(earlier) > max(room - SUMMARY, 0) / 2:
        leaving, earlier = [*leaving, *earlier[:2]], earlier[2:]
    covered += len(leaving) // 2
    recent = [*earlier, *last]
    if model is None:
        return Memory(extract(summary, leaving), covered, recent)
    return Memory(ask(model, summary, leaving), covered, recent, model_calls=1)


def dialogue(messages: Iterable[Message]) -> list[Message]:
    """Return each question and its answer, two messages for each."""
    found: list[Message] = []
    for message in messages:
        if message["role"] == "user":
            question = {"role": "user", "content": message["content"]}
            found += _answered([question])
        elif message["role"] == "assistant" and "tool_calls" not in message:
            found[-1:] = [message]
    return found


def _answered(turn: list[Message]) -> list[Message]:
    """The messages of one question, with an answer where they lack one."""
    if not turn or (turn[-1]["role"] == "assistant" and "tool_calls" not in turn[-1]):
        return turn
    return [*turn, {"role": "assistant", "content": NO_ANSWER}]


def extract(summary: str, leaving: Sequence[Message]) -> str:
    """Return the summary with one line more for each question that leaves; the oldest
    lines go where it gets too long."""
    lines = summary.splitlines()
    for question, answer in zip(leaving[::2], leaving[1::2], strict=True):
        lines.append(f"- {_short(question['content'])} → {_short(answer['content'])}")
    while lines and tokens("\n".join(lines)) > SUMMARY:
        del lines[0]
    return "\n".join(lines)


def ask(model: Model, summary: str, leaving: Sequence[Message]) -> str:
    """Return the model's summary; that of extraction where it is of no use."""
    said = [f"{message['role']}: {message['content']}" for message in leaving]
    question = SUMMARISE + "\n".join([summary, *said]).strip()
    text, _ = read_text(model(messages=[{"role": "user", "content": question}]))
    text = text.strip()
    return text if 0 < tokens(text) <= SUMMARY else extract(summary, leaving)


def _size(messages: Sequence[Message]) -> int:
    return message_tokens(as_text(messages))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
