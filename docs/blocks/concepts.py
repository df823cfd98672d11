"""The concept map: what each concept of langgraph is in the stages below."""

from __future__ import annotations

from blocks.page import table
from blocks.source import link

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
