"""A run line by line, as one page: `python -m equivalence step`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.phrases import translated
from equivalence.runs.lines import Message, Trace
from equivalence.runs.steps import text_of
from equivalence.runs.words import ending, visible
from equivalence.show.page import policy, replacing, templates, web
from equivalence.show.page.values import language_of, text


def write_steps(traces: Sequence[Trace], out: Path, *inputs: Path) -> str:
    """Write the page about traces of one question; return one line about it. Raises
    UsageError if none of them has a line, or `out` cannot be replaced."""
    for each in traces:
        if not each.moments:
            error = translated(each.run.error) if each.run else ""
            raise UsageError(
                _("no line of {file} was at work: {why}").format(
                    file=each.file, why=error or _("it ran none")
                )
            )
    question = traces[0].events[0].messages[0]["content"]
    style, script = web("colours.css") + web("step.css"), web("step.js")
    html = (
        templates()
        .get_template("step.jinja")
        .render(
            question=question,
            names=[each.implementation.name for each in traces],
            data=Markup(_script_json(page_data(traces))),
            **policy(style, script),
        )
    )
    with replacing(out, *inputs) as file:
        file.write(html.encode("utf-8", "backslashreplace"))
    names = ", ".join(each.implementation.name for each in traces)
    return visible(
        _("{out}: {question} in the lines of {names}").format(
            out=out, question=question, names=names
        )
    )


def page_data(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return what the page's script steps through: the traces, and the timeline in
    which each place is one moment of each trace."""
    return {
        "traces": list(map(_trace, traces)),
        "timeline": timeline(traces),
        "words": {
            "line": _("line {number}, {name}"),
            "place": _("{number} of {count}, after {what}"),
            "end": _("{number} of {count}, after {what}. The end: {end}"),
        },
    }


def timeline(traces: Sequence[Trace]) -> list[list[int]]:
    """Return the places of the page, each the numbers of one moment of each trace.

    All traces wait for each other at every event, a reply or a result; between two
    events the one with fewer lines stays at its last one.
    """
    stretches = []
    for each in traces:
        by_event: list[list[int]] = [[] for _ in each.events]
        for number, moment in enumerate(each.moments):
            by_event[moment.event].append(number)
        stretches.append(by_event)
    places: list[list[int]] = []
    now = [0] * len(traces)
    for event in range(max(map(len, stretches))):
        there = [s[event] if event < len(s) else [] for s in stretches]
        for step in range(max(map(len, there))):
            now = [
                moments[min(step, len(moments) - 1)] if moments else before
                for moments, before in zip(there, now, strict=True)
            ]
            places.append(now)
    return places


def _trace(each: Trace) -> dict[str, Any]:
    messages: dict[str, int] = {}
    states = []
    for event in each.events:
        shown = [text(_message(message)) for message in event.messages]
        states.append([messages.setdefault(one, len(messages)) for one in shown])
    return {
        "name": visible(each.implementation.name),
        "about": visible(_(each.implementation.about)),
        "file": visible("/".join(each.file.parts[-2:])),
        "code": [visible(line) for line in each.code.splitlines()],
        "moments": [[m.line, m.function, m.event] for m in each.moments],
        "events": [
            {
                "what": visible(translated(event.what) or _("the question")),
                "messages": state,
            }
            for event, state in zip(each.events, states, strict=True)
        ],
        "messages": [json.loads(one) for one in messages],
        "end": visible(ending(each.run)) if each.run else "",
    }


def _message(message: Message) -> dict[str, str]:
    """A message as it is shown: who says it, its text, its language."""
    words = [text_of(message.get("content"))] if message.get("content") else []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            words.append(f"{function.get('name')}({function.get('arguments')})")
    shown = visible("\n".join(words))
    return {
        "role": visible(str(message.get("role"))),
        "text": shown,
        "lang": language_of(shown),
    }


def _script_json(data: Any) -> str:
    """JSON that no text in it can end: < and > are escaped."""
    found = json.dumps(data, ensure_ascii=False)
    return found.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
