"""For the commonest failures of an endpoint, what to do about them."""

from __future__ import annotations

HINTS = (  # words in the endpoint's error, in lower case; what to do
    (
        ("enable-auto-tool-choice", "tool-call-parser"),
        "vLLM refuses tools until it is started with --enable-auto-tool-choice"
        " --tool-call-parser: see docs/endpoints.md, vLLM.",
    ),
    (
        ("not support tools", "tools is not supported", "tools are not supported"),
        "Take a model that knows tools, or stage 5, which asks for them in text.",
    ),
    (
        ("enable_thinking",),
        "Add the field to every request:"
        " LLM_EXTRA_BODY='{\"enable_thinking\": false}'.",
    ),
    (
        ("reasoning_content",),
        "This server wants the reasoning back: set LLM_ECHO_REASONING=true.",
    ),
    (
        ("max_tokens", "max_completion_tokens"),
        "Servers differ in this name: set LLM_MAX_TOKENS_FIELD to the other one.",
    ),
    (
        ("the reply is not json",),
        "LLM_BASE_URL leads to something else than the API: most servers want it to"
        " end in /v1.",
    ),
    (("answered 401", "answered 403"), "Check LLM_API_KEY."),
    (
        ("answered 404",),
        "Check LLM_MODEL, and LLM_BASE_URL: most servers want it to end in /v1.",
    ),
    (("cannot reach",), "Is the server running? Check LLM_BASE_URL and the proxy."),
    (
        ("timed out", "no reply from"),
        "The server is too slow or stuck: raise LLM_TIMEOUT, or restart it.",
    ),
)


def hint(error: str | None) -> str | None:
    """Return what to do about the error of a run, None where nothing is known."""
    text = (error or "").lower()
    for words, advice in HINTS:
        if any(word in text for word in words):
            return advice
    return None
