"""From what was seen on the wire and at the tools to steps, status and answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from equivalence.record import Run, Step
from tools import INVALID_ARGUMENTS

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
USUAL_ENDS = ("stop", "tool_calls", "function_call", "length", "content_filter")


@dataclass
class Execution:
    """One execution of a tool, seen from inside the call."""

    turn: int
    """Model calls answered before it."""
    order: int
    tool: str
    arguments: dict[str, Any]
    result: str | None = None
    ok: bool = False


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
    that no reply asked for on the wire, as text-ReAct agents make them."""
    left = list(executions or ())
    unseen = None if executions is None else False
    found: list[Step] = []
    turns = _text_turns if run.protocol == "text" else _turns
    for turn, raw, calls, results in turns(run, conversation):
        done = _executed(turn, calls, left)
        for index, call in enumerate(calls):
            written = raw[index] if len(raw) == len(calls) else call
            text = _written(written["arguments"])
            did = done.get(index)
            step = Step(
                turn=turn,
                tool=call["name"],
                arguments=_parsed(text),
                arguments_text=text,
                result=did.result if did else _result_for(call, index, results),
                ok=did.ok if did else unseen,
                order=did.order if did else None,
            )
            found.append(step)
    for did in left:
        text = _written(did.arguments)
        step = Step(
            did.turn, did.tool, did.arguments, text, did.result, did.ok, did.order
        )
        found.append(step)
    return sorted(found, key=lambda step: step.turn)


def status(run: Run, failure: str | None, conversation: Sequence[Message] = ()) -> str:
    """Return how the run ended, one of record.STATUSES. `failure` is "model_error" or
    "failed" where the implementation raised. What a text says is told by the last
    message that its implementation made of it."""
    if failure:
        return failure
    if not run.model_calls:
        return "failed"
    last = run.model_calls[-1]
    choice = first_choice(last["reply"])
    if last["status"] != 200 or choice is None:
        return "model_error"
    message, finish = choice["message"], choice.get("finish_reason")
    end = conversation[-1] if conversation and run.protocol == "text" else {}
    if tool_calls(last["reply"]) or end.get("role") in ("user", "tool"):
        spent = len(run.model_calls) >= run.settings.get("max_steps", 0)
        return "step_limit" if spent else "malformed"
    if finish == "content_filter" or message.get("refusal"):
        return "refused"
    if finish == "length":
        return "truncated"
    if not text_of(message.get("content")).strip():
        return "malformed" if finish and finish not in USUAL_ENDS else "empty"
    return "malformed" if "unreadable" in end or finish == "error" else "completed"


def answer(run: Run, conversation: Sequence[Message]) -> str:
    """Return the text for the user: the last assistant message of the conversation, or
    of the wire where nothing was returned; the refusal where there is one."""
    if run.status == "step_limit" or not run.model_calls:
        return ""
    choice = first_choice(run.model_calls[-1]["reply"])
    message = choice["message"] if choice else {}
    if run.status == "refused":
        return message.get("refusal") or text_of(message.get("content"))
    if conversation and conversation[-1].get("role") == "assistant":
        return text_of(conversation[-1].get("content"))
    return text_of(message.get("content"))


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
        if not UNREAD.isdisjoint(exchange["repairs"])
    ]


def warnings(run: Run) -> list[str]:
    """Return what a reader of the record should know: repairs, and repeated calls."""
    found = [
        f"model call {number}: the gateway repaired {', '.join(exchange['repairs'])}"
        for number, exchange in enumerate(run.model_calls, 1)
        if exchange["repairs"]
    ]
    asked = Counter((step.tool, _key(step.arguments)) for step in run.steps)
    for (tool, arguments), times in asked.items():
        if times > 2:
            found.append(f"{tool}({arguments}) was asked for {times} times")
    return found


def first_choice(reply: Any) -> dict[str, Any] | None:
    """Return the first choice of a chat completion, None where there is none."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict) and isinstance(choice.get("message"), dict):
        return choice
    return None


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


def _text_turns(run: Run, conversation: Sequence[Message]) -> Iterator[Turn]:
    """Each model call whose text became a message of the conversation."""
    for turn, message, results in _text_replies(run, conversation):
        calls = _calls_of(message)
        yield turn, calls, calls, results


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


def _turns(run: Run, conversation: Sequence[Message]) -> Iterator[Turn]:
    """Each model call; its tool messages are the end of the next request, or, after the
    last call, of the conversation that was returned."""
    calls = run.model_calls
    after = [exchange["request"].get("messages") or [] for exchange in calls[1:]]
    pairs = zip(calls, [*after, conversation], strict=False)
    for turn, (exchange, messages) in enumerate(pairs, 1):
        results: list[Message] = []
        for message in reversed(messages):
            if not isinstance(message, dict) or message.get("role") != "tool":
                break
            results.insert(0, message)
        raw = tool_calls(exchange.get("raw_reply", exchange["reply"]))
        yield turn, raw, tool_calls(exchange["reply"]), results


def _result_for(
    call: dict[str, Any], index: int, results: Sequence[Message]
) -> str | None:
    """The content of the tool message for the call: by id where that is plain, else by
    place."""
    fitting = [r for r in results if r.get("tool_call_id") == call["id"]]
    if len(fitting) != 1:
        fitting = list(results[index : index + 1])
    content = fitting[0].get("content") if fitting else None
    return content if content is None or isinstance(content, str) else text_of(content)


def _executed(
    turn: int, calls: Sequence[dict[str, Any]], left: list[Execution]
) -> dict[int, Execution]:
    """Take out the executions of the calls of one turn, by the calls' index. Which
    belongs to which is told by the arguments, as not every call was executed, and not
    in this order where they ran concurrently."""
    pairs = sorted(
        (
            (-_agreement(_parsed(call["arguments"]), did.arguments), index, did.order)
            for index, call in enumerate(calls)
            for did in left
            if did.turn == turn and did.tool == call["name"]
            if not _not_executed(call["arguments"])
        ),
    )
    by_order = {did.order: did for did in left}
    found: dict[int, Execution] = {}
    for _, index, order in pairs:
        if index not in found and order in by_order:
            found[index] = by_order.pop(order)
    left[:] = by_order.values()
    return found


def _agreement(sent: Any, executed: dict[str, Any]) -> int:
    """How many arguments were executed as sent, "2" as 2 too; -1 where those sent did
    not parse here."""
    if not isinstance(sent, dict):
        return -1
    return sum(
        name in sent and (sent[name] == value or str(sent[name]) == str(value))
        for name, value in executed.items()
    )


def _parsed(arguments: Any) -> Any:
    """The arguments as JSON, {} for none; the text itself where it is not JSON."""
    if arguments is None or arguments == "":
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
    return found
