"""The language of what is printed for people: English, or a catalogue in locale/.

A message is its own English sentence. `_()` looks it up at the moment of printing, so
nothing here depends on when a module was imported:

    print(_("{count} runs were read").format(count=3))

What a model reads, what is written into a record, the keys of JSON and machine words
(`request`, `step_limit`) never pass through here. `make messages` collects the
sentences; CONTRIBUTING.md says how to change one.
"""

from __future__ import annotations

import functools
import gettext
import os
import re
from pathlib import Path

LOCALE = Path(__file__).parent / "locale"
DOMAIN = "equivalence"
VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""What says the language where LLM_LANG does not, in POSIX's order."""

_IN_ENV_FILE = re.compile(
    r"""^\s* (?:export\s+)? LLM_LANG \s*=\s* ["']? ([\w.@-]+)""",
    re.MULTILINE | re.VERBOSE | re.ASCII,
)


def _(message: str) -> str:
    """Return the message in the language of whoever reads it. Its placeholders are
    filled in afterwards: an f-string is in no catalogue."""
    return _catalogue(language()).gettext(message) if message else ""


def ngettext(one: str, many: str, number: int) -> str:
    """Return the form of the message for this number."""
    return _catalogue(language()).ngettext(one, many, number)


def counted(number: int, one: str, many: str) -> str:
    """Return so many of them: counted(2, "{count} run", "{count} runs")."""
    return ngettext(one, many, number).format(count=number)


def N_(message: str) -> str:  # noqa: N802  # the usual name
    """Return the message as it is, and mark it for the catalogue: a constant, which is
    translated where it is printed, `_(CONSTANT)`."""
    return message


def language() -> str:
    """Return the language by LLM_LANG (environment, else .env), LC_ALL, LC_MESSAGES or
    LANG, the first of them that is set: "zh" for whatever begins with zh, else "en"."""
    named = os.environ.get("LLM_LANG") or _of_env_file(os.getcwd())
    names = (named, *map(os.environ.get, VARIABLES))
    said = next(filter(None, names), "")
    code = re.split(r"[_.@-]", said.strip().lower(), maxsplit=1)[0]
    return code if code and _is_there(code) else "en"


def translate_argparse() -> None:
    """Let argparse, whose words go through gettext's own domain and variables, ask us.

    Not by way of those variables: an agent's process would inherit them.
    """
    import argparse

    for name, function in (("_", _), ("ngettext", ngettext)):
        setattr(argparse, name, function)


@functools.cache
def _is_there(code: str) -> bool:
    return (LOCALE / code / "LC_MESSAGES").is_dir()


@functools.cache
def _of_env_file(folder: str) -> str:
    """What .env says of LLM_LANG; settings.py reads the rest, with pydantic."""
    file = Path(folder, ".env")
    try:
        text = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    except (OSError, UnicodeDecodeError):  # whoever needs a setting says so
        return ""
    return next(reversed(_IN_ENV_FILE.findall(text)), "")


@functools.cache
def _catalogue(code: str) -> gettext.NullTranslations:
    if code == "en":  # the messages themselves
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALE, [code], fallback=True)


ARGPARSE = (
    N_("usage: "),
    N_("positional arguments"),
    N_("options"),
    N_("show this help message and exit"),
    N_("show program's version number and exit"),
    N_("%(prog)s: error: %(message)s\n"),
    N_("argument %(argument_name)s: %(message)s"),
    N_("the following arguments are required: %s"),
    N_("one of the arguments %s is required"),
    N_("unrecognized arguments: %s"),
    N_("not allowed with argument %s"),
    N_("ignored explicit argument %r"),
    N_("ambiguous option: %(option)s could match %(matches)s"),
    N_("expected one argument"),
    N_("expected at most one argument"),
    N_("expected at least one argument"),
    N_("invalid %(type)s value: %(value)r"),
    N_("invalid choice: %(value)r (choose from %(choices)s)"),
    N_("unknown parser %(parser_name)r (choices: %(choices)s)"),
)
"""The words of argparse that a user can meet, on each supported Python."""
