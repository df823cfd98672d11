"""The language of what is printed for people: which it is, what the catalogue holds."""

from __future__ import annotations

import argparse
import ast
import io
import string
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from command_lines import ROOT, python

from equivalence import language as spoken
from equivalence.language import ARGPARSE, LOCALE, N_, _, ngettext
from equivalence.phrases import RECORDED, translated

pofile = pytest.importorskip("babel.messages.pofile")

from babel.messages.catalog import Catalog, Message  # noqa: E402
from babel.messages.extract import extract_from_file  # noqa: E402
from babel.messages.mofile import write_mo  # noqa: E402

PO = LOCALE / "zh" / "LC_MESSAGES" / "equivalence.po"
BABEL = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["babel"]


# ---------------------------------------------------------------- which language it is

UNSET = {"LLM_LANG": "", "LC_ALL": "", "LC_MESSAGES": "", "LANG": ""}


def said_under(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    for name, value in {**UNSET, **variables}.items():
        monkeypatch.setenv(name, value)
    return spoken.language()


@pytest.mark.parametrize(
    "name", ["zh", "zh_CN", "zh-CN", "zh_CN.UTF-8", "ZH", "zh_TW", "zh@x", " zh "]
)
def test_each_spelling_of_chinese_is_chinese(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said_under(monkeypatch, LLM_LANG=name) == "zh"
    assert _("options") == "选项"


@pytest.mark.parametrize(
    "name",
    ["", "en", "en_US.UTF-8", "C", "C.UTF-8", "POSIX", "xx", "zhx", "../zh", "."],
)
def test_whatever_else_is_english(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said_under(monkeypatch, LLM_LANG=name) == "en"
    assert _("options") == "options"


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "en_US", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LLM_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, "en"),
        ({"LLM_LANG": "xx", "LC_ALL": "zh_CN.UTF-8"}, "en"),  # asked for, not known
    ],
)
def test_the_first_variable_that_is_set_decides(
    variables: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said_under(monkeypatch, **variables) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("LLM_LANG=zh\n", "zh"),
        ("\ufeffLLM_LANG = 'zh_CN'  # people\nLLM_MODEL=m\n", "zh"),
        ('export LLM_LANG="zh"\n', "zh"),
        ("LLM_LANG=zh\nLLM_LANG=en\n", "en"),  # the last one, as for other settings
        ("#LLM_LANG=zh\n", "en"),
        ("MY_LLM_LANG=zh\n", "en"),
        ("", "en"),
    ],
)
def test_the_env_file_says_it_too(
    text: str, language: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".env").write_text(text, encoding="utf-8")
    assert said_under(monkeypatch, LANG="en_US.UTF-8") == language
    assert said_under(monkeypatch, LLM_LANG="en") == "en"  # the environment wins


def test_an_env_file_that_nobody_can_read_says_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".env").write_bytes(b"LLM_LANG=zh\n\xff")
    assert said_under(monkeypatch) == "en"


def test_numbers_choose_the_form_in_english_and_not_in_chinese(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number, expected in ((1, "one"), (2, "many")):
        assert ngettext("one", "many", number) == expected
    assert N_("options") == "options"
    said_under(monkeypatch, LLM_LANG="zh")
    assert N_("options") == "options"  # it marks, and does not translate
    assert _("") == ""  # gettext has the catalogue's header there


def test_the_help_is_there_without_loading_what_is_heavy() -> None:
    done = python("-X", "importtime", "-m", "equivalence", "--help", LLM_LANG="zh")
    assert done.stdout.startswith("用法：python -m equivalence")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "equivalence.language" in loaded
    assert not loaded & {"pydantic", "dotenv", "babel", "rich"}


# ------------------------------------------------------------ what the catalogue holds


@cache
def catalogue() -> Catalog:
    with PO.open("rb") as file:
        return pofile.read_po(file, locale="zh")


@cache
def collected() -> set[str | tuple[str, ...]]:
    """The messages in the sources, as `make messages` finds them."""
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder, "messages.pot")
        babel = [sys.executable, "-m", "babel.messages.frontend", "-q"]
        command = [*babel, "extract", "-o", str(template)]
        subprocess.run(command, cwd=ROOT, timeout=60, check=True)
        with template.open("rb") as file:
            return {key(message) for message in pofile.read_po(file) if message.id}


def key(message: Message) -> str | tuple[str, ...]:
    return message.id if isinstance(message.id, str) else tuple(message.id)


def texts(of: str | tuple[str, ...] | list[str]) -> list[str]:
    return [of] if isinstance(of, str) else list(of)


def messages() -> Iterator[Message]:
    yield from (message for message in catalogue() if message.id)


def test_the_catalogue_has_the_messages_of_the_sources_and_no_others() -> None:
    """`make messages`, if this fails."""
    known = {key(message) for message in messages()}
    assert sorted(map(str, collected() - known)) == []
    assert sorted(map(str, known - collected())) == []


def test_every_message_is_translated_and_none_is_a_guess() -> None:
    missing = [m.id for m in messages() if not all(texts(m.string))]
    assert missing == []
    assert [m.id for m in messages() if m.fuzzy] == []


def fields(text: str) -> list[str]:
    """The placeholders of a message: {name} and %(name)s."""
    named = [
        f"{name}!{conversion}:{spec}"
        for _text, name, spec, conversion in string.Formatter().parse(text)
        if name is not None
    ]
    percent = [f"%({part}" for part in text.split("%(")[1:]]
    return sorted(named) + sorted(part[: part.index(")") + 2] for part in percent)


def test_the_placeholders_are_those_of_the_english_sentence() -> None:
    for message in messages():
        for text in texts(message.string):
            ours = fields(text)
            theirs = [fields(one) for one in texts(message.id)]
            assert ours in theirs, message.id


def test_the_compiled_catalogue_is_that_of_the_text() -> None:
    """`make messages`, if this fails."""
    compiled = io.BytesIO()
    write_mo(compiled, catalogue())
    assert PO.with_suffix(".mo").read_bytes() == compiled.getvalue()


def test_what_argparse_says_to_a_user_is_in_the_catalogue() -> None:
    """Of the Python that runs here; the rest is said to whoever writes a parser."""
    found = extract_from_file("python", argparse.__file__, keywords={"_": None})
    said = {str(message) for _line, message, _comments, _context in found}
    to_authors = {
        ".__call__() not defined",
        "conflicting subparser: %s",
        "conflicting subparser alias: %s",
        'argument "-" with mode %r',
        "can't open '%(filename)s': %(error)s",  # FileType, which nothing here takes
        "cannot merge actions - two groups are named %r",
        "'required' is an invalid argument for positionals",
        "invalid option string %(option)r: "
        "must start with a character %(prefix_chars)r",
        "dest= is required for options like %r",
        "invalid conflict_resolution value: %r",
        "mutually exclusive arguments must be optional",
        "cannot have multiple subparser arguments",
        "unexpected option string: %s",
        "%r is not callable",
        "subcommands",
        "%(heading)s:",
        " (default: %(default)s)",
        "command '%(parser_name)s' is deprecated",
        "option '%(option)s' is deprecated",
        "argument '%(argument_name)s' is deprecated",
    }
    assert said - to_authors <= set(ARGPARSE)


class Lookups(ast.NodeVisitor):
    """Where a file looks up a message: at import, in an f-string, elsewhere."""

    def __init__(self) -> None:
        self.within: list[type[ast.AST]] = []
        self.early: list[int] = []
        self.hidden: list[int] = []

    def generic_visit(self, node: ast.AST) -> None:
        name = node.func if isinstance(node, ast.Call) else None
        if isinstance(name, ast.Name) and name.id in ("_", "ngettext"):
            if ast.JoinedStr in self.within:
                self.hidden.append(name.lineno)
            if not {ast.FunctionDef, ast.AsyncFunctionDef} & set(self.within):
                self.early.append(name.lineno)
        self.within.append(type(node))
        super().generic_visit(node)
        self.within.pop()


def test_a_message_is_looked_up_where_it_is_printed() -> None:
    """Not at import, when nobody knows who will read it; and not inside an f-string,
    where Babel does not see it."""
    for path in sources():
        lookups = Lookups()
        lookups.visit(ast.parse(path.read_text(encoding="utf-8")))
        assert (lookups.early, lookups.hidden) == ([], []), path


def literals(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_recorded_sentences_are_those_that_are_written() -> None:
    """A sentence that is written otherwise now would be shown in English."""
    rooms = [ROOT / "equivalence" / name for name in ("gateway", "runs", "cost")]
    written = "\n".join(
        text for room in rooms for path in room.rglob("*.py") for text in literals(path)
    )
    for phrase in RECORDED:
        parts = [part for part, *_field in string.Formatter().parse(phrase)]
        parts = [part.removeprefix("CommandFailed: ") for part in parts]
        assert [part for part in parts if not known(part, written)] == [], phrase


def known(part: str, written: str, pieces: int = 3) -> bool:
    """Whether a part is put together of what is written in a few places."""
    return part in written or (
        pieces > 1
        and any(
            part[:cut] in written and known(part[cut:], written, pieces - 1)
            for cut in range(1, len(part))
        )
    )


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (
            "cannot reach http://127.0.0.1:9/v1: connection refused",
            "连不上 http://127.0.0.1:9/v1：连接被拒绝",
        ),
        ("not executed", "没有执行"),
        ("get_weather executed", "执行了 get_weather"),
        (
            "turn 2, calculate: 5 was made up: in no question and no earlier result;"
            " other results came in turn 3; what came of it, 10, is in the answer",
            "第 2 轮，calculate：5 是编造的：问题和此前的结果里都没有；其他结果在第 3"
            " 轮才返回；由此得到的 10 出现在回答里",
        ),
        ("the endpoint answered 401: no such key", "端点返回 401：no such key"),
        ("a server's own words", "a server's own words"),
        ("", ""),
    ],
)
def test_a_recorded_sentence_is_told_again(
    english: str, chinese: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert translated(english) == english
    monkeypatch.setenv("LLM_LANG", "zh")
    assert translated(english) == chinese


def sources() -> Iterator[Path]:
    for name in BABEL["extract_messages"]["input-paths"]:
        path = ROOT / name
        yield from [path] if path.is_file() else path.rglob("*.py")
