"""probe: what an endpoint can do, and what follows from it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.probe.probe import Findings, probe
from equivalence.runs.output import json_stream
from equivalence.settings import load_settings
from equivalence.show import probe as show
from equivalence.show import terminal
from equivalence.table import Table


def probe_command(arguments: argparse.Namespace, table: Table) -> int:
    """Probe the endpoint and print what was found; return the exit code. Raises
    UsageError if no endpoint is named."""
    settings = load_settings(
        base_url=arguments.base_url, model=arguments.model, temperature=0.0
    )
    if not settings.base_url:
        raise UsageError(
            _(
                "there is no endpoint to probe: give --base-url and"
                " --model, or set LLM_BASE_URL and LLM_MODEL"
            )
        )
    out = terminal.console(sys.stderr if arguments.json else sys.stdout)
    show.beforehand(out, settings.base_url, settings.model)
    findings = probe(settings, lambda check: show.check_line(out, check))
    by_protocol = {
        protocol: [
            name
            for name, implementation in table.implementations.items()
            if implementation.protocol == protocol
        ]
        or [otherwise]
        for protocol, otherwise in (
            ("tool_calls", _("agents with tool calls")),
            ("text", _("agents with calls in text")),
        )
    }
    if arguments.json:
        print(
            json.dumps(_document(findings, by_protocol), ensure_ascii=False),
            file=json_stream(),
        )
    show.conclusion(out, findings, by_protocol["tool_calls"], by_protocol["text"])
    return findings.exit_code


def _document(
    findings: Findings, by_protocol: dict[str, list[str]]
) -> dict[str, object]:
    """The findings as JSON; the exchanges are those on which they rest."""
    return {
        "endpoint": findings.url,
        "model": findings.model,
        "requests": findings.asked,
        "checks": [asdict(check) for check in findings.checks],
        "tool_calls": findings.tool_calls,
        "text": findings.text,
        "settings": findings.changed,
        "implementations": {
            name: verdict
            for protocol, verdict in (
                ("tool_calls", findings.tool_calls),
                ("text", findings.text),
            )
            for name in by_protocol[protocol]
        },
        "models": findings.models,
        "exchanges": [
            {
                "request": each.request,
                "status": each.raw_status,
                "reply": each.raw_reply,
                "repairs": each.repairs,
                "ms": each.ms,
            }
            for each in findings.exchanges
        ],
    }
