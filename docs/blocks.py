"""What the pages of README and docs/ include: code by symbol, real output, counts.

The pages hold cog blocks that call these functions. `make docs` fills them in, and
tests/test_docs.py fails where a page says something else than the code does. Output
holds nothing that varies: the window has 88 columns, LLM_… variables are removed.

A page's commands run one after another in a folder of the page's own, whose entries are
links to those of the project. So a command may write a file that the next one reads,
nothing is left behind, and a .env of yours cannot get into a page.
"""

from __future__ import annotations

import ast
import atexit
import difflib
import functools
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cog

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 88
HIDDEN = (".env", ".git", ".venv", ".venv-articles")
"""What a page's folder does not have."""
REMOVED = ("LLM_", "OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LANGGRAPH_", "PYTHON")
"""Beginnings of the variables that a page's commands do not see."""


# ------------------------------------------------------------------ commands


def console(
    command: str,
    *,
    exit_code: int = 0,
    files: dict[str, str] | None = None,
    head: int = 0,
    tail: int = 0,
    without: str = "",
) -> None:
    """Write a console block: the command, and what it prints when it is run now.

    `echo WORD |` may stand in front and is its input, NAME=VALUE sets a variable.
    `files` are put into the page's folder first, {name there: path in the project}.
    `head` and `tail` keep so many lines at the start and the end, and the rules of
    comparing, which every run repeats, are cut; a cut says how long it is. A line that
    has `without` in it is left out: it is another one on each machine.
    AssertionError where the command ends with another exit code than `exit_code`.
    """
    for name, path in (files or {}).items():
        shutil.copy(ROOT / path, _folder() / name)
    code, output = run(command)
    assert code == exit_code, f"{command}: {code}, not {exit_code}\n{output}"
    lines = [line.rstrip() for line in output.splitlines()]
    lines = _without_rules("\n".join(lines).strip("\n").splitlines())
    if without:
        varies = "[… this line varies]"
        lines = [varies if without in line else line for line in lines]
    if (head or tail) and len(lines) > head + tail + 1:
        cut = f"[… {len(lines) - head - tail} more lines]"
        lines = [*lines[:head], cut, *lines[len(lines) - tail :]]
    _fence("console", [f"$ {command}", *lines])


def run(command: str) -> tuple[int, str]:
    """Run a command in the page's folder; return its exit code and what it printed."""
    said, _, rest = command.rpartition(" | ")
    stdin = f"{said.removeprefix('echo ')}\n" if said.startswith("echo ") else ""
    words = shlex.split(rest)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(REMOVED)}
    environment |= {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    environment |= {"PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"}
    here = Path(sys.executable).parent  # a command may start `python` itself
    environment["PATH"] = f"{here}{os.pathsep}{environment.get('PATH', '')}"
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    if words[0] == "python":
        words[0] = sys.executable
    done = subprocess.run(
        words,
        cwd=_folder(),
        env=environment,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def python(source: str) -> None:
    """Write Python code as a reader would type it, and below it what it prints."""
    source = source.strip("\n")
    script = _folder() / "_typed.py"
    script.write_text(source + "\n", encoding="utf-8")
    code, output = run(f"python {script.name}")
    script.unlink()
    assert code == 0, f"{source}\n{output}"
    _fence("python", source.splitlines())
    if output.strip():
        cog.outl()
        _fence("text", [line.rstrip() for line in output.strip("\n").splitlines()])


_TALLY = re.compile(r"\d+ comparisons?:")


def _without_rules(lines: list[str]) -> list[str]:
    """The lines of a judge's report less its rules, which equivalence.md has."""
    if "What is looked past:" not in lines:
        return lines
    start = lines.index("What is looked past:")
    end = next(i for i in range(start, len(lines)) if _TALLY.match(lines[i]))
    cut = f"[… {end - start - 1} lines: the rules of comparing]"
    return [*lines[: start + 1], cut, *lines[end:]]


@functools.cache
def _folder_of(page: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="page-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for entry in ROOT.iterdir():
        if entry.name not in (*HIDDEN, "my_agent.py"):
            (folder / entry.name).symlink_to(entry)
    return folder


def _folder() -> Path:
    """The folder in which the commands of this page run."""
    return _folder_of(str(cog.inFile))


def _fence(language: str, lines: Iterable[str]) -> None:
    cog.outl(f"```{language}")
    for line in lines:
        cog.outl(line)
    cog.outl("```")


# ------------------------------------------------------------------ code


def code(path: str, *symbols: str, language: str = "python") -> None:
    """Write the source of the symbols of a file, or the whole file without any, with a
    link to the lines."""
    lines = _lines(path)
    parts = []
    places = []
    for symbol in symbols:
        first, last = place(path, symbol)
        parts.append("\n".join(lines[first - 1 : last]))
        places.append(link(path, symbol))
    apart = "\n\n\n" if any("\n    " in part for part in parts) else "\n"
    text = apart.join(parts) if symbols else "\n".join(lines)
    _fence(language, text.splitlines())
    cog.outl()
    cog.outl(f"from {', '.join(places) or link(path)}")
    cog.outl()


def say(text: str) -> None:
    """Write a paragraph of prose in which `](path#symbol)` leads to the lines of the
    symbol. (A block inside a paragraph would end it.)"""

    def to_lines(match: re.Match[str]) -> str:
        return link(match[2], match[3], match[1])

    cog.outl(re.sub(r"\[([^]]+)\]\((\w[\w./]*)#([\w.]+)\)", to_lines, text.strip("\n")))


def docstring(path: str) -> None:
    """Write what a file says about itself, as a quotation."""
    text = ast.get_docstring(ast.parse("\n".join(_lines(path)))) or ""
    for line in text.splitlines():
        cog.outl(f"> {line}".rstrip())


def difference(left: str, right: str) -> None:
    """Write how the code of one file differs from that of another, docstrings of the
    module apart, with the count of lines that went and came."""
    sides = [_code_lines(path) for path in (left, right)]
    lines = list(difflib.unified_diff(*sides, n=2, lineterm=""))[2:]
    _fence("diff", [line for line in lines if not line.startswith("@@")])
    cog.outl()
    went, came = (sum(line[:1] == sign for line in lines) for sign in "-+")
    cog.outl(f"{went} lines go, {came} come: {link(left)} to {link(right)}")


def _code_lines(path: str) -> list[str]:
    """The lines of a file below its docstring."""
    first = ast.parse("\n".join(_lines(path))).body[0]
    return _lines(path)[first.end_lineno or 0 :]


def link(path: str, symbol: str = "", text: str = "", *, fragment: str = "") -> str:
    """Return a link to a file, to the lines of a symbol in it, or to the line of the
    symbol that has the fragment in it; for the page that is being made."""
    target = f"{_up()}{path}"
    if not symbol:
        return f"[{text or f'`{path}`'}]({target})"
    first, last = place(path, symbol)
    if fragment:
        first = last = _line(path, symbol, fragment)
    lines = f"L{first}" if first == last else f"L{first}-L{last}"
    return f"[{text or f'`{path}#{symbol}`'}]({target}#{lines})"


def place(path: str, symbol: str) -> tuple[int, int]:
    """Return the first and last line of a symbol, "Class.method" for one in a class;
    ValueError: there is none."""
    body: Sequence[Any] = ast.parse("\n".join(_lines(path))).body
    found, last = None, 0
    for part in symbol.split("."):
        index = next((i for i, node in enumerate(body) if part in _names(node)), None)
        if index is None:
            raise ValueError(f"{path} has no {symbol}")
        found, after = body[index], body[index + 1 : index + 2]
        last = found.end_lineno or 0
        if not hasattr(found, "body") and after and _is_text(after[0]):
            last = after[0].end_lineno or 0  # what is said of a constant
        body = getattr(found, "body", ())
    decorators = getattr(found, "decorator_list", [])
    return min([found.lineno, *(d.lineno for d in decorators)]), last


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _names(node: Any) -> Iterator[str]:
    """The names that a statement binds."""
    if name := getattr(node, "name", None):
        yield name
    for target in getattr(node, "targets", [getattr(node, "target", None)]):
        if name := getattr(target, "id", None):
            yield name


def _line(path: str, symbol: str, fragment: str) -> int:
    first, last = place(path, symbol)
    for number in range(first, last + 1):
        if fragment in _lines(path)[number - 1]:
            return number
    raise ValueError(f"{path}#{symbol} has no line with {fragment!r}")


@functools.cache
def _lines(path: str) -> list[str]:
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


def _up() -> str:
    """What leads from the page that is being made to the project's folder."""
    return "" if Path(cog.inFile).name == "README.md" and _in_root() else "../"


def _in_root() -> bool:
    return Path(cog.inFile).resolve().parent == ROOT


# ------------------------------------------------------------------ counts


def lines_of_code(path: str) -> int:
    """Return the number of lines of a file that are neither blank nor only comment nor
    docstring: what a reader has to understand."""
    return _count((ROOT / path).read_text(encoding="utf-8"))


def library_lines(module: str, function: str = "") -> int:
    """Return the same count for a module of an installed library, or a function of it;
    the versions are those of requirements.txt."""
    text = Path(find_spec(module).origin).read_text(encoding="utf-8")
    if function:
        nodes = [n for n in ast.parse(text).body if getattr(n, "name", "") == function]
        lines = text.splitlines()[nodes[-1].lineno - 1 : nodes[-1].end_lineno]
        text = "\n".join(lines)
    return _count(text)


def _count(text: str) -> int:
    silent = set()
    for node in ast.walk(ast.parse(text)):
        if _is_text(node):
            silent |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in silent
        for number, line in enumerate(text.splitlines(), 1)
    )


def cost(package: str) -> None:
    """Write how many lines a stage is: its loop, and what stands beside it."""
    files = sorted((ROOT / package).glob("*.py"))
    counted = [(file.name, lines_of_code(f"{package}/{file.name}")) for file in files]
    cog.outl("| file | lines of code |")
    cog.outl("| --- | ---: |")
    for name, lines in counted:
        if name != "__init__.py":
            cog.outl(f"| {link(f'{package}/{name}', text=name)} | {lines} |")
    cog.outl(f"| together | {sum(lines for _, lines in counted)} |")


def ladder() -> None:
    """Write the ladder as a table, with counts taken from the files."""
    table(
        ("stage", "what you hold in your hands", "lines", "what the one above did"),
        (
            (link(path, text=path.split("/")[0]), holds, lines_of_code(path), above)
            for path, holds, above in LADDER
        ),
    )


LADDER = (
    (
        "stage1_prebuilt/agent.py",
        "a model, tools, a prompt",
        "nothing is above: loop, nodes and state are the library's",
    ),
    (
        "stage1_prebuilt/successor.py",
        "the same, for `langchain.agents.create_agent`",
        "it replaces create_react_agent, which is deprecated",
    ),
    (
        "stage2_stategraph/agent.py",
        "nodes, edges, a state",
        "drew the graph and ran the tools",
    ),
    (
        "stage3_pure_loop/agent.py",
        "a `for` loop over a list of messages",
        "ran the nodes, merged the state, counted the steps; checkpoints, streaming"
        " modes, interrupts",
    ),
    (
        "stage4_mini_framework/agent.py",
        "dicts and the `openai` client",
        "message classes, schemas from signatures, the reading of replies",
    ),
    (
        "stage5_text_react/agent.py",
        "a prompt and a parser",
        "the model's own tool calling: here it writes its calls as text",
    ),
)


# ------------------------------------------------------------------ tables


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; a column of numbers stands to the right."""
    rows = [list(row) for row in rows]
    numeric = [all(isinstance(row[i], int) for row in rows) for i, _ in enumerate(head)]
    cog.outl(_row(head))
    cog.outl(_row("---:" if right else "---" for right in numeric))
    for row in rows:
        cog.outl(_row(row))


def _row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def value(text: Any, limit: int = 60) -> str:
    """Return a value as code for a cell of a table, in one line."""
    plain = " ".join(str(text).split())
    plain = plain if len(plain) <= limit else f"{plain[: limit - 1]}…"
    return f"`{plain.replace('`', chr(39)).replace('|', '¦')}`" if plain else "nothing"


def _importable() -> None:
    """Let the project's modules be imported; cog resets the path with each page."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))


def meanings(path: str, name: str, head: Sequence[str]) -> None:
    """Write a table {word: meaning} of the code as a table of the page."""
    found = _constant(path, name)
    table(head, ((f"`{word}`", meaning) for word, meaning in found.items()))


def rules() -> None:
    """Write the rules of comparing as a list."""
    for name, sentence in _constant("equivalence/compare.py", "RULES").items():
        cog.outl(f"- **{name}**: {sentence}")


def _constant(path: str, name: str) -> Any:
    """The value of a constant of a file."""
    first, last = place(path, name)
    statement: Any = ast.parse("\n".join(_lines(path)[first - 1 : last])).body[0]
    return ast.literal_eval(statement.value)


def settings() -> None:
    """Write the settings as a table, from config.Settings."""
    _importable()
    from config import Settings

    text = "\n".join(_lines("config.py"))
    body = next(
        n for n in ast.parse(text).body if getattr(n, "name", "") == "Settings"
    ).body
    notes = {
        node.target.id: after.value.value
        for node, after in itertools.pairwise(body)
        if isinstance(node, ast.AnnAssign) and _is_text(after)
    }
    rows = []
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "not set" if default is None else f"`{str(default).lower()}`"
        note = " ".join(notes.get(name, NOTES.get(name, "")).split())
        rows.append((f"`LLM_{name.upper()}`", shown, note))
    table(("variable", "default", "what it is"), rows)


NOTES = {
    "api_key": "The endpoint's key; none for a server that wants none.",
    "model": "The name that the endpoint knows the model by.",
    "temperature": "0 to 2.",
    "seed": "Sent with each request, for servers that honour it.",
    "timeout": "The longest that one model call may take, in seconds.",
    "retries": "How often the client repeats a model call that failed.",
    "max_tokens": "The longest reply.",
    "stream": "Whether the client asks for a stream.",
    "tool_result_limit": "Characters of a tool result; the rest is cut, visibly.",
}
"""What a setting is whose name has to do in the code."""


def hints() -> None:
    """Write what to do about the commonest failures of an endpoint, as a table."""
    table(
        ("the endpoint's words have", "what to do"),
        (
            (" or ".join(f"`{word}`" for word in words), advice)
            for words, advice in _constant("equivalence/hints.py", "HINTS")
        ),
    )


def mermaid(module: str) -> None:
    """Write the graph of a stage as Mermaid, drawn by langgraph from the graph that the
    stage compiles."""
    _importable()
    from importlib import import_module

    from config import Settings, chat_model
    from tools import TOOLS, by_name

    nowhere = Settings(_env_file=None, gateway_url="http://127.0.0.1:9/v1")
    build = import_module(module).build_graph
    graph = build(chat_model(nowhere), by_name(TOOLS), nowhere).get_graph()
    lines = graph.draw_mermaid().strip().splitlines()
    _fence("mermaid", (line.replace("\t", "    ").rstrip() for line in lines))


# ------------------------------------------------------------------ the concept map

STAGE2 = "stage2_stategraph/agent.py"
STAGE3 = "stage3_pure_loop/agent.py"
STAGE4 = "stage4_mini_framework/agent.py"
FRAMEWORK = "stage4_mini_framework/framework.py"
MEMORY = "stage4_mini_framework/memory.py"

Cell = tuple[str, str, str, str] | str
"""A cell: (words, file, symbol, fragment of the line), or words alone."""

CONCEPTS: tuple[tuple[str, Cell, Cell, Cell], ...] = (
    (
        "state",
        ("`StateGraph(MessagesState)`", STAGE2, "build_graph", "StateGraph(Mess"),
        ("a list: `messages`", STAGE3, "run_agent", "messages = ["),
        ("a list of dicts", STAGE4, "run_agent", "messages = ["),
    ),
    (
        "reducer (`add_messages`)",
        ("a node returns what to add", STAGE2, "call_model", "return {"),
        ("`append`, `extend`", STAGE3, "run_agent", "messages.append"),
        ("`append`, `extend`", STAGE4, "run_agent", "messages.append"),
    ),
    (
        "node: the model",
        ('`add_node("model", …)`', STAGE2, "build_graph", 'add_node("model"'),
        ("a call of `call_model`", STAGE3, "run_agent", "reply = call_model"),
        ("a call of `call_model`", STAGE4, "run_agent", "reply = call_model"),
    ),
    (
        "node: the tools (`ToolNode`)",
        ('`add_node("tools", …)`', STAGE2, "build_graph", 'add_node("tools"'),
        ("a call of `run_tools`", STAGE3, "run_agent", "run_tools("),
        ("a call of `run_tools`", STAGE4, "run_agent", "run_tools("),
    ),
    (
        "entry (`START`)",
        ('`add_edge(START, "model")`', STAGE2, "build_graph", "START, "),
        ("the first line of the loop", STAGE3, "run_agent", "reply = call_model"),
        ("the first line of the loop", STAGE4, "run_agent", "reply = call_model"),
    ),
    (
        "conditional edge",
        ("`add_conditional_edges`", STAGE2, "build_graph", "add_conditional_edges"),
        ("`if not wants_tools(…)`", STAGE3, "run_agent", "if not wants_tools"),
        ("`if not wants_tools(…)`", STAGE4, "run_agent", "if not wants_tools"),
    ),
    (
        "end (`END`)",
        ("where `wants_tools` is False", STAGE2, "build_graph", "False: END"),
        ("`break`", STAGE3, "run_agent", "break"),
        ("`break`", STAGE4, "run_agent", "break"),
    ),
    (
        "edge back",
        ('`add_edge("tools", "model")`', STAGE2, "build_graph", '"tools", "model")'),
        ("the loop goes round", STAGE3, "run_agent", "for _ in range"),
        ("the loop goes round", STAGE4, "run_agent", "for _ in range"),
    ),
    (
        "recursion limit",
        ("`2 * max_steps`", STAGE2, "run_agent", "recursion_limit"),
        ("`range(max_steps)`", STAGE3, "run_agent", "range(settings.max_steps)"),
        ("`range(max_steps)`", STAGE4, "run_agent", "range(settings.max_steps)"),
    ),
    (
        "`GraphRecursionError`",
        ("caught; the state is kept", STAGE2, "run_agent", "except GraphRec"),
        ("the loop ends by itself", STAGE3, "run_agent", "return messages"),
        ("the loop ends by itself", STAGE4, "run_agent", "return messages"),
    ),
    (
        "`compile`, `invoke`, `stream`",
        ("`graph.stream(…)`", STAGE2, "run_agent", "graph.stream"),
        ("calling the function", STAGE3, "run_agent", "def run_agent"),
        ("`Agent.run`", FRAMEWORK, "Agent.run", "def run"),
    ),
    (
        "`prompt`",
        ("put in front at each call", STAGE2, "call_model", "SystemMessage("),
        ("put in front at each call", STAGE3, "call_model", "SystemMessage("),
        ("put in front at each call", STAGE4, "call_model", "[system, *mess"),
    ),
    (
        "`bind_tools`",
        ("`model.bind_tools(…)`", STAGE2, "run_agent", "bind_tools"),
        ("`model.bind_tools(…)`", STAGE3, "run_agent", "bind_tools"),
        ("`partial(model, tools=…)`", STAGE4, "run_agent", "partial(model"),
    ),
    (
        "`@tool`",
        ("LangChain's, from the signature", STAGE2, "run_agent", "tool(function)"),
        ("LangChain's, from the signature", STAGE3, "run_agent", "tool(function)"),
        ("`@agent.tool`", FRAMEWORK, "Agent.tool", "def tool"),
    ),
    (
        "errors of tools (`handle_tool_errors`)",
        ("`tools.run_tool`", "tools.py", "run_tool", "def run_tool"),
        ("`tools.run_tool`", "tools.py", "run_tool", "def run_tool"),
        ("`tools.run_tool`", "tools.py", "run_tool", "def run_tool"),
    ),
    (
        "parallel tools (`max_concurrency`)",
        ("`map_calls`", STAGE2, "run_tools", "map_calls"),
        ("`map_calls`", STAGE3, "run_tools", "map_calls"),
        ("`map_calls`", STAGE4, "run_tools", "map_calls"),
    ),
    (
        "checkpointer, thread",
        ("the caller keeps `history`", STAGE2, "run_agent", "def run_agent"),
        ("the caller keeps `history`", STAGE3, "run_agent", "def run_agent"),
        ("`Agent.messages`", FRAMEWORK, "Agent.__init__", "self.messages: "),
    ),
    (
        "`trim_messages`, a pre-model hook",
        "none; see the exercise of [stage 4](4-mini-framework.md#exercise)",
        "none; see the exercise of [stage 4](4-mini-framework.md#exercise)",
        ("a memory", MEMORY, "Window", "class Window"),
    ),
    (
        "`interrupt`",
        "none; [asking a person](1-prebuilt.md#exercise) is a line in the tool policy",
        "an `input` before the call",
        "an `input` before the call",
    ),
    (
        "stream modes, callbacks",
        "the stages print nothing: the gateway watches from outside",
        ("the gateway's `on_exchange`", "gateway/server.py", "RunLog", "on_exchange"),
        ("the gateway's `on_exchange`", "gateway/server.py", "RunLog", "on_exchange"),
    ),
)


def concepts() -> None:
    """Write the concept map; each cell is linked to the line that holds it, and a cell
    whose line is gone is a ValueError."""
    table(
        ("concept of langgraph", "stage 2: StateGraph", "stage 3: Python", "stage 4"),
        ((concept, *map(_concept_cell, cells)) for concept, *cells in CONCEPTS),
    )


def _concept_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    words, path, symbol, fragment = cell
    return link(path, symbol, words, fragment=fragment)


# ------------------------------------------------------------------ the matrix

RACES = {
    "one_of_two_parallel_tools_raises": "which of two threads is first is chance",
    "one_of_two_concurrent_tools_raises": "the same, with a tool that takes longer",
    "never_side_by_side": "whether two calls meet is a matter of time",
}
"""Scenarios of which the stock agents make another thing now and then."""


@functools.cache
def stock_cells() -> dict[str, dict[str, Any]]:
    """Play every mechanism scenario in front of every stock implementation, once for
    all pages; return the cells by scenario and implementation."""
    _importable()
    from equivalence.matrix import GROUPS, matrix

    groups = [group for group in GROUPS if group.name == "stock"]
    scenarios = [each for each in _scenarios().values() if each.name not in RACES]
    with warnings.catch_warnings():  # what scripted replies make pydantic say
        warnings.simplefilter("ignore")
        return {
            row[0].scenario: {cell.implementation: cell for cell in row}
            for row in matrix(scenarios, groups)
        }


def stock_tally() -> None:
    """Write in how many scenarios each stock implementation equals the first."""
    _importable()
    from equivalence.implementations import STOCK

    cells = stock_cells()
    rows = []
    for each in STOCK[1:]:
        columns = [row[each.name] for row in cells.values()]
        equal = sum(cell.equal for cell in columns)
        same = sum(cell.same_bytes for cell in columns)
        rows.append((f"`{each.name}`", each.about, equal, same, len(columns)))
    head = ("implementation", "what it is", "equal", "same bytes", "scenarios")
    table(head, rows)


def stock_differences() -> None:
    """Write each scenario in which a stock implementation differs from the first."""
    _importable()
    from equivalence.implementations import STOCK

    names = [each.name for each in STOCK[1:]]
    table(
        ("scenario", *(f"`{name}`" for name in names)),
        (
            (scenario, *(_stock_cell(row[name]) for name in names))
            for scenario, row in stock_cells().items()
            if not all(cell.equal for cell in row.values())
        ),
    )


def _stock_cell(cell: Any) -> str:
    if cell.equal:
        return "="
    return f"{cell.divergence.cause} {cell.divergence.model_call}"


def stock_case(scenario: str) -> None:
    """Write what the stock implementations made of one scenario: how their runs end,
    and where they part from the first, both values; those alike in one row."""
    cells = stock_cells()[scenario]
    cog.outl(f"`{scenario}`: {_scenarios()[scenario].why}")
    cog.outl()
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, cell in cells.items():
        rows.setdefault(_stock_outcome(cell), []).append(f"`{name}`")
    head = ("implementation", "ends", "parts from the first", "there", "here")
    table(head, ((", ".join(names), *outcome) for outcome, names in rows.items()))
    cog.outl()


def _stock_outcome(cell: Any) -> tuple[str, ...]:
    end = f"`{cell.runs[-1].status}`"
    if cell.equal:
        return (end, "", "", "")
    found = cell.divergence
    where = f"{found.cause}, model call {found.model_call}, `{found.path}`"
    return (end, where, value(found.left), value(found.right))


@functools.cache
def _scenarios() -> dict[str, Any]:
    _importable()
    from equivalence.scenarios import read_scenarios

    return {each.name: each for each in read_scenarios()}


def faults() -> None:
    """Write the planted faults as a table: what each does wrong, and the cause."""
    _importable()
    from equivalence import faults

    table(
        ("fault", "what it does wrong", "cause"),
        (
            (
                link("equivalence/faults.py", name, f"`{name}`"),
                " ".join((getattr(faults, name).__doc__ or "").split()),
                f"`{cause}`",
            )
            for name, cause in faults.FAULTS.items()
        ),
    )


def cannot_be_equal() -> None:
    """Write what the ladder's own implementations cannot make equal, with the reasons;
    the test that holds the list fails when an entry no longer occurs."""
    _importable()
    from tests.test_scenarios import EXCEPTIONS

    table(
        ("scenario", "implementation", "why"),
        (
            (scenario, f"`{name}`", reason)
            for (scenario, name), reason in EXCEPTIONS.items()
        ),
    )
