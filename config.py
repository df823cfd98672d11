"""Settings, and the clients made from them: LangChain's ChatOpenAI and the bare one.

Every setting is an environment variable LLM_… or a line in .env. Without LLM_BASE_URL
the offline model answers. Importing this module reads nothing and starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from usage import UsageError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

    from gateway import Gateway

SYSTEM_PROMPT = (
    "You are a careful assistant. Use the tools for weather, time, share prices,"
    " arithmetic and unit conversion. Never make up a value that a tool can give; if a"
    " call needs the result of another, wait for it. When you have every result you"
    " need, answer the question in one sentence without calling a tool, in the language"
    " of the question."
)

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def endpoint_url(url: str) -> str:
    """Return the base URL that clients want, "http://HOST/v1", from what people paste:
    blanks, a trailing slash, the full endpoint path, no /v1. ValueError without scheme,
    or with a password, which would end up in every record.
    """
    url = url.strip().rstrip("/").removesuffix("/chat/completions").rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} needs http:// or https:// in front")
    if "@" in parts.netloc:
        raise ValueError("no user or password in the URL: LLM_API_KEY is for the key")
    return url if parts.path else url + "/v1"


class Settings(BaseSettings):
    """What one run depends on; frozen. Times in seconds, sizes in characters."""

    model_config = SettingsConfigDict(
        env_prefix="LLM_",
        env_file=".env",
        env_file_encoding="utf-8-sig",  # Windows editors put a mark in front
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
    )

    base_url: Annotated[str, AfterValidator(endpoint_url)] | None = None
    """The model's endpoint; None is the offline model."""
    api_key: SecretStr | None = None
    model: str = "offline"
    temperature: float = Field(0.0, ge=0, le=2)
    seed: int | None = None
    max_steps: int = Field(10, ge=1)
    """Budget: the most model calls one run may make."""
    timeout: float = Field(120.0, gt=0)
    retries: int = Field(2, ge=0)
    max_tokens: int | None = Field(None, ge=1)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Servers differ in the name they accept for the output limit."""
    extra_body: dict[str, Any] = {}
    """Fields added to every request, for example {"enable_thinking": false}."""
    stream: bool = False
    tool_result_limit: int = Field(8000, ge=1)
    tool_concurrency: int = Field(1, ge=1)
    """How many tool calls of one turn run at the same time."""
    clock: datetime | None = None
    """What get_current_time answers; None is the real time."""
    repair: bool = True
    """Whether the gateway repairs broken replies (--raw switches it off)."""
    echo_reasoning: bool = False
    """Whether the gateway sends a model its reasoning back (DeepSeek wants that)."""
    gateway_url: str | None = None
    """The gateway to talk to; None starts one in this process when it is needed."""

    def recorded(self) -> dict[str, Any]:
        """The settings as JSON for a run record: no key, no passing address."""
        return self.model_dump(mode="json", exclude={"api_key", "gateway_url"})


def load_settings(*, needs_key: bool = True, **overrides: Any) -> Settings:
    """Read environment and .env; `overrides` that are not None win. UsageError
    says in one line which setting to change; `needs_key`: whether a server that is not
    local wants one from us."""
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        settings = Settings(**given)
    except ValidationError as error:
        problem = error.errors()[0]
        name = "_".join(str(part) for part in problem["loc"][:1]).upper()
        reason = problem["msg"].removeprefix("Value error, ")
        raise UsageError(f"LLM_{name}: {reason}") from None
    except UnicodeDecodeError:
        raise UsageError(".env is not a UTF-8 file: save it as UTF-8") from None
    except SettingsError as error:  # names the field in quotes
        name = str(error).split('"')[1].upper()
        raise UsageError(f"LLM_{name}: this is not valid JSON") from None
    if settings.base_url:
        _check_endpoint(settings, needs_key)
    return settings


def _check_endpoint(settings: Settings, needs_key: bool) -> None:
    if "model" not in settings.model_fields_set:
        raise UsageError("LLM_MODEL is not set: name the model to ask for")
    local = urlsplit(settings.base_url).hostname in LOOPBACK
    if needs_key and not settings.api_key and not local:
        raise UsageError(
            f"LLM_API_KEY is not set and {settings.base_url} is not a local server:"
            " set it (LLM_API_KEY=none if that server wants no key)"
        )


def make_gateway(settings: Settings, port: int = 0) -> Gateway:
    """Return a gateway, not started yet, in front of the model the settings name."""
    from gateway import Gateway, HttpUpstream, OfflineModel, Upstream

    upstream: Upstream = OfflineModel()
    if settings.base_url:
        key = settings.api_key.get_secret_value() if settings.api_key else None
        upstream = HttpUpstream(settings.base_url, key, settings.timeout)
    return Gateway(
        upstream,
        port=port,
        repair=settings.repair,
        echo_reasoning=settings.echo_reasoning,
    )


def wire_url(settings: Settings) -> str:
    """Return the base URL an implementation talks to: always a gateway on loopback,
    started here, once for its settings, when the settings name none."""
    _bypass_proxies_on_loopback()
    if settings.gateway_url:
        return settings.gateway_url
    depends_on = ("base_url", "api_key", "timeout", "repair", "echo_reasoning")
    key = tuple(getattr(settings, name) for name in depends_on)
    with _gateways_lock:
        if key not in _gateways:
            _gateways[key] = make_gateway(settings).start()
        return _gateways[key].url()


def request_extras(settings: Settings) -> dict[str, Any]:
    """Return the fields beyond the usual ones that every request carries."""
    extras: dict[str, Any] = dict(settings.extra_body)
    if settings.max_tokens:
        extras[settings.max_tokens_field] = settings.max_tokens
    return extras


def chat_model(settings: Settings) -> ChatOpenAI:
    """Return LangChain's client for the settings; it sends nothing yet."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        base_url=wire_url(settings),
        api_key=SecretStr("held-by-the-gateway"),
        model=settings.model,
        temperature=settings.temperature,
        seed=settings.seed,
        timeout=settings.timeout,
        max_retries=settings.retries,
        streaming=settings.stream,
        stream_usage=False,
        extra_body=request_extras(settings) or None,
        use_responses_api=False,
        openai_proxy=None,  # else $OPENAI_PROXY would catch requests to loopback
        http_socket_options=(),  # else it warns about the clients below
        **_http_clients(),
    )


@cache
def _http_clients() -> dict[str, Any]:
    """HTTP clients for loopback, made once: they know of no proxy, not even of one
    that NO_PROXY names and whose kind (socks) they could not speak."""
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

    return {
        "http_client": DefaultHttpxClient(trust_env=False),
        "http_async_client": DefaultAsyncHttpxClient(trust_env=False),
    }


def openai_model(settings: Settings) -> Callable[..., Any]:
    """Return the bare openai client's call, which wants only the messages; it sends the
    same fields as ChatOpenAI."""
    from openai import OpenAI

    client = OpenAI(
        base_url=wire_url(settings),
        api_key="held-by-the-gateway",
        timeout=settings.timeout,
        max_retries=settings.retries,
        http_client=_http_clients()["http_client"],
    )
    fields = {
        "model": settings.model,
        "temperature": settings.temperature,
        "stream": settings.stream,
        "extra_body": request_extras(settings) or None,
    }
    if settings.seed is not None:
        fields["seed"] = settings.seed
    return partial(client.chat.completions.create, **fields)


_gateways: dict[tuple[Any, ...], Gateway] = {}
_gateways_lock = Lock()


def _bypass_proxies_on_loopback() -> None:
    """Keep a system proxy away from loopback; requests further out still use it."""
    for variable in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in os.environ.get(variable, "").split(",") if host]
        os.environ[variable] = ",".join(dict.fromkeys([*hosts, *LOOPBACK]))
