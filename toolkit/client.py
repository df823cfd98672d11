"""The openai client of every stage; LangChain's stands on it, too.

Half characters (lone surrogates), of which a question or a history may have some, are
replaced in what it sends: no request can carry them.
"""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI, OpenAI
from openai._models import FinalRequestOptions

from toolkit.policy import encodable


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


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value
