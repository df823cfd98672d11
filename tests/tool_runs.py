"""How tests run a tool by the policy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from config import Settings
from toolkit.policy import by_name, run_tool

SETTINGS = Settings(_env_file=None)
NOON = datetime(2024, 2, 29, 12, 0, tzinfo=timezone(timedelta(hours=8)))


def run(tool: Callable[..., Any], arguments: Any = None, **changes: Any) -> Any:
    settings = SETTINGS.model_copy(update=changes)
    return run_tool(tool.__name__, arguments or {}, by_name([tool]), settings)
