"""What goes over the wire, in words: of a request what it adds to the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from equivalence.gateway import Exchange
from equivalence.gateway.shapes import first_choice
from equivalence.language import _, ngettext
from equivalence.runs.steps import text_of, tool_calls
from equivalence.runs.words import short


class WirePrinter:
    """Prints each request and each reply of a run as they pass the gateway."""

    def __init__(self, write: Callable[[str, str], None]) -> None:
        self.write = write
        self.before: list[Any] = []

    def exchange(self, exchange: Exchange) -> None:
        """Print a request, less the messages that the last one had, and its reply as
        the endpoint sent it."""
        messages = exchange.request["messages"]
        offered = exchange.request.get("tools") or ()
        names = ", ".join(tool["function"]["name"] for tool in offered) or _("none")
        words = ngettext(
            "request with {count} message, tools: {names}",
            "request with {count} messages, tools: {names}",
            len(messages),
        )
        self.write(words.format(count=len(messages), names=names), "magenta")
        pairs = zip(messages, self.before, strict=False)
        same = sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if same:
            self.write(_("  (the first {count} as before)").format(count=same), "dim")
        for message in messages[same:]:
            self._message(message["role"], message, message.get("tool_calls") or ())
        self.before = messages
        self.write(_("reply"), "magenta")
        reply = exchange.reply if exchange.raw_reply is None else exchange.raw_reply
        choice = first_choice(reply)
        if choice is None:
            self.write(f"  {exchange.raw_status}: {short(reply)}", "")
            return
        calls = [{"function": call} for call in tool_calls(reply)]
        self._message("assistant", choice["message"], calls)

    def _message(self, role: str, message: Mapping[str, Any], calls: Any) -> None:
        lines = text_of(message.get("content")).splitlines()
        for call in calls:
            function = call["function"]
            lines.append(
                _("calls {name}({arguments})").format(
                    name=function["name"], arguments=function["arguments"]
                )
            )
        for number, line in enumerate(lines or [_("(no text)")]):
            self.write(f"  {role}: {line}" if number == 0 else f"    {line}", "")
