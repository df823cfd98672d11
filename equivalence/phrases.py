"""English sentences that were not written for whoever reads them now.

A record does not depend on who reads it: what the gateway and the observer write into
one is English. So are the words of libraries. Where such a text is shown to people, it
is told again in their language, as far as it is one of these sentences.
"""

from __future__ import annotations

import functools
import re

from equivalence.language import N_, _, language

RECORDED = (
    # the end of a run
    N_("the endpoint failed {count} runs in a row, the last one with: {error}"),
    N_("the endpoint answered {status}: {error}"),
    N_("the endpoint failed: {error}"),
    N_("it ended the program: {error}"),
    N_(
        "no model call came through the gateway: the agent must take its base URL from"
        " settings.gateway_url, base_url or $OPENAI_BASE_URL"
    ),
    N_(
        "it returned {kind} at place {number} of its list, which is no message:"
        " neither a dict with a role nor a message of LangChain's"
    ),
    N_("it returned a {kind}, not a list of messages"),
    N_("it returned an {kind}, not a list of messages"),
    N_("it returned {kind}, not a list of messages"),
    N_("a command answers single questions, no follow-ups"),
    N_("CommandFailed: no end within {seconds} s"),
    N_("CommandFailed: cannot start {command}: {reason}"),
    N_("CommandFailed: ended with {code}: {words}"),
    # the gateway, which cannot get a reply
    N_("the key holds characters that no header can carry: check LLM_API_KEY"),
    N_("cannot reach {endpoint}: {reason}"),
    N_("the reply of {endpoint} is larger than {size} MB"),
    N_("the reply of {endpoint} broke off: {reason}"),
    N_("{endpoint} answered {status}, which is no status of HTTP"),
    N_("{endpoint} has moved to {place}: set LLM_BASE_URL"),
    N_(
        "the proxy {proxy} is of a kind that is not spoken here: set"
        " {variable}_PROXY to an http:// proxy, or NO_PROXY={host}"
    ),
    N_("no host is known by the name {host}"),
    N_("its certificate is not trusted: {reason}"),
    N_("this is not an address"),
    N_("connection refused"),
    N_("connection reset"),
    N_("connection timed out"),
    N_("it does not speak TLS: is it http://, not https://?"),
    N_("it hung up without a word"),
    N_("the connection ended before it did"),
    N_("the proxy refused: {reason}"),
    N_("what came back is not HTTP"),
    N_("no reply from {endpoint} within {seconds} s"),
    # … or no use of it
    N_("the model's server answered {status}, but {problem}"),
    N_("the reply is not JSON: {start}"),
    N_("the reply is not a JSON object"),
    N_("the server reported an error: {error}"),
    N_("the reply has no choices"),
    N_("the reply's first choice has no message"),
    N_("{place} is {value}, not a list of tool calls"),
    N_("{place} is {value}, which is no tool call"),
    N_("the reply is not usable: {reason}"),
    N_("the request is refused: {reason}"),
    N_("it is nested more than {depth} levels deep"),
    # what an implementation costs
    N_("the time was out (--seconds)"),
    N_("it made {made} model calls of {calls}"),
    N_("{folder} is no environment"),
    N_("{module} is not installed"),
    # … or none of the request
    N_("no run is open at this address, so this request is nobody's"),
    N_("two runs share this address, so this request is nobody's"),
    N_("no run is open at this address: it has ended, or never was"),
    N_("the run has ended"),
    N_("send a JSON object as application/json"),
    N_("the gateway itself failed, {error}"),
    # a recording that has no answer
    N_("no model call is recorded here"),
    N_(
        "model call {number} is not in the recording, which ends after model call"
        " {count}: {path} differs from model call {nearest}: recorded {recorded}, sent"
        " {sent}"
    ),
    N_(
        "model call {number} is not in the recording: {path} differs from model call"
        " {nearest}: recorded {recorded}, sent {sent}"
    ),
    N_(
        "model call {number} is not in the recording, which ends after model call"
        " {count} with this same request"
    ),
    N_("model call {number} is not in the recording with this same request"),
    N_("the call {call} is not in the recording"),
    # warnings; of those with several parts the last part comes first
    N_("model call {number}: the gateway repaired {repairs}"),
    N_("the last reply looks like a tool call: {begins}"),
    N_("{call} was asked for {times} times"),
    N_("turn {number}, {tool}: {words}"),
    N_("{words}; what came of it, {result}, is not in the answer"),
    N_("{words}; what came of it, {result}, is in the answer"),
    N_("{words}; in turn {turn} the tool was called again with nothing made up"),
    N_("{words}; other results came in turn {turn}"),
    # a divergence in the control flow
    N_("model call {number}, {path}"),
    N_("model call {number}"),
    N_("{tool} executed"),
    N_("not executed"),
    N_("executed"),
    N_("nothing"),
    # a number
    N_("{number} was made up: in no question and no earlier result"),
    N_("{numbers} were made up: in no question and no earlier result"),
)
"""What this package writes into records, from the outermost sentence to the parts."""

PROBED = (
    N_("{count} were not enough"),
    N_("the server answers"),
    N_("Set LLM_MODEL to a model of the server: {names}."),
    N_("{names} and {count} more"),
    N_("accepted"),
    N_("none was given, none is needed"),
    N_("known to the server"),
    N_("the server takes the name {model}, and lists {names}"),
    N_("answers; no list of models to check (/models answered {status})"),
    N_("answers; no list of models to check"),
    N_("the server does not tell it"),
    N_("Start the server with a longer context, or set LLM_TOOL_RESULT_LIMIT lower."),
    N_("{length} tokens, few"),
    N_("{length} tokens"),
    N_(
        "The server or the model has no tool calling: take another model, or the"
        " agents that ask for tools in text."
    ),
    N_("of {name}, which nobody offered, in {count} of {total} tries"),
    N_("of {name}, which nobody offered"),
    N_("as text, {form}; the gateway makes calls of it: {text}"),
    N_(
        "Leave LLM_REPAIR on; better: let the server parse the calls (its tool-call"
        " parser or chat template)."
    ),
    N_("structured, in {count} of {total} tries"),
    N_("structured"),
    N_("as text, {form}, which the gateway does not read: {text}"),
    N_("Let the server parse the calls: its tool-call parser must fit the model."),
    N_("Raise LLM_MAX_TOKENS, or switch the thinking off: docs/endpoints.md."),
    N_("it thought, and then said nothing (ended as {ended})"),
    N_("it said nothing (ended as {ended})"),
    N_("none: it answered without the tool: {text}"),
    N_(
        "The chat template may not know tools: take the model's own template, or"
        " another model."
    ),
    N_("understood: the answer is made from it"),
    N_("it asked for the same tool again"),
    N_(
        "Runs may end at the step limit: keep LLM_MAX_STEPS small, or take another"
        " model."
    ),
    N_("the answer is not made from it: {text}"),
    N_("no call for two cities"),
    N_("no: one call a turn"),
    N_("{count} in one turn"),
    N_("{forms}; the gateway repairs it"),
    N_("{forms}; the gateway makes them up"),
    N_("{forms}; {count} were used before"),
    N_("{forms}; all {count} differ"),
    N_("JSON text"),
    N_("missing"),
    N_("an object, not JSON text"),
    N_("not valid JSON"),
    N_("JSON text inside JSON text"),
    N_("JSON, but no object"),
    N_("a UUID"),
    N_("a number"),
    N_("{length} letters and digits"),
    N_("of a form of its own"),
    N_("with calls: {calls}; without: {others}"),
    N_("with calls: {calls}"),
    N_("without: {others}"),
    N_("{places}; the server wants it back"),
    N_("{places}; it is not wanted back"),
    N_("none"),
    N_("in the field {name}"),
    N_("in a block at the beginning of the text"),
    N_("Leave LLM_STREAM off."),
    N_("no: the reply comes whole"),
    N_("with structured calls"),
    N_("calls come as text here"),
    N_("no call came in it"),
    N_("try {number} of {total} failed: {error}"),
    N_("not repeatable: {kinds} different replies in {count} later tries"),
    N_("Differences between runs may be the model's: use drift, or --repeats."),
    N_(
        "the first reply differs from the {count} later ones, which are equal: a"
        " prompt cache that was cold"
    ),
    N_("Switch the server's prompt cache off where runs are compared."),
    N_("repeatable: {count} equal replies"),
    N_("it does not keep to the format: {text}"),
    N_("the format is kept; `stop` is ignored"),
    N_("the format is kept"),
    N_("in a {mark} fence"),
    N_("in <{mark}>"),
    N_("in [{mark}]"),
    N_("as bare JSON"),
    N_("as plain text"),
    N_("reachable"),
    N_("key"),
    N_("model"),
    N_("context length"),
    N_("tool calls"),
    N_("tool result"),
    N_("parallel calls"),
    N_("arguments"),
    N_("ids"),
    N_("finish reasons"),
    N_("thinking"),
    N_("streaming"),
    N_("temperature 0"),
    N_("repeatable"),
    N_("text agents"),
    N_("request"),
    N_("requests"),
)
"""What a probe finds: its --json document is the same for all."""

JUDGED = (
    N_("it ended as {status}"),
    N_("question {number}: {reason}"),
    N_("{call} was called, where no tool is needed"),
    N_("{call} was called before {words} had answered"),
    N_("{call} was not called"),
    N_("the answer lacks {expected}"),
    N_("the answer says {words}"),
    N_("its model asks for tools in text"),
    N_("a command brings its own tools"),
    N_("a command answers single questions"),
    N_("it takes no tools, and here there are to be none"),
    N_("it takes no tools"),
    N_("it takes no history"),
    N_("it shows what clients make of an unrepaired reply, and nothing is right"),
    N_("it cannot be told {names}"),
    N_("it did not look at the tools it was given"),
    N_("it sent no request: {error}"),
    N_("sent: {part} is not in {text}"),
    N_("not_sent: {part} is sent"),
    N_("the strict server refused: {refusal}"),
    N_("executed out of order: {order}"),
    N_("results: {count} tool messages, not {wanted}"),
    N_("results: {part} is not in {text}"),
    N_("warnings: {part} is not in {text}"),
    N_("error: {part} is not in {text}"),
    N_("status: {found}, not {wanted}"),
    N_("answer: {found}, not {wanted}"),
    N_("requests: {found}, not {wanted}"),
    N_("steps: {found}, not {wanted}"),
    N_("echoed: {found}, not {wanted}"),
    N_("told: the model reads {found}, not {wanted}"),
    N_("sampled {count} times, seed 0"),
    N_(
        "what a path of redact took out stands in {count} other texts of this record"
        " too: a pattern reaches those"
    ),
)
"""What a case or a scenario finds wrong, in documents too."""

FOREIGN = (
    # the operating system
    N_("No such file or directory"),
    N_("Permission denied"),
    N_("Is a directory"),
    N_("Not a directory"),
    N_("File exists"),
    N_("No space left on device"),
    N_("Address already in use"),
    # pydantic, of a setting
    N_("Input should be a valid integer, unable to parse string as an integer"),
    N_("Input should be a valid number, unable to parse string as a number"),
    N_("Input should be a valid boolean, unable to interpret input"),
    N_("Input should be a valid dictionary"),
    N_("Input should be a finite number"),
    N_("Input should be a valid datetime or date, {reason}"),
    N_("Input should be greater than or equal to {limit}"),
    N_("Input should be greater than {limit}"),
    N_("Input should be less than or equal to {limit}"),
    N_("Input should be less than {limit}"),
    N_("Input should be {choices}"),
    # msgspec, of a table or a record
    N_("Expected `{wanted}`, got `{found}` - at `{place}`"),
    N_("Expected `{wanted}`, got `{found}`"),
    N_("Object missing required field `{field}` - at `{place}`"),
    N_("Object missing required field `{field}`"),
    N_("The table missing required field `{field}`"),
    N_("The table contains unknown field `{field}`"),
    # Python
    N_("could not convert string to float: {value}"),
)
"""What libraries say most often of what a user wrote."""


def translated(text: str | None) -> str:
    """Return the text in the language of whoever reads it, as far as it is made of
    these sentences; a server's own words stay as they are."""
    if language() == "en" or not text:
        return text or ""
    for phrase, pattern in _patterns():
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            return _(phrase).format(**{k: translated(v) for k, v in parts.items()})
    return text


@functools.cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    found = []
    phrases = (*RECORDED, *FOREIGN, *PROBED, *JUDGED)
    # What has no {place} comes first: "not executed" is no tool that was executed.
    for phrase in sorted(phrases, key=lambda one: "{" in one):
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(phrase))
        found.append((phrase, re.compile(pattern, re.DOTALL)))
    return found
