"""The openai client of every stage; LangChain's stands on it, too.

Half characters (lone surrogates), of which a question or a history may have some, are
replaced in what it sends: no request can carry them.
"""

from __future__ import annotations

import json
from typing import Any

from openai import AsyncOpenAI, OpenAI
from openai._models import FinalRequestOptions


class Client(OpenAI):
    """The client for loops that wait."""

    def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        options.json_data = _encodable(options.json_data)
        return super()._prepare_options(options)


class AsyncClient(AsyncOpenAI):
    """The client for async loops."""

    async def _prepare_options(
        self, options: FinalRequestOptions
    ) -> FinalRequestOptions:
        options.json_data = _encodable(options.json_data)
        return await super()._prepare_options(options)


def _encodable(body: Any) -> Any:
    """The body itself, where it can be sent as it is."""
    text = json.dumps(body, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-8", "replace"))
    return body
