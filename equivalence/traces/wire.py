"""What went over the wire: HAR files and the cassettes of vcrpy."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from equivalence.errors import UsageError
from equivalence.gateway.exchange import Exchange
from equivalence.gateway.streaming import merge_stream
from equivalence.language import _
from equivalence.runs.record import Run
from equivalence.traces.calls import runs, together

ENDPOINT = "/chat/completions"
LONGEST_BODY = 64 * 1024 * 1024
"""Bytes that a compressed body may have when it is unpacked."""


def har(document: dict[str, Any], path: Path) -> list[Run]:
    """Return the runs of a HAR file."""
    entries = sorted(document["log"]["entries"], key=_started)
    exchanges = []
    others = Counter[str]()
    for entry in entries:
        request, response = entry["request"], entry["response"]
        if not _is_chat(request, request["url"], others):
            continue
        content = response.get("content") or {}
        body = content.get("text") or ""
        if content.get("encoding") == "base64":
            body = base64.b64decode(body)
        exchange = _exchange(
            (request.get("postData") or {}).get("text"), body, response.get("status")
        )
        exchange.began, exchange.ms = _started(entry), float(entry.get("time") or 0)
        exchanges.append(exchange)
    _tell(others, path, exchanges)
    return runs(together(path.stem, exchanges, dated=True))


def vcrpy(document: dict[str, Any], path: Path) -> list[Run]:
    """Return the runs of a cassette; it knows no times."""
    exchanges = []
    others = Counter[str]()
    for place, each in enumerate(document["interactions"]):
        request, response = each["request"], each["response"]
        if not _is_chat(request, request["uri"], others):
            continue
        body = response["body"]
        body = body.get("string") if isinstance(body, dict) else body
        status = response["status"]
        status = status["code"] if isinstance(status, dict) else status
        exchange = _exchange(request["body"], body, status)
        exchange.began = float(place)  # its order is all that is known
        exchanges.append(exchange)
    _tell(others, path, exchanges)
    return runs(together(path.stem, exchanges))


def _is_chat(request: dict[str, Any], url: str, others: Counter[str]) -> bool:
    where = urlsplit(url).path
    if request["method"] == "POST" and where.rstrip("/").endswith(ENDPOINT):
        return True
    if request["method"] == "POST":
        others[where] += 1
    return False


def _tell(others: Counter[str], path: Path, exchanges: list[Exchange]) -> None:
    """Say what was passed over. Raises UsageError if nothing is left."""
    told = ", ".join(
        _("{count} to {where}").format(count=count, where=where)
        for where, count in others.items()
    )
    if not exchanges:
        more = (
            _(", only requests that are not read: {told}").format(told=told)
            if told
            else ""
        )
        raise UsageError(
            _("{path} holds no chat completion{more}").format(path=path, more=more)
        )
    if told:
        print(
            _("{path}: requests passed over: {told}").format(path=path, told=told),
            file=sys.stderr,
        )


def _exchange(sent: Any, body: str | bytes | None, status: Any) -> Exchange:
    request = json.loads(_text(sent))
    if not isinstance(request, dict):
        raise ValueError("a request is no object")
    text = _text(body)
    reply: Any = text
    events = text.lstrip().startswith("data:")  # an error comes whole
    with contextlib.suppress(ValueError, RecursionError):
        reply = merge_stream(text.encode()) if events else json.loads(text)
    arrived = status if isinstance(status, int) and status > 0 else None
    return Exchange(request, reply, arrived, reply, arrived)


def _text(body: str | bytes | None) -> str:
    if isinstance(body, str) or body is None:
        return body or ""
    if body[:2] == b"\x1f\x8b":
        body = b"".join(_unpacked(body))
    return body.decode("utf-8")


def _unpacked(body: bytes) -> Iterator[bytes]:
    """The body that was packed with gzip; no more of it than fits. Raises ValueError if
    there is more."""
    unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
    found = unpacking.decompress(body, LONGEST_BODY)
    if unpacking.unconsumed_tail:
        raise ValueError("a body is too long")
    if not unpacking.eof:
        raise gzip.BadGzipFile("a body is cut off")
    yield found


def _started(entry: dict[str, Any]) -> float:
    """When the request was sent, in milliseconds since 1970."""
    return datetime.fromisoformat(entry["startedDateTime"]).timestamp() * 1000
