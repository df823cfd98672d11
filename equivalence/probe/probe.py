"""What the endpoint is asked, in which order, and what its replies tell."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from equivalence.gateway import Exchange
from equivalence.gateway.upstreams import GATEWAY_ERROR
from equivalence.probe.asking import REFUSED, Endpoint, NoMoreRequests, words_of
from equivalence.probe.reading import (
    action_in,
    calls_of,
    context_of,
    finish_of,
    form_of_arguments,
    form_of_id,
    form_of_text_call,
    message_of,
    model_entries,
    said,
    text_of,
    thinking_in,
)
from equivalence.runs.hints import hint
from equivalence.runs.words import short
from equivalence.settings import Settings

TRIES = 5
REQUESTS = 1 + TRIES + 4
"""The list of models, one question five times, then a result, two cities, a stream and
a text prompt."""
MORE = 6
"""Requests at most in which a setting is tried after a refusal."""

SMALL_CONTEXT = 8192
"""Tokens below which the prompt, five tools and a few results do not fit in."""

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Look up the weather of ONE city now.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "the city"}},
            "required": ["city"],
        },
    },
}
SYSTEM = {
    "role": "system",
    "content": "You are a careful assistant. Use the tool for weather; never make up a"
    " value that a tool can give. With its result, answer in one sentence.",
}
ONE_CITY = "What is the weather in Beijing now?"
TWO_CITIES = "What is the weather in Beijing and in Shanghai now? Look up both."
RESULT = "Beijing: 17.3 degrees Celsius, light rain"
IN_RESULT = "17.3"
"""What only the result says: an answer that has it was made from the result."""

TEXT_SYSTEM = {
    "role": "system",
    "content": "You are a careful assistant. There is one tool, get_weather; it takes"
    ' {"city": "<name>"}. To use it, write this and stop:\n'
    "Thought: <what is missing>\n"
    "Action: get_weather\n"
    "Action Input: <its arguments as one JSON object>\n"
    "You get its result as an observation. Never make up a value that it can give.",
}
STOP = ["\nObservation"]


@dataclass(frozen=True)
class Check:
    """One thing that was found out."""

    name: str
    result: str
    """"yes", "no", "note" where it works but should be known, or "unknown"."""
    found: str
    advice: str = ""
    """Which setting or flag of the server to change; "" where nothing is to be done."""


@dataclass
class Findings:
    """What a probe has found; each verdict is None where nothing is known."""

    url: str
    model: str
    checks: list[Check] = field(default_factory=list)
    tool_calls: bool | None = None
    """Whether agents can run that ask for tools in the field tool_calls."""
    text: bool | None = None
    """Whether agents can run that ask for tools in text."""
    changed: dict[str, Any] = field(default_factory=dict)
    """The settings, other than the given ones, without which requests are refused."""
    asked: int = 0
    models: Any = None
    """What the server answered when it was asked for its models."""
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 where agents with tool calls can run, 1 where not, 3 where nobody knows."""
        return {True: 0, False: 1, None: 3}[self.tool_calls]

    def environment(self) -> str:
        """Return the settings with which it works, as variables of a shell."""
        settings = {"base_url": self.url, "model": self.model, **self.changed}
        return " ".join(
            f"LLM_{name.upper()}={shlex.quote(_as_text(value))}"
            for name, value in settings.items()
        )

    on_check: Callable[[Check], None] | None = None
    """Called with each check as it is added: a slow server takes minutes."""

    def add(self, name: str, result: str, found: str, advice: str = "") -> None:
        """Add a check."""
        check = Check(name, result, found, advice)
        self.checks.append(check)
        if self.on_check:
            self.on_check(check)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def probe(
    settings: Settings, on_check: Callable[[Check], None] | None = None
) -> Findings:
    """Ask the endpoint of the settings and return what was found, in at most REQUESTS +
    MORE requests; `on_check` gets each check as soon as it is made."""
    assert settings.base_url
    findings = Findings(settings.base_url, settings.model, on_check=on_check)
    with Endpoint(settings, REQUESTS + MORE) as endpoint:
        try:
            _Probing(endpoint, findings).go()
        except NoMoreRequests:
            findings.add("requests", "unknown", f"{endpoint.asked} were not enough")
        findings.changed = dict(endpoint.changed)
        findings.asked = endpoint.asked
        findings.exchanges = endpoint.exchanges
    return findings


class _Probing:
    def __init__(self, endpoint: Endpoint, findings: Findings) -> None:
        self.endpoint = endpoint
        self.add = findings.add
        self.findings = findings
        self.entries: list[dict[str, Any]] = []

    def go(self) -> None:
        status, body = self.endpoint.models()
        self.findings.models = body
        self.entries = model_entries(body)
        question = [SYSTEM, {"role": "user", "content": ONE_CITY}]
        first = self.endpoint.ask(question, [TOOL])
        if first.raw_status in REFUSED:
            self._tools_refused(first, question)
            return
        if first.status != 200:
            self._no_reply(first)
            return
        self._answers(status)
        tries = [first]
        while len(tries) < TRIES and tries[-1].status == 200:
            tries.append(self.endpoint.ask(question, [TOOL]))
        replies = [each for each in tries if each.status == 200]
        called = next((each for each in replies if calls_of(each.reply)), None)
        self._tool_calls(replies, called)
        if called:
            self._tool_result(question, called)
            self._parallel()
            self._forms()
        self._finish_reasons()
        self._thinking()
        self._streaming(question)
        self._repeatable(replies, tries)
        self._text()

    # ------------------------------------------------------------- is there a server

    def _no_reply(self, exchange: Exchange) -> None:
        """Say at which of reachable, key and model it fails."""
        line, advice = failure(exchange)
        status = exchange.raw_status
        if _of_the_gateway(exchange):
            self.add("reachable", "no", line, advice)
        elif status in (401, 403):
            self.add("reachable", "yes", "the server answers")
            self.add("key", "no", line, advice)
        elif status == 404:
            self.add("reachable", "yes", "the server answers")
            names = self._names()
            if names:
                advice = f"Set LLM_MODEL to a model of the server: {names}."
            self.add("model", "no", line, advice)
        else:
            self.add("reachable", "unknown", line, advice)

    def _names(self) -> str:
        names = [short(entry["id"], 60) for entry in self.entries]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return ", ".join(names[:5]) + more

    def _answers(self, status: int) -> None:
        model = self.findings.model
        self.add("reachable", "yes", "the server answers")
        given = self.endpoint.settings.api_key is not None
        self.add(
            "key", "yes", "accepted" if given else "none was given, none is needed"
        )
        known = [entry["id"] for entry in self.entries]
        if model in known:
            self.add("model", "yes", "known to the server")
        elif known:
            self.add(
                "model",
                "note",
                f"the server takes the name {model!r}, and lists {self._names()}",
            )
        else:
            words = "" if status == 200 else f" (/models answered {status})"
            self.add("model", "yes", f"answers; no list of models to check{words}")
        length = context_of(self.entries, model)
        if length is None:
            self.add("context length", "unknown", "the server does not tell it")
        elif length < SMALL_CONTEXT:
            advice = (
                "Start the server with a longer context, or set LLM_TOOL_RESULT_LIMIT"
                " lower."
            )
            self.add("context length", "note", f"{length} tokens, few", advice)
        else:
            self.add("context length", "yes", f"{length} tokens")

    # ------------------------------------------------------------- tool calls

    def _tools_refused(self, refused: Exchange, question: Sequence[Any]) -> None:
        line, advice = failure(refused)
        plain = self.endpoint.ask(question)
        if plain.status != 200:  # it is not about the tools
            line, advice = failure(plain)
            self.add("reachable", "yes", "the server answers")
            self.add("request", "no", line, advice)
            return
        self._answers(200)
        advice = advice or (
            "The server or the model has no tool calling: take another model, or the"
            " agents that ask for tools in text."
        )
        self.add("tool calls", "no", line, advice)
        self.findings.tool_calls = False
        self._thinking()
        self._text()

    def _tool_calls(self, replies: list[Exchange], called: Exchange | None) -> None:
        having = [each for each in replies if calls_of(each.reply)]
        self.findings.tool_calls = bool(having)
        if called is None:
            self._no_calls(replies[0])
            return
        rate = f", in {len(having)} of {len(replies)} tries"
        seldom = len(having) < len(replies)
        rate = rate if seldom else ""
        name = calls_of(called.reply)[0]["function"].get("name")
        if name != "get_weather":
            self.findings.tool_calls = False
            self.add("tool calls", "no", f"of {name!r}, which nobody offered{rate}")
        elif "text_tool_call" in called.repairs:
            form = form_of_text_call(text_of(called.raw_reply))
            self.add(
                "tool calls",
                "note",
                f"as text, {form}{rate}; the gateway makes calls of it:"
                f" {short(text_of(called.raw_reply), 70)}",
                "Leave LLM_REPAIR on; better: let the server parse the calls"
                " (its tool-call parser or chat template).",
            )
        else:
            word = "note" if seldom else "yes"
            self.add("tool calls", word, f"structured{rate}")

    def _no_calls(self, reply: Exchange) -> None:
        text = text_of(reply.reply)
        if "get_weather" in text:
            self.add(
                "tool calls",
                "no",
                f"as text, {form_of_text_call(text)}, which the gateway does not read:"
                f" {short(text, 100)}",
                "Let the server parse the calls: its tool-call parser must fit the"
                " model.",
            )
        elif not text:
            advice = (
                "Raise LLM_MAX_TOKENS, or switch the thinking off: docs/endpoints.md."
            )
            ended = finish_of(reply.raw_reply)
            thought = "it thought, and then " if thinking_in(reply) else "it "
            self.add(
                "tool calls", "no", f"{thought}said nothing (ended as {ended})", advice
            )
        else:
            self.add(
                "tool calls",
                "no",
                f"none: it answered without the tool: {short(text, 80)}",
                "The chat template may not know tools: take the model's own template,"
                " or another model.",
            )

    def _tool_result(self, question: list[dict[str, Any]], called: Exchange) -> None:
        message = message_of(called.reply)
        calls = calls_of(called.reply)
        asked = {key: message.get(key) for key in ("role", "content", "tool_calls")}
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": RESULT}
            for call in calls
        ]
        reply = self.endpoint.ask([*question, asked, *results], [TOOL])
        if reply.status != 200:
            line, advice = failure(reply)
            refused = reply.raw_status in REFUSED or reply.raw_status == 500
            self.findings.tool_calls = False if refused else None
            self.add("tool result", "no" if refused else "unknown", line, advice)
            return
        if IN_RESULT in text_of(reply.reply):
            self.add("tool result", "yes", "understood: the answer is made from it")
        elif calls_of(reply.reply):
            self.add(
                "tool result",
                "note",
                "it asked for the same tool again",
                "Runs may end at the step limit: keep LLM_MAX_STEPS small, or take"
                " another model.",
            )
        else:
            text = short(text_of(reply.reply), 80)
            self.add("tool result", "note", f"the answer is not made from it: {text!r}")

    def _parallel(self) -> None:
        question = [SYSTEM, {"role": "user", "content": TWO_CITIES}]
        reply = self.endpoint.ask(question, [TOOL])
        if reply.status != 200:
            self.add("parallel calls", "unknown", *failure(reply))
            return
        count = len(calls_of(reply.reply))
        words = {0: "no call for two cities", 1: "no: one call a turn"}
        if count > 1:
            self.add("parallel calls", "yes", f"{count} in one turn")
        else:
            self.add("parallel calls", "note", words[count])

    def _forms(self) -> None:
        """The forms of arguments and ids, of calls that came structured."""
        raw = [
            call
            for each in self.endpoint.exchanges
            if each.status == 200
            for call in calls_of(each.raw_reply)
        ]
        if not raw:
            return
        arguments = Counter(
            form_of_arguments(call["function"].get("arguments")) for call in raw
        )
        plain = set(arguments) == {"JSON text"}
        words = _counted(arguments) + ("" if plain else "; the gateway repairs it")
        self.add("arguments", "yes" if plain else "note", words)
        forms = Counter(form_of_id(call.get("id")) for call in raw)
        identifiers = [call.get("id") for call in raw if call.get("id")]
        repeated = len(identifiers) - len({*map(str, identifiers)})
        words = _counted(forms)
        if "missing" in forms:
            self.add("ids", "note", f"{words}; the gateway makes them up")
        elif repeated:
            self.add("ids", "note", f"{words}; {repeated} were used before")
        else:
            self.add("ids", "yes", f"{words}; all {len(raw)} differ")

    # ------------------------------------------------------------- habits

    def _answered(self) -> list[Exchange]:
        return [each for each in self.endpoint.exchanges if each.status == 200]

    def _finish_reasons(self) -> None:
        calling = Counter[str]()
        others = Counter[str]()
        for each in self._answered():
            side = calling if calls_of(each.raw_reply) else others
            side[finish_of(each.raw_reply) or "none"] += 1
        parts = []
        if calling:
            parts.append(f"with calls: {_counted(calling)}")
        if others:
            parts.append(f"without: {_counted(others)}")
        usual = {*calling} <= {"tool_calls"} and {*others} <= {"stop"}
        self.add("finish reasons", "yes" if usual else "note", "; ".join(parts))

    def _thinking(self) -> None:
        places = Counter(
            place for each in self._answered() if (place := thinking_in(each))
        )
        wanted = self.endpoint.changed.get("echo_reasoning")
        back = ""
        if wanted:
            back = "; the server wants it back"
        elif any(check.name == "tool result" for check in self.findings.checks):
            back = "; it is not wanted back"
        if not places:
            self.add("thinking", "yes", "none" if not wanted else f"none{back}")
        else:
            self.add("thinking", "yes", f"in {', '.join(places)}{back}")

    def _streaming(self, question: list[dict[str, Any]]) -> None:
        reply, streamed = self.endpoint.ask_for_a_stream(question, [TOOL])
        if reply.status != 200:
            line, advice = failure(reply)
            self.add("streaming", "no", line, advice or "Leave LLM_STREAM off.")
        elif not streamed:
            self.add("streaming", "note", "no: the reply comes whole")
        elif calls_of(reply.raw_reply):
            self.add("streaming", "yes", "with structured calls")
        elif "get_weather" in text_of(reply.raw_reply):
            self.add("streaming", "note", "calls come as text here")
        else:
            self.add("streaming", "note", "no call came in it")

    def _repeatable(self, replies: list[Exchange], tries: list[Exchange]) -> None:
        took_out = self.endpoint.settings.extra_body.get("temperature", 0) is None
        name = "repeatable" if took_out else "temperature 0"
        if len(replies) < TRIES:
            line, _ = failure(tries[-1])
            self.add(name, "unknown", f"try {len(tries)} of {TRIES} failed: {line}")
            return
        first, *later = [said(each.raw_reply) for each in replies]
        kinds = len({*later})
        if kinds > 1:
            self.add(
                name,
                "note",
                f"not repeatable: {kinds} different replies in {len(later)} later"
                " tries",
                "Differences between runs may be the model's: use drift, or --repeats.",
            )
        elif later[0] != first:
            self.add(
                name,
                "note",
                f"the first reply differs from the {len(later)} later ones, which are"
                " equal: a prompt cache that was cold",
                "Switch the server's prompt cache off where runs are compared.",
            )
        else:
            self.add(name, "yes", f"repeatable: {TRIES} equal replies")

    # ------------------------------------------------------------- calls in text

    def _text(self) -> None:
        question = [TEXT_SYSTEM, {"role": "user", "content": ONE_CITY}]
        reply = self.endpoint.ask(question, stop=STOP)
        if reply.status != 200:
            self.findings.text = False if reply.raw_status in REFUSED else None
            self.add("text agents", "no", *failure(reply))
            return
        text = text_of(reply.reply)
        action = action_in(text)
        self.findings.text = action is not None and action[0] == "get_weather"
        if not self.findings.text:
            words = f"it does not keep to the format: {short(text, 80)}"
            self.add("text agents", "no", words)
        elif "Observation" in text:
            self.add("text agents", "note", "the format is kept; `stop` is ignored")
        else:
            self.add("text agents", "yes", "the format is kept")


def _counted(counts: Counter[str]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{name} ({count})" for name, count in counts.most_common())


def _of_the_gateway(exchange: Exchange) -> bool:
    """Whether no server said that: none was reached, or none answered in time."""
    error = exchange.reply.get("error") if isinstance(exchange.reply, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    return exchange.status in (502, 504) and kind == GATEWAY_ERROR


def failure(exchange: Exchange) -> tuple[str, str]:
    """Return in one line how a request failed, with the server's own words, and what to
    do about it, "" where nothing is known."""
    line = f"the endpoint answered {exchange.status}: {words_of(exchange)}"
    if _of_the_gateway(exchange):
        line = words_of(exchange)
    return short(line), hint(line) or ""
