"""For the commonest failures of an endpoint, what to do about them."""

from __future__ import annotations

from equivalence.language import N_, _

HINTS = (  # words in the error of a run, in lower case; what to do
    (
        ("enable-auto-tool-choice", "tool-call-parser"),
        N_(
            "vLLM refuses tools until it is started with --enable-auto-tool-choice"
            " --tool-call-parser: see docs/endpoints.md, vLLM."
        ),
    ),
    (
        ("not support tools", "tools is not supported", "tools are not supported")
        + ("tool use is not supp",),
        N_(
            "This model has no tool calls: take another one, or stage 5, which needs"
            " none."
        ),
    ),
    (
        ("enable_thinking",),
        N_(
            "Add the field to every request:"
            " LLM_EXTRA_BODY='{\"enable_thinking\": false}'."
        ),
    ),
    (
        ("thought_signature", "extra_content"),
        N_(
            "This server wants back what it attached to its calls: LLM_ECHO_ATTACHED"
            " must be true, as it is by default, and nothing may stand between."
        ),
    ),
    (
        ("reasoning",),
        N_("This server wants the reasoning back: set LLM_ECHO_REASONING=true."),
    ),
    (
        ("max_tokens", "max_completion_tokens"),
        N_("Servers differ in this name: set LLM_MAX_TOKENS_FIELD to the other one."),
    ),
    (
        ("'stop'", '"stop"', "parameter: stop", "`stop`"),
        N_(
            "This server takes no stop: LLM_EXTRA_BODY='{\"stop\": null}' leaves it"
            " out."
        ),
    ),
    (
        ("unsupported parameter", "unsupported value", "unrecognized request argument")
        + ("extra inputs",),
        N_("Leave the field out: LLM_EXTRA_BODY='{\"FIELD\": null}'."),
    ),
    (
        ("insufficient_quota", "exceeded your current quota", "billing", "balance")
        + ("credit", "欠费", "余额"),
        N_("The account has no credit left: waiting does not help."),
    ),
    (
        ("answered 429", "rate limit", "too many requests"),
        N_("Too many requests for this account: wait a little, or raise LLM_RETRIES."),
    ),
    (
        ("answered 503", "answered 529", "loading model", "overloaded"),
        N_(
            "The server is still loading, or has too much to do: wait a little, then"
            " ask again."
        ),
    ),
    (
        ("answered 401", "answered 403", "no header can carry"),
        N_("Check LLM_API_KEY."),
    ),
    (
        ("<html", "<!doctype", "the reply is not json"),
        N_(
            "That is a web page, not an API: check LLM_BASE_URL, which mostly ends"
            " in /v1, and the proxy."
        ),
    ),
    (
        ("context length", "context_length"),
        N_("Shorten the question, or raise the limit."),
    ),
    (("has moved to",), N_("Set LLM_BASE_URL to the new address.")),
    (
        ("answered 404",),
        N_("Check LLM_MODEL, and LLM_BASE_URL: most servers want it to end in /v1."),
    ),
    (
        ("certificate",),
        N_(
            "Set SSL_CERT_FILE to the authority that signed it; a proxy may have its"
            " own."
        ),
    ),
    (("cannot reach",), N_("Is the server running? Check LLM_BASE_URL and the proxy.")),
    (("broke off",), N_("The server or something between went away: look at its log.")),
    (
        ("timed out", "no reply from"),
        N_("The server is too slow or stuck: raise LLM_TIMEOUT, or restart it."),
    ),
)


def hint(error: str | None) -> str | None:
    """Return what to do about the error of a run, None where nothing is known."""
    text = (error or "").lower()
    for words, advice in HINTS:
        if any(word in text for word in words):
            return _(advice)
    return None
