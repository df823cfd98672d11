"""Settings of a run: environment variables LLM_…, lines of .env, command-line options.

They are part of the contract between an agent and the instrument. Importing this module
reads nothing and starts nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from equivalence.errors import UsageError

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
    echo_attached: bool = True
    """Whether the gateway gives a server back what it attached to calls and messages,
    such as thought signatures; clients strip it."""
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
