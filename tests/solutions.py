"""Solutions of the exercises by others: wrong ones with the reason, and right ones that
are not ours. Each is one of ours with parts replaced.
"""

from __future__ import annotations

from typing import NamedTuple


class Solution(NamedTuple):
    """A solution: what is replaced in the file, and the reason of its FAIL, if any."""

    exercise: str
    about: str
    reason: str
    """Key of the text; "" for one that passes."""
    replaced: dict[str, str]
    file: str = "solution"


ALLOWED = "input(f\"Run {call['name']}({call['args']})? [y/n] \").strip() == \"y\""
ANSWERS_ITSELF = """    for message in reversed(state["messages"]):
        if message.type != "tool":
            return False
        if message.name in RETURN_DIRECT:
            return True
    return False
"""
BIND = """        model = model.bind_tools(
            [tool(function) for function in tools.values()], parallel_tool_calls=False
        )
"""
PLAIN = "        model = model.bind_tools([tool(f) for f in tools.values()])\n"
POOL = """    with ThreadPoolExecutor() as pool:
        return list(pool.map(run, reply.tool_calls))
"""
LOOP = "range(settings.max_steps)"
IN_WORDS = 'return f"Error: {error}"'
WAITS = "        if missing := asked & NEEDS.get(name, set()):\n"
REVERSED = "return [run(call) for call in reversed(reply.tool_calls)][::-1]"
LABEL = """    if not re.search("final answer", text, re.IGNORECASE):
        text = LABEL.sub("Final Answer:", text)
"""
KEPT = "    kept = {questions[-1], len(rounds) - 1}\n"
INVOKE = '    return graph.invoke({"messages": messages})["messages"]\n'
COUNT = "str(word.casefold().count(letter.casefold()))"

WRONG = [
    # ------------------------------------------------------------------- first_tool
    Solution(
        "first_tool",
        "another tool is thrown out",
        "tool_lost",
        {"(get_weather, calculate, count_letters)": "(get_weather, count_letters)"},
    ),
    Solution(
        "first_tool",
        "no type hints",
        "parameters",
        {"(word: str, letter: str) -> str": "(word, letter)"},
    ),
    Solution(
        "first_tool",
        "a parameter that may be left out",
        "parameters",
        {"letter: str)": 'letter: str = "r")'},
    ),
    Solution(
        "first_tool",
        "capital letters are others",
        "wrong_count",
        {COUNT: "str(word.count(letter))"},
    ),
    Solution("first_tool", "always three", "wrong_count", {COUNT: '"3"'}),
    Solution(
        "first_tool",
        "a number in the tool message",
        "refused",
        {f"{COUNT}": "word.casefold().count(letter.casefold())"},
    ),
    Solution(
        "first_tool",
        "another prompt",
        "not_the_same",
        {'"content": SYSTEM_PROMPT': '"content": "Answer."'},
    ),
    Solution(
        "first_tool",
        "it stops after the first tool",
        "not_completed",
        {"range(10)": "range(1)"},
    ),
    # ----------------------------------------------------------------- ask_a_person
    Solution(
        "ask_a_person",
        "all but n is y",
        "ran_although_no",
        {'== "y"': '!= "n"'},
    ),
    Solution(
        "ask_a_person",
        "yesterday is y",
        "ran_although_no",
        {'.strip() == "y"': '.startswith("y")'},
    ),
    Solution(
        "ask_a_person",
        "an empty tool message",
        "not_told",
        {'"Error: the user did not allow this call."': '""'},
    ),
    Solution(
        "ask_a_person",
        "it does not show the call",
        "hidden_call",
        {"Run {call['name']}({call['args']})?": "Shall it run?"},
    ),
    Solution(
        "ask_a_person",
        "it shows no arguments",
        "hidden_call",
        {"({call['args']})": ""},
    ),
    Solution(
        "ask_a_person",
        "it asks before every tool",
        "asked_too_much",
        {'call["name"] not in CRITICAL': "False"},
    ),
    Solution(
        "ask_a_person",
        "only yes is yes",
        "yes_is_not_enough",
        {'== "y"': '== "yes"'},
    ),
    Solution(
        "ask_a_person",
        "it asks once for each tool",
        "once_for_two",
        {
            "def allowed": "SAID = {}\n\n\ndef allowed",
            f"return {ALLOWED}": f'if not SAID.get(call["name"])'
            f":\n        SAID[call['name']] = {ALLOWED}\n    return SAID[call['name']]",
        },
    ),
    Solution(
        "ask_a_person",
        "once y, always y",
        "wrong_call",
        {
            "def allowed": "SAID = []\n\n\ndef allowed",
            f"return {ALLOWED}": f"SAID.append({ALLOWED})\n    return any(SAID)",
        },
    ),
    Solution(
        "ask_a_person",
        "the approval stands in the result",
        "not_the_same",
        {"        identity =": '        content += "!"\n        identity ='},
    ),
    # ---------------------------------------------------------------- return_direct
    Solution(
        "return_direct",
        "it looks at the last message alone",
        "first_of_two",
        {ANSWERS_ITSELF: '    return state["messages"][-1].name in RETURN_DIRECT\n'},
    ),
    Solution(
        "return_direct",
        "it looks at the first result alone",
        "last_of_two",
        {
            ANSWERS_ITSELF: '    results = [m for m in state["messages"]]\n'
            '    while results[-1].type == "tool" and results[-2].type == "tool":\n'
            "        results.pop()\n"
            "    return results[-1].name in RETURN_DIRECT\n"
        },
    ),
    Solution(
        "return_direct",
        "every tool ends the run",
        "other_tool",
        {ANSWERS_ITSELF: "    return True\n"},
    ),
    Solution(
        "return_direct",
        "a failure does not count",
        "failed_call",
        {
            "if message.name in RETURN_DIRECT:": "if message.name in RETURN_DIRECT and"
            ' message.status == "success":'
        },
    ),
    Solution(
        "return_direct",
        "it looks at the first turn alone",
        "later_turn",
        {
            ANSWERS_ITSELF: '    if sum(m.type == "ai" for m in state["messages"]) > 1:'
            f"\n        return False\n{ANSWERS_ITSELF}"
        },
    ),
    Solution(
        "return_direct",
        "it looks at the whole conversation",
        "conversation",
        {
            ANSWERS_ITSELF: '    return any(m.type == "tool" and m.name in'
            ' RETURN_DIRECT for m in state["messages"])\n'
        },
    ),
    # ----------------------------------------------------------------------- serial
    Solution(
        "serial",
        "it runs one call and forgets the others",
        "refused",
        {
            BIND: PLAIN,
            "tools(reply, tools, settings)": "tools(reply, tools, settings)[:1]",
        },
    ),
    Solution(
        "serial",
        "it cuts the reply to one call",
        "several_calls",
        {
            BIND: PLAIN,
            "        messages.append(reply)": "        first = reply.tool_calls[:1]\n"
            '        cut = {"tool_calls": first, "additional_kwargs": {}}\n'
            "        reply = reply.model_copy(update=cut)\n"
            "        messages.append(reply)",
        },
    ),
    Solution(
        "serial",
        "the field in the first request alone",
        "no_field",
        {
            "        messages.append(": "        model = chat_model(settings).bind_"
            "tools([tool(f) for f in tools.values()])\n        messages.append("
        },
    ),
    Solution(
        "serial",
        "the field and another one",
        "more_than_the_field",
        {"parallel_tool_calls=False": 'parallel_tool_calls=False, tool_choice="auto"'},
    ),
    Solution(
        "serial",
        "the field without tools",
        "field_without_tools",
        {
            BIND: PLAIN,
            "    messages = [": "    model = model.bind(parallel_tool_calls=False)\n"
            "    messages = [",
        },
    ),
    Solution(
        "serial",
        "the field at temperature 0 alone",
        "made_up",
        {
            "parallel_tool_calls=False": "**({} if settings.temperature else"
            ' {"parallel_tool_calls": False})'
        },
    ),
    # --------------------------------------------------------------------- together
    Solution(
        "together",
        "two at a time",
        "not_together",
        {"ThreadPoolExecutor()": "ThreadPoolExecutor(2)"},
    ),
    Solution(
        "together",
        "results in reverse order",
        "call_order",
        {"reply.tool_calls))": "reply.tool_calls))[::-1]"},
    ),
    Solution(
        "together",
        "whichever is there first",
        "call_order",
        {
            "import ThreadPoolExecutor": "import ThreadPoolExecutor, as_completed",
            POOL: "    with ThreadPoolExecutor() as pool:\n"
            "        runs = [pool.submit(run, call) for call in reply.tool_calls]\n"
            "        return [each.result() for each in as_completed(runs)]\n",
        },
    ),
    Solution(
        "together",
        "a tool policy of its own",
        "failures",
        {
            'run_tool(call["name"], call["args"], tools, settings, call["id"])': ""
            'run_tool(call["name"], call["args"], tools, settings, call["id"])'
            "\n        content = content if ok else 'failed'"
        },
    ),
    Solution(
        "together",
        "past the tool policy",
        "raised",
        {
            'run_tool(call["name"], call["args"], tools, settings, call["id"])': "("
            'tools[call["name"]](**call["args"]), True)'
        },
    ),
    Solution("together", "a shorter budget", "not_the_same", {LOOP: "range(2)"}),
    # ------------------------------------------------------------------- async_twin
    Solution(
        "async_twin",
        "no arun_agent",
        "no_attribute",
        {"arun_agent": "answer_async"},
    ),
    Solution(
        "async_twin",
        "async in name alone",
        "not_async",
        {"await model.ainvoke(": "model.invoke("},
    ),
    Solution(
        "async_twin",
        "it forgets the conversation",
        "not_the_same",
        {
            "arun_agent(question, **more)": "arun_agent(question, **more | NONE)",
            "def run_agent": 'NONE = {"history": ()}\n\n\ndef run_agent',
        },
    ),
    # ------------------------------------------------------------------------ order
    Solution(
        "order",
        "results in reverse order",
        "not_the_same",
        {"tools(reply, tools, settings)": "tools(reply, tools, settings)[::-1]"},
    ),
    Solution(
        "order",
        "the last tools of the budget do not run",
        "budget",
        {
            f"for _ in {LOOP}": f"for step in {LOOP}",
            "if not wants_tools(reply):": "if not wants_tools(reply) or step =="
            " settings.max_steps - 1:",
        },
    ),
    Solution(
        "order",
        "no budget",
        "budget",
        {f"for _ in {LOOP}": "while True"},
    ),
    # ----------------------------------------------------------------------- window
    Solution(
        "window",
        "it drops from the front, and results without a call",
        "two_calls",
        {
            "def run_agent": "def window(messages):\n    kept = messages[-WINDOW:]\n"
            '    while kept[0].type == "tool":\n        kept = kept[1:]\n'
            "    return kept\n\n\ndef run_agent"
        },
    ),
    Solution(
        "window",
        "it cuts a call from its results",
        "two_calls",
        {
            "def run_agent": "def window(messages):\n    return messages[-WINDOW:]\n"
            "\n\ndef run_agent"
        },
    ),
    Solution(
        "window",
        "nothing but the question and the last call",
        "conversation",
        {KEPT: KEPT + "    return [m for i in sorted(kept) for m in rounds[i]]\n"},
    ),
    Solution(
        "window",
        "it cuts the conversation itself",
        "length",
        {
            "        reply = call_model(model, window(messages))": "        messages ="
            " window(messages)\n        reply = call_model(model, messages)"
        },
    ),
    # ----------------------------------------------------------------- dependencies
    Solution(
        "dependencies",
        "it looks at the calls before it alone",
        "guess_ran",
        {
            WAITS: '        calls = reply["tool_calls"]\n'
            "        calls = calls[: calls.index(call)]\n"
            '        before = {each["function"]["name"] for each in calls}'
            "\n        if missing := before & NEEDS.get(name, set()):\n"
        },
    ),
    Solution(
        "dependencies",
        "it does not say for what to wait",
        "not_told",
        {"Call it when you know {names}.": "Call it later."},
    ),
    Solution(
        "dependencies",
        "it refuses the whole turn",
        "others_refused",
        {
            WAITS: "        if missing := asked & set().union(*map(NEEDS.get, asked &"
            " NEEDS.keys())):\n"
        },
    ),
    Solution(
        "dependencies",
        "a tool once refused stays refused",
        "later_refused",
        {
            "def run_tools": "SEEN = set()\n\n\ndef run_tools",
            WAITS: "        SEEN.update(asked)\n        if missing := SEEN &"
            " NEEDS.get(name, set()):\n",
        },
    ),
    Solution(
        "dependencies",
        "no tool message for what did not run",
        "refused",
        {
            '    return [run(call) for call in reply["tool_calls"]]': "    results ="
            ' [run(call) for call in reply["tool_calls"]]\n    return [r for r in'
            ' results if "was not run" not in r["content"]]'
        },
    ),
    Solution(
        "dependencies",
        "any of the needed tools is waited for",
        "not_the_same",
        {
            "asked & NEEDS.get(name, set())": "(\n            asked & set().union("
            "*NEEDS.values()) if name in NEEDS else None\n        )"
        },
    ),
    # ------------------------------------------------------------------------ label
    Solution(
        "label",
        "every Answer: becomes Final Answer:",
        "not_the_same",
        {LABEL: '    text = re.sub("(?i)answer:", "Final Answer:", text)\n'},
    ),
    Solution(
        "label",
        "capital letters alone",
        "not_understood",
        {LABEL: '    text = text.replace("Answer:", "Final Answer:")\n'},
    ),
    Solution(
        "label",
        "a line of the answer becomes a label",
        "not_the_same",
        {LABEL: '    text = LABEL.sub("Final Answer:", text)\n'},
    ),
    Solution(
        "label",
        "any place in a line",
        "not_the_same",
        {'"^answer:"': '"answer:"'},
    ),
    # ------------------------------------------------------------------------ plant
    Solution(
        "plant",
        "another question",
        "requests_differ",
        {"HumanMessage(question)": 'HumanMessage(question + "?")'},
    ),
    Solution(
        "plant",
        "results in another order",
        "requests_differ",
        {"[::-1]": ""},
    ),
    Solution(
        "plant",
        "another answer",
        "answers_differ",
        {"    return mess": '    messages[-1].content += "!"\n    return mess'},
    ),
    Solution(
        "plant",
        "another result, which the model does not see",
        "wrong_cause",
        {
            "import TOOLS": "import TOOLS, get_weather",
            REVERSED: "return [run(call) for call in reply.tool_calls]",
            "        identity = {": '        if call["name"] == "get_weather":\n'
            "            run_tool('get_weather', {'city': 'Paris'}, tools, settings)\n"
            "        identity = {",
            'call["args"], tools, settings, call["id"])': 'call["args"],'
            ' {f.__name__: f for f in TOOLS}, settings, call["id"])',
        },
    ),
    Solution(
        "plant",
        "its own tools, not those it was offered",
        "not_the_same",
        {'call["args"], tools,': 'call["args"], by_name(TOOLS),'},
    ),
    # ---------------------------------------------------------------------- survive
    Solution(
        "survive",
        "it says nothing of what went wrong",
        "not_told",
        {IN_WORDS: 'return "Something went wrong."'},
    ),
    Solution(
        "survive",
        "the traceback as a result",
        "traceback",
        {
            IN_WORDS: 'return "".join(traceback.format_exception(error))',
            "import warnings": "import traceback\nimport warnings",
        },
    ),
    Solution(
        "survive",
        "the conversation so far is the result",
        "not_completed",
        {
            INVOKE: "    try:\n    "
            + INVOKE
            + "    except Exception:\n        return messages\n"
        },
        file="start",
    ),
    Solution(
        "survive",
        "one error for all calls of the turn",
        "sibling_lost",
        {
            "import HumanMessage": "import HumanMessage, ToolMessage",
            INVOKE: """    try:
        for state in graph.stream({"messages": messages}, stream_mode="values"):
            messages = state["messages"]
    except Exception as error:
        calls = messages[-1].tool_calls
        failed = [ToolMessage(f"{error}", tool_call_id=call["id"]) for call in calls]
        messages = graph.invoke({"messages": [*messages, *failed]})["messages"]
    return messages
""",
        },
        file="start",
    ),
    Solution(
        "survive",
        "another prompt",
        "not_the_same",
        {"prompt=SYSTEM_PROMPT": 'prompt="Answer."'},
    ),
    # --------------------------------------------------------------- any of them all
    Solution(
        "order",
        "a word too many",
        "cannot_import",
        {"def run_agent(": "def def run_agent("},
    ),
    Solution("order", "no agent", "no_attribute", {"def run_agent": "def agent"}),
    Solution(
        "order",
        "an answer without a model",
        "no_model_call",
        {
            "    settings = settings or": '    return [HumanMessage("!")]'
            "\n    settings = settings or"
        },
    ),
]

RIGHT = [
    Solution(
        "ask_a_person",
        "the call is printed, then input() without a prompt",
        "",
        {
            ALLOWED: "input().strip() == 'y'",
            "    return input()": "    print('May', call['name'], 'run with',"
            " call['args'], '?')\n    return input()",
        },
    ),
    Solution(
        "serial",
        "bind",
        "",
        {BIND: PLAIN + "        model = model.bind(parallel_tool_calls=False)\n"},
    ),
    Solution(
        "together",
        "the toolkit's map_calls",
        "",
        {
            "import by_name, run_tool": "import by_name, map_calls, run_tool",
            POOL: "    return map_calls(run, reply.tool_calls, 8)\n",
        },
    ),
    Solution(
        "async_twin",
        "a runner that is kept",
        "",
        {
            "asyncio.run_coroutine_threadsafe(work, the_loop()).result()": (
                "RUNNER.run(work)"
            ),
            "@cache\ndef the_loop": (
                "RUNNER = asyncio.Runner()\n\n\n@cache\ndef the_loop"
            ),
        },
    ),
    Solution(
        "survive",
        "the framework's own words",
        "",
        {"handle_tool_errors=in_words": "handle_tool_errors=True"},
    ),
    Solution(
        "plant",
        "sorted by the city",
        "",
        {
            REVERSED: "calls = sorted(reply.tool_calls, key=lambda c: str(c['args']))"
            "\n    results = {c['id']: run(c) for c in calls}\n"
            "    return [results[call['id']] for call in reply.tool_calls]"
        },
    ),
]

FAST = {
    ("return_direct", "it looks at the last message alone"),
    ("together", "results in reverse order"),
    ("window", "it drops from the front, and results without a call"),
    ("label", "every Answer: becomes Final Answer:"),
    ("label", "capital letters alone"),
}
"""What learners wrote and an earlier checker let pass. The others are slow together."""
