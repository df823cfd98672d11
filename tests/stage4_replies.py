"""Replies, scripted for stage 4."""

from __future__ import annotations

from typing import Any


def call(name: str, arguments: str, identifier: str) -> dict[str, Any]:
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def asks(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"message": {"content": None, "tool_calls": list(calls)}}


def says(text: str) -> dict[str, Any]:
    return {"message": {"content": text}}
