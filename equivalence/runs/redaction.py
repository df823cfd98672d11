"""What must not be written: taken out of a run when it ends, and of a request before it
is looked up in a recording, so that the two still match.

    [tool.equivalence.redact]
    patterns = { phone = '1\\d{10}' }                  # [redacted phone]
    paths = ["$.user", "$.messages[*].tool_calls[*].function.arguments.account"]
    function = "app.privacy:redact"                   # gets each text, returns it

A pattern and the function reach every text of the record. A path is one that a verdict
prints: a place in a request, and in the message of a reply, which becomes one of the
next request. What stands there is also taken out of the steps, the answer and the
errors, which come from it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from equivalence.errors import UsageError
from equivalence.gateway.canonical import path_pattern
from equivalence.gateway.exchange import Exchange
from equivalence.language import _
from equivalence.runs.implementation import load
from equivalence.runs.record import Asked, Run

SHORTEST = 4
"""Characters that a value must have to be looked for within other texts: "3" or "no"
stands in many that have nothing to do with it."""

Found = Counter[str]
"""How often each rule took something out."""


@dataclass(frozen=True)
class Redaction:
    """The rules of one table; without any, a run stays as it is.

    Raises UsageError if a rule cannot be one.
    """

    patterns: Mapping[str, str] = field(default_factory=dict)
    """Regular expressions, each with the name that stands in their place."""
    paths: tuple[str, ...] = ()
    function: str = ""
    """As "module:attribute"."""

    def __post_init__(self) -> None:
        """Raise UsageError if a pattern or a path cannot be one."""
        for name, pattern in self.patterns.items():
            try:
                matches_nothing = re.compile(pattern).search("")
            except re.error as error:
                raise UsageError(
                    _("redact.patterns.{name}: {error}").format(name=name, error=error)
                ) from None
            if matches_nothing:
                raise UsageError(
                    _(
                        "redact.patterns.{name}: it matches the empty text, so it would"
                        " match everywhere"
                    ).format(name=name)
                )
        for path in self.paths:
            if not re.match(r"\$\.\w", path):
                raise UsageError(
                    _(
                        "redact.paths: {path!r} is no path into a request: write what"
                        " a verdict prints, $.user or $.messages[*].name"
                    ).format(path=path)
                )

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self.patterns or self.paths or self.function)

    # ------------------------------------------------------------- what is made of what

    def run(self, run: Run) -> Run:
        """Return the run as it may be written; `redacted` in it says what was taken
        out. Raises UsageError if the function fails: then nothing may be written."""
        if not self:
            return run
        found: Found = Counter()
        values: set[Any] = set()
        exchanges = [self._exchange(each, found, values) for each in run.exchanges]

        def derived(value: Any) -> Any:
            return self._texts(_without(value, values), found)

        plain = {name: self._texts(getattr(run, name), found) for name in ASKED}
        plain |= {name: derived(getattr(run, name)) for name in DERIVED}
        steps = []
        for step in run.steps:
            told = {name: derived(getattr(step, name)) for name in OF_A_STEP}
            told["ungrounded"] = [
                {name: derived(value) for name, value in each.items()}
                for each in step.ungrounded
            ]
            steps.append(replace(step, **told))
        settings = self._settings(run.settings, found)
        redacted = [{"rule": rule, "times": times} for rule, times in found.items()]
        done = replace(
            run,
            exchanges=exchanges,
            steps=steps,
            settings=settings,
            redacted=redacted,
            **plain,
        )
        if elsewhere := _elsewhere(done, values):
            done.warnings = [
                *done.warnings,
                f"what a path of redact took out stands in {elsewhere} other texts of"
                " this record too: a pattern reaches those",
            ]
        return done

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request as it may be written."""
        if not self:
            return request
        plain: dict[str, Any] = self._texts(
            self._at_paths(request, "$", Counter(), set()), Counter()
        )
        return plain

    def asked(self, asked: Asked) -> Asked:
        """Return how a record that may be written says which run it is."""
        *history, question = self.texts([*asked.history, asked.question])
        return replace(asked, question=question, history=tuple(history))

    def texts(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return texts of which nobody knows a path, as questions, as they may be
        written."""
        return tuple(self._texts([*texts], Counter()))

    # ------------------------------------------------------------------------ the rules

    def _settings(self, settings: Mapping[str, Any], found: Found) -> dict[str, Any]:
        """The settings; of those that are free texts what may be written. A replay
        reads them all, so an address that may not be written whole is left out."""
        free = {
            name: self._texts(settings[name], found)
            for name in FREE_SETTINGS
            if name in settings
        }
        if free.get("base_url") != settings.get("base_url"):
            free["base_url"] = None
        return {**settings, **free}

    def _exchange(self, exchange: Exchange, found: Found, values: set[Any]) -> Exchange:
        request = self._at_paths(exchange.request, "$", found, values)
        reply = self._reply(exchange.reply, found, values)
        # What the server sent is nearly the same: it is cleaned, and not counted.
        raw = self._reply(exchange.raw_reply, Counter(), values)
        return replace(
            exchange,
            request=self._texts(request, found),
            reply=self._texts(reply, found),
            raw_reply=self._texts(raw, Counter()),
            body=b"",
        )

    def _reply(self, reply: Any, found: Found, values: set[Any]) -> Any:
        """The reply, whose message is one of the next request's."""
        if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
            return reply
        choices = []
        for choice in reply["choices"]:
            if isinstance(choice, dict) and "message" in choice:
                as_sent = {"messages": [choice["message"]]}
                as_sent = self._at_paths(as_sent, "$", found, values)
                choice = {**choice, "message": as_sent["messages"][0]}
            choices.append(choice)
        return {**reply, "choices": choices}

    def _at_paths(self, value: Any, path: str, found: Found, values: set[Any]) -> Any:
        """The value without the texts and numbers that stand at a path or below it;
        those go into `values`."""
        if not self.paths:
            return value
        if isinstance(value, dict):
            return {
                key: self._at_paths(inner, f"{path}.{key}", found, values)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [
                self._at_paths(inner, f"{path}[{place}]", found, values)
                for place, inner in enumerate(value)
            ]
        # Arguments stay JSON; another text that holds some goes as a whole.
        rules = (rule for rule in self.paths if path_pattern(rule).match(path))
        named = next(rules, None)
        inside = _json(value)
        if inside is not None and (named is None or path.endswith(".arguments")):
            done = self._at_paths(inside, path, found, values)
            return value if done == inside else _dumped(done)
        if named is None or value is None or isinstance(value, bool):
            return value
        found[named] += 1
        values.add(value)
        return MARK

    def _texts(self, value: Any, found: Found) -> Any:
        """The value, every text in it as patterns and function leave it, keys too; a
        number becomes a text where a pattern fits it, as in {"phone": 13812345678}."""
        if not (self.patterns or self.function):
            return value
        if isinstance(value, dict):
            return {
                self._text(key, found): inner
                if key in OF_THE_SERVER
                else self._texts(inner, found)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [self._texts(inner, found) for inner in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            done = self._without_patterns(str(value), found)
            return value if done == str(value) else done
        if not isinstance(value, str):
            return value
        if (inside := _json(value)) is not None:  # where an escape may hide a letter
            done = self._texts(inside, found)
            value = value if done == inside else _dumped(done)
        return self._text(value, found)

    def _without_patterns(self, text: str, found: Found) -> str:
        for name, pattern in self._patterns.items():
            text, times = pattern.subn(f"[redacted {name}]", text)
            if times:
                found[name] += times
        return text

    def _text(self, text: str, found: Found) -> str:
        text = self._without_patterns(text, found)
        if not self.function:
            return text
        call = self._call  # which raises UsageError if there is none
        try:
            done = call(text)
        except Exception as error:  # a user's function may do anything
            kind = type(error).__name__  # and its words may repeat the text
            raise UsageError(
                _("redact: {function} failed: {kind}; nothing was written").format(
                    function=self.function, kind=kind
                )
            ) from None
        if not isinstance(done, str):
            raise UsageError(
                _("redact: {function} must return a text, not {kind}").format(
                    function=self.function, kind=type(done).__name__
                )
            )
        if done != text:
            found[self.function] += 1
        return done

    @cached_property
    def _call(self) -> Callable[[str], Any]:
        called: Callable[[str], Any] = load(self.function)
        return called

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        return {name: re.compile(each) for name, each in self.patterns.items()}


MARK = "[redacted]"
"""What stands where a path took something out."""

NOTHING = Redaction()


FREE_SETTINGS = ("model", "base_url", "extra_body")
OF_THE_SERVER = ("usage",)
"""Fields with numbers that the server counted."""

ASKED = ("question", "history", "note")
DERIVED = ("answer", "error", "warnings")
OF_A_STEP = ("tool", "arguments", "arguments_text", "result", "returned")
"""Fields of a run, and of a step, that come from what was sent."""


def _without(value: Any, values: set[Any]) -> Any:
    """The value, which comes from what was sent, without the values taken out there."""
    if isinstance(value, dict):
        return {key: _without(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, values) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    if value in values:
        return MARK
    if isinstance(value, str):
        for text in sorted(filter(_is_long, values), key=len, reverse=True):
            value = value.replace(text, MARK)
    return value


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= SHORTEST


def _elsewhere(run: Run, values: set[Any]) -> int:
    """In how many texts of requests and replies, questions and notes a value still
    stands that a path took out of another place."""
    texts = list(filter(_is_long, values))
    if not texts:
        return 0
    places = [run.question, *run.history, run.note]
    for exchange in run.exchanges[-1:]:  # its request holds those of the earlier ones
        places += _texts_of([exchange.request, exchange.reply])
    return sum(any(text in place for text in texts) for place in places)


def _texts_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _texts_of(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _texts_of(inner)]
    return [value] if isinstance(value, str) else []


def _json(value: Any) -> Any:
    """The object or list that a text holds as JSON; None where it holds none."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        inside = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return inside if isinstance(inside, dict | list) else None


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
