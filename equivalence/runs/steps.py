"""From what was seen on the wire and at the tools to steps, status and answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from equivalence.gateway.exchange import Exchange
from equivalence.gateway.repairs import INVALID_ARGUMENTS, offered_names
from equivalence.gateway.shapes import first_choice, split_thinking
from equivalence.gateway.streaming import INCOMPLETE
from equivalence.gateway.text_calls import looks_like_call
from equivalence.runs.record import Run, Step

Message = dict[str, Any]

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
UNREAD = frozenset(
    (
        "text_tool_call",
        "tool_call_shape",
        "double_encoded_arguments",
        "control_characters",
        "invalid_arguments",
        "cut_off_call",
    )
)
"""The gateway's repairs of what a model wrote; the others are of what a server did."""
ANNOUNCE_CALLS = ("tool_calls", "function_call")
USUAL_ENDS = ("stop", "tool_calls", "function_call", "length", "content_filter")


@dataclass
class Execution:
    """One execution of a tool, seen from outside the tool."""

    tool: str
    arguments: dict[str, Any]
    turn: int
    """Model calls that had been answered before it."""
    began: float
    """Milliseconds since the run began, as is `ended`."""
    ended: float = float("inf")
    worker: tuple[Any, Any] = (None, None)
    """The thread and the asyncio task it ran in."""
    call_id: str | None = None
    """Of the call it was made for, where the implementation's policy tells."""
    returned: str | None = None
    """What the tool gave back: a text, or the JSON of a plain value; None for anything
    else, of which nothing is the same in another process."""
    json: bool = False
    """Whether that is the JSON of another value than a text."""
    raised: str | None = None
    """The exception, where it raised one: "ValueError: no such city"."""
    ok: bool = False

    def wrote(self, content: str) -> bool:
        """Whether the content of a tool message is what came of this execution: whole,
        or as long as it goes where it was cut."""
        if self.raised is not None:
            kind, _, words = self.raised.partition(": ")
            return (words or kind) in content
        text = self.returned
        return text is not None and (
            text == content or (len(text) > 200 and text[:200] == content[:200])
        )


@dataclass
class _Call:
    """A tool call of a reply, and what was seen of it."""

    turn: int
    identifier: Any
    name: str
    written: str
    """Its arguments as the model wrote them."""
    passed_on: Any
    """Its arguments as the implementation got them."""
    content: str | None
    """The content of the tool message that answered it; None where none was seen."""
    execution: Execution | None = None

    @property
    def executable(self) -> bool:
        return not _not_executed(self.passed_on)


def as_messages(conversation: Sequence[Any]) -> list[Message]:
    """Return the conversation as dicts with role, content and tool_call_id, whether its
    messages are dicts or LangChain's objects."""
    return [
        message if isinstance(message, dict) else _from_langchain(message)
        for message in conversation
    ]


def steps(
    run: Run, conversation: Sequence[Message], executions: Sequence[Execution] | None
) -> list[Step]:
    """Return one step for each tool call of each reply, in order; then the executions
    that no reply asked for on the wire, as text-ReAct agents make them. `executions`
    None: the tools could not be watched."""
    calls = [
        _call(turn, call, raw[index] if len(raw) == len(asked) else call, index, tools)
        for turn, raw, asked, tools in _turns(run, conversation)
        for index, call in enumerate(asked)
    ]
    left = sorted(executions or (), key=lambda execution: execution.began)
    order = {id(execution): place for place, execution in enumerate(left)}
    beside = _overlapping(left)
    unasked = _match(calls, left)
    beside |= _apart(calls)
    found = [
        _step(call, call.execution, order, beside, executions is not None)
        for call in calls
    ]
    for execution in unasked:
        written = json.dumps(execution.arguments, ensure_ascii=False, default=str)
        turn = execution.turn
        call = _Call(turn, None, execution.tool, written, execution.arguments, None)
        found.append(_step(call, execution, order, beside, True))
    return sorted(found, key=lambda step: step.turn)


def _call(
    turn: int, call: Message, raw: Message, index: int, tools: Sequence[Message]
) -> _Call:
    written = _written(raw["arguments"])
    content = _content_for(call, index, tools)
    return _Call(turn, call["id"], call["name"], written, call["arguments"], content)


def _step(
    call: _Call,
    execution: Execution | None,
    order: dict[int, int],
    beside: set[int],
    watched: bool,
) -> Step:
    step = Step(
        turn=call.turn,
        tool=call.name,
        arguments=_parsed(call.passed_on if call.executable else call.written),
        arguments_text=call.written,
        result=call.content,
        ok=False if watched else None,
    )
    if execution:
        step.ok = execution.ok
        step.order = order[id(execution)]
        step.concurrent = id(execution) in beside
        returned = execution.returned if execution.raised is None else execution.raised
        if step.result is None and execution.raised is None:
            step.result = returned
        elif returned != step.result:
            step.returned = returned
        step.returned_json = execution.json
    return step


def _match(calls: Sequence[_Call], executions: Sequence[Execution]) -> list[Execution]:
    """Give each execution to the call that it was made for; return those left over.

    A call and its execution are the same by the id, where the policy tells it, else by
    what came of it: the tool message that answers the call. Arguments decide only among
    those: validation may change them. Of calls alike in all that, the first is taken.
    """
    pairs = []
    for place, execution in enumerate(executions):
        for index, call in enumerate(calls):
            if call.name != execution.tool or not call.executable:
                continue
            if call.turn > execution.turn:  # also by id: a server may repeat its ids
                continue
            if execution.call_id not in (None, call.identifier):
                continue
            wrote = call.content is not None and execution.wrote(call.content)
            agreement = _agreement(_parsed(call.written), execution.arguments)
            rank = (not wrote, -call.turn, -agreement, index, place)
            pairs.append((rank, call, execution))
    taken: set[int] = set()
    for _, call, execution in sorted(pairs, key=lambda pair: pair[0]):
        if call.execution is None and id(execution) not in taken:
            call.execution = execution
            taken.add(id(execution))
    return [execution for execution in executions if id(execution) not in taken]


def _overlapping(executions: Sequence[Execution]) -> set[int]:
    """The ids of the executions that another one overlapped; they are in the order in
    which they began."""
    found: set[int] = set()
    latest: Execution | None = None
    for execution in executions:
        if latest and execution.began < latest.ended:
            found |= {id(latest), id(execution)}
        if latest is None or execution.ended > latest.ended:
            latest = execution
    return found


def _apart(calls: Sequence[_Call]) -> set[int]:
    """The ids of the executions of turns that ran on several threads or tasks."""
    turns: dict[int, list[Execution]] = {}
    for call in calls:
        if call.execution:
            turns.setdefault(call.turn, []).append(call.execution)
    return {
        id(execution)
        for together in turns.values()
        if len({execution.worker for execution in together}) > 1
        for execution in together
    }


def status(
    run: Run,
    failure: str | None,
    conversation: Sequence[Message] = (),
    *,
    final_tool: str = "",
    offered: Collection[str] | None = None,
) -> str:
    """Return how the run ended, one of record.STATUSES. `failure` is "model_error" or
    "failed" where the implementation raised. `final_tool`: the tool by whose call the
    implementation answers; `offered`: the names of the watched tools, None where they
    could not be watched.

    What a text says is told by the last message that its implementation made of it. A
    last reply with a tool call is an answer only where the implementation's own
    protocol makes it one: by its final tool, or by a tool of its own that it has
    answered itself.
    """
    if failure:
        return failure
    if not run.model_calls:
        return "failed"
    last = run.model_calls[-1]
    choice = first_choice(last.reply)
    if last.status != 200 or choice is None:
        return "model_error"
    message, finish = choice["message"], choice.get("finish_reason")
    end = conversation[-1] if conversation else {}
    spent = len(run.model_calls) >= run.settings.get("max_steps", 0)
    if run.protocol == "text":
        if end.get("role") in ("user", "tool"):
            return "step_limit" if spent else "malformed"
    elif names := [call["name"] for call in tool_calls(last.reply)]:
        if final_tool in names:
            return "completed"
        if spent:
            return "step_limit"
        own = offered is None or not set(names) & set(offered)
        return "completed" if own and _own_ending(end, message) else "malformed"
    if finish == "content_filter" or message.get("refusal"):
        return "refused"
    if finish in ("length", INCOMPLETE):
        return "truncated"
    text = text_of(message.get("content"))
    if not text.strip():
        return "malformed" if finish and finish not in USUAL_ENDS else "empty"
    if run.protocol != "text" and _like_a_call(last.request, text):
        return "unparsed_call"
    announced = finish in ANNOUNCE_CALLS and "unoffered_tool_call" not in last.repairs
    if run.protocol != "text" and announced:
        return "malformed"  # it contradicts itself
    return "malformed" if "unreadable" in end or finish == "error" else "completed"


def _like_a_call(request: Message, text: str) -> bool:
    rest, _ = split_thinking(text)  # where nothing was repaired it is still there
    return looks_like_call(rest, offered_names(request))


def _own_ending(end: Message, reply: Message) -> bool:
    """Whether the last message of the conversation is an ending of its own: a text, no
    error, and not the reply itself."""
    text = text_of(end.get("content")).strip()
    same = end.get("role") == "assistant" and text == text_of(reply.get("content"))
    return bool(text) and not same and end.get("status") != "error"


def answer(run: Run, conversation: Sequence[Message], final_tool: str = "") -> str:
    """Return the text for the user: the last message of the conversation, or of the
    wire where nothing was returned; the refusal where there is one; what the final tool
    was called with."""
    if run.status == "step_limit" or not run.model_calls:
        return ""
    reply = run.model_calls[-1].reply
    choice = first_choice(reply)
    message = choice["message"] if choice else {}
    if run.status == "refused":
        return message.get("refusal") or text_of(message.get("content"))
    calls = tool_calls(reply) if run.protocol == "tool_calls" else []
    for call in calls:
        if call["name"] == final_tool:
            return _told(_parsed(call["arguments"]))
    end = conversation[-1] if conversation else {}
    if end.get("role") == "assistant" or (calls and run.status == "completed"):
        return text_of(end.get("content"))
    return text_of(message.get("content"))


def _told(arguments: Any) -> str:
    """The one text among the arguments, else all of them as JSON."""
    if isinstance(arguments, dict) and len(arguments) == 1:
        (arguments,) = arguments.values()
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False)


def unread(run: Run, conversation: Sequence[Message]) -> list[int]:
    """Return the model calls whose reply could not be read as the model wrote it: by
    the gateway, which repaired it, or by the parser of an implementation in text."""
    if run.protocol == "text":
        return [
            turn
            for turn, message, _ in _text_replies(run, conversation)
            if "unreadable" in message
            or any(_not_executed(call["arguments"]) for call in _calls_of(message))
        ]
    return [
        turn
        for turn, exchange in enumerate(run.model_calls, 1)
        if not UNREAD.isdisjoint(exchange.repairs)
    ]


def warnings(run: Run) -> list[str]:
    """Return what a reader of the record should know: repairs, and repeated calls."""
    found = [
        f"model call {number}: the gateway repaired {', '.join(exchange.repairs)}"
        for number, exchange in enumerate(run.model_calls, 1)
        if exchange.repairs
    ]
    if run.status == "unparsed_call" and run.model_calls:
        begins = " ".join(run.answer.split())[:100]
        found.append(f"the last reply looks like a tool call: {begins!r}")
    asked = Counter((step.tool, _key(step.arguments)) for step in run.steps)
    for (tool, arguments), times in asked.items():
        if times > 2:
            found.append(f"{tool}({arguments}) was asked for {times} times")
    return found


def tool_calls(reply: Any) -> list[dict[str, Any]]:
    """Return the tool calls of a reply as {"id", "name", "arguments"}, as sent."""
    choice = first_choice(reply)
    calls = choice["message"].get("tool_calls") if choice else None
    found = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name, arguments = str(function.get("name")), function.get("arguments")
            found.append({"id": call.get("id"), "name": name, "arguments": arguments})
    return found


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, or blocks of text joined."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = [
        block.get("text") if isinstance(block, dict) else block for block in blocks
    ]
    return "".join(text for text in texts if isinstance(text, str))


Turn = tuple[int, list[dict[str, Any]], list[dict[str, Any]], list[Message]]
"""A model call by its number: the tool calls as the model wrote them, the same as they
were passed on, and the tool messages that came of them."""


def _turns(run: Run, conversation: Sequence[Message]) -> Iterator[Turn]:
    """Each model call with the tool messages that came of it: those that the request
    which continues it adds, or, after the last one, the conversation."""
    if run.protocol == "text":
        for turn, message, results in _text_replies(run, conversation):
            calls = _calls_of(message)
            yield turn, calls, calls, results
        return
    model_calls = run.model_calls
    for index, exchange in enumerate(model_calls):
        asked = tool_calls(exchange.reply)
        added = _added(model_calls, index, conversation) if asked else []
        results = [message for message in added if message.get("role") == "tool"]
        yield index + 1, tool_calls(exchange.raw_reply), asked, results


def _added(
    model_calls: Sequence[Exchange], index: int, conversation: Sequence[Message]
) -> list[Message]:
    """The messages that the next request of the same conversation adds."""
    said = _messages(model_calls[index])
    for later in model_calls[index + 1 :]:
        messages = _messages(later)
        if len(messages) > len(said) and messages[: len(said)] == said:
            return messages[len(said) :]
    following = model_calls[index + 1 : index + 2]  # one that has rewritten its history
    messages = _messages(following[0]) if following else list(conversation)
    results: list[Message] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        results.insert(0, message)
    return results


def _messages(exchange: Exchange) -> list[Message]:
    messages = exchange.request.get("messages")
    return [each for each in messages or () if isinstance(each, dict)]


def _text_replies(
    run: Run, conversation: Sequence[Message]
) -> Iterator[tuple[int, Message, list[Message]]]:
    """The messages that the implementation made of the replies, each with its model
    call and its tool messages. The model calls before the first of these served
    something else, such as a summary."""
    replies: list[tuple[Message, list[Message]]] = []
    for message in () if run.error else conversation:
        if message.get("role") == "user" and "unreadable" not in message:
            replies = []
        elif message.get("role") == "assistant":
            replies.append((message, []))
        elif message.get("role") == "tool" and replies:
            replies[-1][1].append(message)
    first = len(run.model_calls) - len(replies) + 1
    for turn, (message, results) in enumerate(replies, first):
        yield turn, message, results


def _calls_of(message: Message) -> list[dict[str, Any]]:
    return tool_calls({"choices": [{"message": message}]})


def _content_for(
    call: dict[str, Any], index: int, results: Sequence[Message]
) -> str | None:
    """The content of the tool message for the call: by id where that is plain, else by
    place."""
    fitting = [r for r in results if r.get("tool_call_id") == call["id"]]
    if len(fitting) != 1:
        fitting = list(results[index : index + 1])
    content = fitting[0].get("content") if fitting else None
    return content if content is None or isinstance(content, str) else text_of(content)


def _agreement(sent: Any, executed: dict[str, Any]) -> int:
    """How many arguments were executed as sent, "2" as 2 too; -1 where those sent did
    not parse here."""
    if not isinstance(sent, dict):
        return -1
    return sum(
        name in sent and _same(sent[name], value) for name, value in executed.items()
    )


def _same(sent: Any, executed: Any) -> bool:
    try:
        return bool(sent == executed) or str(sent) == str(executed)
    except Exception:  # a value of the user's may raise at anything
        return False


def _parsed(arguments: Any) -> Any:
    """The arguments as JSON; {} for none, for blanks and for null, which are run so;
    the text itself where it is not JSON."""
    if arguments is None or (
        isinstance(arguments, str) and arguments.strip() in ("", "null")
    ):
        return {}
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _written(arguments: Any) -> str:
    """The arguments as the model wrote them, also where the gateway passed them on as
    not to be executed."""
    if isinstance(arguments, str):
        if _not_executed(arguments):
            return str(_parsed(arguments)[INVALID_ARGUMENTS])
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _not_executed(arguments: Any) -> bool:
    """Whether the arguments were passed on as not to be executed."""
    parsed = _parsed(arguments)
    return isinstance(parsed, dict) and parsed.keys() == {INVALID_ARGUMENTS, "reason"}


def _key(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)


def _from_langchain(message: Any) -> Message:
    role = ROLES.get(getattr(message, "type", ""), "")
    found: Message = {"role": role, "content": getattr(message, "content", None)}
    if role == "tool":
        found["tool_call_id"] = getattr(message, "tool_call_id", None)
        found["status"] = getattr(message, "status", None)
    return found
