"""Settings of a run: environment variables LLM_…, lines of .env, command-line options.

They are part of the contract between an agent and the instrument. Importing this module
reads nothing and starts nothing.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from equivalence.errors import UsageError
from equivalence.language import _
from equivalence.phrases import translated

LOOPBACK = ("127.0.0.1", "localhost", "::1")


LONGEST_TIMEOUT = 7 * 24 * 3600.0
"""Seconds; a longer one is a slip, and timers overflow at it."""


def endpoint_url(url: str) -> str:
    """Return the base URL that clients want, "http://HOST/v1", from what people paste:
    blanks, a trailing slash, the full endpoint path, no /v1. A query stays behind the
    path. Raises ValueError, which repeats nothing that may be secret, if there is no
    scheme, a password, or what no URL can hold.
    """
    url = url.strip()
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        raise ValueError(_("it has a blank or a character that no URL can hold"))
    parts = urlsplit(url)
    if "@" in parts.netloc or ("@" in url and not parts.netloc):
        raise ValueError(
            _("no user or password in the URL: LLM_API_KEY is for the key")
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(_("it needs http:// or https:// and a host in front"))
    try:
        parts.port  # noqa: B018  # it reads the number
    except ValueError:  # whose words repeat what stands there, maybe of a password
        raise ValueError(_("what stands behind the host's colon is no port")) from None
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path or "/v1", parts.query, ""))


def shown_url(url: str) -> str:
    """Return a base URL as records and messages may hold it: of its query only the
    values of versions, for any other may be a key."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    shown = [
        (name if value else "***", value if "version" in name else "***")
        for name, value in pairs
    ]
    return urlunsplit(parts._replace(query=urlencode(shown, safe="*")))


def _sendable(key: SecretStr) -> SecretStr:
    """The key, if a header can carry it; quotes and line breaks come with copying."""
    text = key.get_secret_value().strip()
    if not re.fullmatch(r"[!-~]*", text):
        raise ValueError(
            _(
                "a key has neither blanks, line breaks nor letters or"
                " quotes outside ASCII: copy it again"
            )
        )
    return SecretStr(text)


def _finite(body: dict[str, Any]) -> dict[str, Any]:
    """The fields, if they are JSON that any server can read."""
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        raise ValueError(
            _("it holds a number beyond JSON's, or half a character")
        ) from None
    return body


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
    api_key: Annotated[SecretStr, AfterValidator(_sendable)] | None = None
    """The endpoint's key; none for a server that wants none."""
    model: str = "offline"
    """The name that the endpoint knows the model by."""
    temperature: float = Field(0.0, ge=0, le=2)
    """0 to 2."""
    seed: int | None = None
    """Sent with each request, for servers that honour it."""
    max_steps: int = Field(10, ge=1)
    """Budget: the most model calls one run may make."""
    timeout: float = Field(120.0, gt=0, le=LONGEST_TIMEOUT)
    """The longest that one model call may take, in seconds."""
    retries: int = Field(2, ge=0)
    """How often the client repeats a model call that failed."""
    max_tokens: int | None = Field(None, ge=1)
    """The longest reply."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Servers differ in the name they accept for the output limit."""
    extra_body: Annotated[dict[str, Any], AfterValidator(_finite)] = {}
    """Fields added to every request, for example {"enable_thinking": false}."""
    stream: bool = False
    """Whether the client asks for a stream."""
    tool_result_limit: int = Field(8000, ge=1)
    """Characters of a tool result; the rest is cut, visibly."""
    tool_concurrency: int = Field(1, ge=1)
    """How many tool calls of one turn run at the same time."""
    clock: datetime | None = None
    """What get_current_time answers; None is the real time."""
    repair: bool = True
    """Whether the gateway repairs broken replies (--raw switches it off)."""
    echo_reasoning: bool = False
    """Whether the gateway sends a model its reasoning back (DeepSeek wants that)."""
    echo_attached: bool = True
    """Whether the gateway gives a server back what it attached to calls and messages,
    such as thought signatures; clients strip it."""
    upstream_api: Literal["chat", "responses"] = "chat"
    """Over which API the gateway asks the endpoint: /v1/chat/completions, which nearly
    every server has, or /v1/responses."""
    gateway_url: str | None = None
    """The gateway to talk to; None starts one in this process when it is needed."""

    def recorded(self) -> dict[str, Any]:
        """The settings as JSON for a run record: no key, no passing address, and of the
        base URL only what is no secret."""
        kept = self.model_dump(mode="json", exclude={"api_key", "gateway_url"})
        return {**kept, "base_url": self.base_url and shown_url(self.base_url)}


def load_settings(*, needs_key: bool = True, **overrides: Any) -> Settings:
    """Read environment and .env; `overrides` that are not None win. UsageError
    says in one line which setting to change; `needs_key`: whether a server that is not
    local wants one from us."""
    given = {name: value for name, value in overrides.items() if value is not None}
    if Path(".env").is_fifo():
        raise UsageError(_(".env is a pipe, which would be waited for: make it a file"))
    try:
        settings = Settings(**given)
    except ValidationError as error:
        problem = error.errors()[0]
        name = "_".join(str(part) for part in problem["loc"][:1]).upper()
        reason = translated(problem["msg"].removeprefix("Value error, "))
        raise UsageError(f"LLM_{name}: {reason}") from None
    except UnicodeDecodeError:
        raise UsageError(_(".env is not a UTF-8 file: save it as UTF-8")) from None
    except SettingsError as error:  # names the field in quotes
        name = str(error).split('"')[1].upper()
        raise UsageError(
            _("LLM_{name}: this is not valid JSON").format(name=name)
        ) from None
    if settings.base_url:
        check_endpoint(settings, needs_key)
    return settings


def check_endpoint(settings: Settings, needs_key: bool) -> None:
    """Raise UsageError if the endpoint of the settings cannot be asked with them."""
    if "model" not in settings.model_fields_set:
        raise UsageError(_("LLM_MODEL is not set: name the model to ask for"))
    assert settings.base_url
    local = urlsplit(settings.base_url).hostname in LOOPBACK
    if needs_key and not settings.api_key and not local:
        raise UsageError(
            _(
                "LLM_API_KEY is not set and {url} is not a local"
                " server: set it (LLM_API_KEY=none if that server wants no"
                " key)"
            ).format(url=shown_url(settings.base_url))
        )
