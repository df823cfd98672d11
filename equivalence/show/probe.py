"""The findings of a probe for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console

from equivalence.language import _
from equivalence.phrases import translated
from equivalence.probe.probe import MORE, REQUESTS, Check, Findings
from equivalence.show.terminal import text

SIGNS = {
    "yes": ("✓", "green"),
    "no": ("✗", "red"),
    "note": ("!", "yellow"),
    "unknown": ("?", "dim"),
}


def beforehand(out: Console, url: str, model: str) -> None:
    """Print who is asked, and how often."""
    line = _(
        "probe of {url}, model {model}: {requests} requests, at"
        " most {most} where it refuses some"
    ).format(url=url, model=model, requests=REQUESTS, most=REQUESTS + MORE)
    out.print(text(line), soft_wrap=True)


def check_line(out: Console, check: Check) -> None:
    """Print a check, and below it what to do."""
    sign, style = SIGNS[check.result]
    name = translated(check.name)
    line = f"{sign} {name}{' ' * (15 - cell_len(name))} {translated(check.found)}"
    out.print(text(line, style), soft_wrap=True)
    if check.advice:
        advice = translated(check.advice)
        out.print(text(f"{'':18}{advice}", "dim"), soft_wrap=True)


def conclusion(
    out: Console,
    findings: Findings,
    tool_calls: Sequence[str],
    text_agents: Sequence[str],
) -> None:
    """Print in one line who will work, with which settings."""
    works = [
        *(tool_calls if findings.tool_calls else ()),
        *(text_agents if findings.text else ()),
    ]
    fails = [
        *(tool_calls if findings.tool_calls is False else ()),
        *(text_agents if findings.text is False else ()),
    ]
    if works:
        line = _("will work: {works}, with {settings}").format(
            works=", ".join(works), settings=findings.environment()
        )
        result = [c for c in findings.checks if c.name == "tool result"]
        if findings.tool_calls and result and result[0].result == "note":
            line += _("; mind the tool result")
        if fails:
            line += _("; will not: {fails}").format(fails=", ".join(fails))
    elif fails and findings.tool_calls is False:
        line = _("will not work: {fails}").format(fails=", ".join(fails))
    else:
        line = _("not known: the endpoint gave no reply to judge by")
    out.print(text(line, "bold"), soft_wrap=True)
