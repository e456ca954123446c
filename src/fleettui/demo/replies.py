"""Answers of the engines' stand-ins, as values."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

JSON_TYPE = "application/json; charset=utf-8"
NDJSON_TYPE = "application/x-ndjson"
TEXT_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole answer."""

    body: bytes
    status: int = 200
    content_type: str = JSON_TYPE


@dataclass(frozen=True, slots=True)
class StreamedReply:
    """An answer in lines; leaving the iterator early ends the request."""

    lines: AsyncIterator[bytes]


Answer = Reply | StreamedReply


def json_reply(value: Any, status: int = 200) -> Reply:
    """Compact JSON, as Go writes it."""
    return Reply(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(), status)


def error_reply(status: int, text: str) -> Reply:
    return json_reply({"error": text}, status)
