"""A real endpoint behind the gateway, and its failures in one line each."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from equivalence.gateway.limits import HEAVIEST
from equivalence.gateway.upstreams import (
    LOOPBACK,
    BrokenReply,
    Reply,
    Streamed,
    dump,
    error_reply,
)

LONGEST_WAIT = 60.0
"""Seconds that a client may be told to wait before it tries again."""


class HttpUpstream:
    """A real endpoint. Without a key of its own it passes the client's on.

    It follows no redirect: a POST would arrive as a GET, or the key at another host. It
    reads no netrc. Loopback is never asked through a proxy.
    """

    def __init__(self, base_url: str, key: str | None = None) -> None:
        self.base_url = base_url
        self.key = key
        self._session: aiohttp.ClientSession | None = None

    def __str__(self) -> str:
        """The base URL; less its query, which may hold a key."""
        return urlunsplit(urlsplit(self.base_url)._replace(query="", fragment=""))

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Reply:
        return await self._whole("POST", "/chat/completions", request, authorization)

    async def models(self, authorization: str | None) -> Reply:
        return await self._whole("GET", "/models", None, authorization)

    async def stream(
        self, request: dict[str, Any], authorization: str | None
    ) -> Reply | Streamed:
        response = await self._send("POST", "/chat/completions", request, authorization)
        if isinstance(response, Reply):
            return response
        if response.status == 200 and response.content_type == "text/event-stream":
            return Streamed(self._pieces(response), response.close)
        return await self._read(response)

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None  # another gateway may ask again

    async def _whole(
        self, method: str, path: str, request: Any, authorization: str | None
    ) -> Reply:
        response = await self._send(method, path, request, authorization)
        return response if isinstance(response, Reply) else await self._read(response)

    async def _send(
        self, method: str, path: str, request: Any, authorization: str | None
    ) -> Reply | aiohttp.ClientResponse:
        """Send a request; return what comes back from its headers on, or why nothing
        does."""
        authorization = f"Bearer {self.key}" if self.key else authorization
        headers = {"Content-Type": "application/json"}
        if authorization:
            if not authorization.isascii() or not authorization.isprintable():
                words = "the key holds characters that no header can carry"
                return error_reply(400, f"{words}: check LLM_API_KEY", retry=False)
            headers["Authorization"] = authorization
        if self._session is None:  # here, because it belongs to the running event loop
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None),
                connector=aiohttp.TCPConnector(limit=0),  # the clients set the limit
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,  # it would read netrc
            )
        try:
            url = urlsplit(self.base_url)
            proxy = _proxy(url)
            if proxy and not proxy.startswith(("http://", "https://")):
                return error_reply(502, _no_such_proxy(proxy, url), retry=False)
            path = f"{url.path.rstrip('/')}{path}"
            return await self._session.request(
                method,
                urlunsplit(url._replace(path=path, fragment="")),
                data=None if request is None else dump(request),
                headers=headers,
                allow_redirects=False,
                proxy=proxy,
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return error_reply(502, f"cannot reach {self}: {_reason(error)}")

    async def _read(self, response: aiohttp.ClientResponse) -> Reply:
        try:
            pieces = [piece async for piece in self._pieces(response)]
        except BrokenReply as broken:
            return broken.reply
        finally:
            response.release()
        return self._reply(response, b"".join(pieces))

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield the body as it comes. Raises BrokenReply if it breaks off, or is too
        heavy to be a reply."""
        weight = 0
        try:
            async for piece in response.content.iter_any():
                weight += len(piece)
                if weight > HEAVIEST:
                    response.close()
                    words = f"the reply of {self} is larger than {HEAVIEST >> 20} MB"
                    raise BrokenReply(error_reply(502, words, retry=False))
                yield piece
        except (aiohttp.ClientError, OSError, ValueError) as error:
            words = f"the reply of {self} broke off: {_reason(error)}"
            raise BrokenReply(error_reply(502, words)) from None

    def _reply(self, response: aiohttp.ClientResponse, body: bytes) -> Reply:
        status = response.status
        if not 200 <= status < 600:
            words = f"{self} answered {status}, which is no status of HTTP"
            return error_reply(502, words, retry=False)
        place = response.headers.get("location")
        if place and 300 <= status < 400:
            words = f"{self} has moved to {place}: set LLM_BASE_URL"
            return error_reply(status, words, retry=False)
        kind = response.content_type
        if not kind.isascii() or not kind.isprintable():
            kind = "application/octet-stream"
        return Reply(status, body, kind, _for_retries(response))


def _for_retries(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The headers that tell clients when to try again; not to, where a server wants
    them to wait for longer than anybody sits before a program."""
    kept = {
        name: value
        for name in ("retry-after", "retry-after-ms", "x-should-retry")
        if (value := response.headers.get(name)) and value.isascii()
    }
    for name, unit in (("retry-after", 1.0), ("retry-after-ms", 1000.0)):
        with suppress(ValueError):
            if float(kept.get(name, 0)) / unit <= LONGEST_WAIT:
                continue
        del kept[name]  # too long, or a date
        kept["x-should-retry"] = "false"
    return kept


def _proxy(url: SplitResult) -> str | None:
    """The proxy for a URL by the environment or the system, if it needs one."""
    host = url.hostname or ""
    if host in LOOPBACK or _is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _no_such_proxy(proxy: str, url: SplitResult) -> str:
    parts = urlsplit(proxy)
    name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # no password
    return (
        f"the proxy {name} is of a kind that is not spoken here: set"
        f" {url.scheme.upper()}_PROXY to an http:// proxy, or NO_PROXY={url.hostname}"
    )


def _reason(error: BaseException) -> str:
    """Why a request or a reply failed, in a few words."""
    cause: BaseException | None = getattr(error, "os_error", None) or error
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no host is known by the name {error.host}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.InvalidURL):
        return "this is not an address"
    for kind, words in (
        (ConnectionRefusedError, "connection refused"),
        (ConnectionResetError, "connection reset"),
        (BrokenPipeError, "connection reset"),
        (TimeoutError, "connection timed out"),
        (ssl.SSLError, "it does not speak TLS: is it http://, not https://?"),
        (aiohttp.ServerDisconnectedError, "it hung up without a word"),
        (aiohttp.ClientPayloadError, "the connection ended before it did"),
        (aiohttp.ClientHttpProxyError, f"the proxy refused: {_line(error)}"),
        (aiohttp.ClientResponseError, "what came back is not HTTP"),
    ):
        if isinstance(cause, kind):
            return words
    return getattr(cause, "strerror", None) or _line(error)


def _line(error: BaseException) -> str:
    return " ".join(str(getattr(error, "message", "") or error).split())[:300]
