"""The prompt, the settings, and the clients: ChatOpenAI and the bare openai one.

Without LLM_BASE_URL the offline model answers. Importing this module reads nothing and
starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from equivalence.settings import LOOPBACK, Settings, load_settings
from toolkit import chinese

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

    from equivalence.gateway import Gateway
    from toolkit.client import Client

__all__ = [
    "PROMPT_LANGUAGE",
    "SYSTEM_PROMPT",
    "Settings",
    "chat_model",
    "load_settings",
    "openai_model",
]

PROMPT_LANGUAGE = "zh" if os.environ.get("LLM_PROMPT_LANG", "")[:2] == "zh" else "en"
"""The language of what the model reads, whoever reads the screen: English, or Chinese
with LLM_PROMPT_LANG=zh. It is taken from the environment, not from .env, when this
module is imported: the prompt is a constant of the stages. The requests show it."""

_ENGLISH = (
    "You are a careful assistant. Use the tools for weather, time, share prices,"
    " arithmetic and unit conversion. Never make up a value that a tool can give; if a"
    " call needs the result of another, wait for it. When you have every result you"
    " need, answer the question in one sentence without calling a tool, in the language"
    " of the question."
)
SYSTEM_PROMPT = chinese.PROMPT if PROMPT_LANGUAGE == "zh" else _ENGLISH

GRACE = 5.0
"""Seconds that clients wait longer than the gateway, which alone keeps the time limit:
so its words are what people read."""


NO_RULES = "any model"
"""What ChatOpenAI takes for the model's name; the real one takes its place in the
request. For o3-mini, gpt-5 and others it would change roles, temperature or API."""


def make_gateway(settings: Settings) -> Gateway:
    """Return a gateway, not started yet, in front of the model the settings name."""
    from equivalence.runs.upstreams import http_upstream, new_gateway
    from offline_model import OfflineModel

    endpoint = http_upstream(settings) if settings.base_url else OfflineModel()
    return new_gateway(settings, endpoint)


def wire_url(settings: Settings) -> str:
    """Return the base URL an implementation talks to: always a gateway on loopback,
    started here, once for its settings, when the settings name none."""
    _bypass_proxies_on_loopback()
    if settings.gateway_url:
        return settings.gateway_url
    depends_on = (
        "base_url",
        "api_key",
        "timeout",
        "repair",
        "echo_reasoning",
        "echo_attached",
        "upstream_api",
    )
    key = tuple(getattr(settings, name) for name in depends_on)
    with _gateways_lock:
        if key not in _gateways:
            _gateways[key] = make_gateway(settings).start()
        url: str = _gateways[key].url
    return url


def request_extras(settings: Settings) -> dict[str, Any]:
    """Return the fields beyond the usual ones that every request carries."""
    extras: dict[str, Any] = dict(settings.extra_body)
    if settings.max_tokens:
        extras[settings.max_tokens_field] = settings.max_tokens
    return extras


def chat_model(settings: Settings) -> ChatOpenAI:
    """Return LangChain's client for the settings; it sends nothing yet."""
    from langchain_openai import ChatOpenAI

    from toolkit.client import AsyncClient

    client = _client(settings)
    async_client = AsyncClient(**_client_options(settings, "http_async_client"))
    return ChatOpenAI(
        root_client=client,
        client=client.chat.completions,
        root_async_client=async_client,
        async_client=async_client.chat.completions,
        model=NO_RULES,
        temperature=settings.temperature,
        seed=settings.seed,
        streaming=settings.stream,
        stream_usage=False,
        extra_body={"model": settings.model, **request_extras(settings)},
        use_responses_api=False,
        openai_proxy=None,  # else $OPENAI_PROXY would catch requests to loopback
        http_socket_options=(),  # else it warns about a client of its own
    )


def _client(settings: Settings) -> Client:
    from toolkit.client import Client

    return Client(**_client_options(settings, "http_client"))


def _client_options(settings: Settings, kind: str) -> dict[str, Any]:
    return {
        "base_url": wire_url(settings),
        "api_key": "held-by-the-gateway",
        "timeout": settings.timeout + GRACE,
        "max_retries": settings.retries,
        "http_client": _http_clients()[kind],
    }


@cache
def _http_clients() -> dict[str, Any]:
    """HTTP clients for loopback, made once: they know of no proxy, not even of one
    that NO_PROXY names and whose kind (socks) they could not speak."""
    import ssl

    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

    # Loopback is plain HTTP: to load the certificates of the world would take longer
    # than the first question. This context trusts nobody.
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return {
        "http_client": DefaultHttpxClient(trust_env=False, verify=nobody),
        "http_async_client": DefaultAsyncHttpxClient(trust_env=False, verify=nobody),
    }


def openai_model(settings: Settings) -> Callable[..., Any]:
    """Return the bare openai client's call, which wants only the messages; it sends the
    same fields as ChatOpenAI."""
    fields = {
        "model": settings.model,
        "temperature": settings.temperature,
        "stream": settings.stream,
        "extra_body": request_extras(settings) or None,
    }
    if settings.seed is not None:
        fields["seed"] = settings.seed
    return partial(_client(settings).chat.completions.create, **fields)


_gateways: dict[tuple[Any, ...], Gateway] = {}
_gateways_lock = Lock()


def _bypass_proxies_on_loopback() -> None:
    """Keep a system proxy away from loopback; requests further out still use it."""
    for variable in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in os.environ.get(variable, "").split(",") if host]
        os.environ[variable] = ",".join(dict.fromkeys([*hosts, *LOOPBACK]))
