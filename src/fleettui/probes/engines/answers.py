"""HTTP answers of engines: what the answer itself says before its content is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from fleettui.model.readings import EngineState
from fleettui.model.record import dataclass
from fleettui.model.unknown import Maybe, Unknown
from fleettui.probes.clean import clean_text, clean_word

MAX_BODY_BYTES = 8 << 20
LLAMACPP_LOADING = "Loading model"
"""What llama-server gives with HTTP 503 until its model is there."""
_ERROR_LIMIT = 120
_BIGGEST = 1 << 62

Headers = Sequence[tuple[str, str]]
"""Names in lower case."""


class Answer(Protocol):
    """One HTTP answer, however it came."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def body(self) -> bytes: ...
    @property
    def received_at(self) -> float:
        """Epoch seconds by the operator's clock."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer amounts to."""

    state: EngineState
    document: Any = None
    """The JSON document, when the state is ok."""
    error: str | None = None
    """The operator's words, one line; None when the state is ok."""
    reason: str = ""
    """What the answer itself gives as the reason, cleaned; empty where it gives none."""


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def judge_answer(status: int, headers: Headers, body: bytes) -> Verdict:
    """The JSON document of a 200, or why there is none: login, busy, error, not an engine, too large."""
    verdict = judge_status(status, headers, body)
    if verdict.state != "ok":
        return verdict
    text = body.decode("utf-8", "replace")
    try:
        document = _DECODER.decode(text)
    except (ValueError, RecursionError):
        what = "a web page" if _is_html(headers, text) else "no JSON"
        title = _title(text)
        return Verdict("not_an_engine", error=f"the port answers with {what}{f' ({title})' if title else ''}")
    if isinstance(document, dict) and "error" in document:  # LM Studio: HTTP 200 for every path
        reason = read_error(document)
        whose = "LM Studio's" if is_lmstudio_refusal(reason) else "an"
        return Verdict("not_an_engine", error=f"the port answers with {whose} error: {reason}", reason=reason)
    return Verdict("ok", document)


def judge_status(status: int, headers: Headers, body: bytes) -> Verdict:
    """What status and length say before the content is read: ok (no document), or why it is not."""
    if len(body) > MAX_BODY_BYTES:
        return Verdict("down", error=f"answer larger than {MAX_BODY_BYTES >> 20} MiB, not read")
    if status in (401, 403, 407):
        return Verdict("unauthorized", error=f"HTTP {status}{_server(headers)}: login needed")
    if status == 200:
        return Verdict("ok")
    text = body.decode("utf-8", "replace")
    reason = _error_text(text)
    if status == 503:
        if reason == LLAMACPP_LOADING:
            return Verdict("loading", error="loading the model", reason=reason)
        is_full = "maximum pending requests" in reason
        error = "busy (queue full)" if is_full else f"busy: {reason or 'HTTP 503'}"
        return Verdict("busy", error=error, reason=reason)
    state: EngineState = "not_an_engine" if status < 500 and _is_html(headers, text) else "down"
    error = f"HTTP {status}{_server(headers)}{f': {reason}' if reason else ''}"
    return Verdict(state, error=error, reason=reason)


def is_lmstudio_refusal(reason: str) -> bool:
    """LM Studio's words for a path it has not; they come with HTTP 200."""
    return reason.startswith("Unexpected endpoint or method")


def get_header(headers: Headers, name: str) -> str | None:
    """The first header of that lower-case name."""
    for key, value in headers:
        if key == name:
            return value
    return None


def _server(headers: Headers) -> str:
    """` from nginx` when the server names itself."""
    name = clean_text(get_header(headers, "server") or "", 40).partition("/")[0]
    return f" from {name}" if name else ""


def _is_html(headers: Headers, text: str) -> bool:
    kind = get_header(headers, "content-type") or ""
    return "html" in kind.lower() or text.lstrip()[:1] == "<"


def _title(text: str) -> str:
    """The title of a web page, shortened."""
    low = text[:4096].lower()
    start = low.find("<title>")
    if start < 0:
        return ""
    return clean_text(text[start + 7 : start + 7 + 200].partition("<")[0], 60)


def _error_text(text: str) -> str:
    """`error` of a JSON answer, a page's title, or the first line of a plain text."""
    try:
        document = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _title(text) or ("" if "<" in text[:200] else clean_text(text[:500], _ERROR_LIMIT))
    return read_error(document)


def read_error(document: object) -> str:
    """The words of `{"error": "…"}`, `{"error": {"message": "…"}}` or `{"detail": "…"}`; else empty."""
    fields = as_dict(document)
    error = fields.get("error", fields.get("detail"))
    if isinstance(error, dict):
        error = error.get("message")
    return clean_text(error, _ERROR_LIMIT).rstrip(" :") if isinstance(error, str) else ""


def as_dict(value: object) -> dict[str, Any]:
    """The object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_dicts(value: object) -> list[dict[str, Any]]:
    """The objects of a list; null and anything else is an empty list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def read_count(value: object, missing: Unknown) -> Maybe[int]:
    """A whole number >= 0; `missing` for null and for anything that is none."""
    if type(value) is int and 0 <= value < _BIGGEST:
        return value
    if type(value) is float and 0 <= value < _BIGGEST and value.is_integer():
        return int(value)
    return missing


def read_name(value: object, missing: Unknown) -> Maybe[str]:
    """A text that is not empty, cleaned."""
    return (clean_word(value) or missing) if isinstance(value, str) and value else missing


MAX_NAMES = 64
"""Aliases, adapters or capabilities of one model: more is no list of names."""


def read_names(value: object) -> tuple[str, ...]:
    """The texts of a list that are not empty, each once, cleaned; `()` for anything else."""
    if not isinstance(value, list):
        return ()
    names = [clean_word(item) for item in value[:MAX_NAMES] if isinstance(item, str)]
    return tuple(dict.fromkeys(name for name in names if name))


@lru_cache(maxsize=4096)
def parse_time(text: str) -> float | None:
    """Epoch seconds of RFC 3339 with any number of fraction digits; None for anything else.

    Year 1 (Go's zero time) and 1970 (the zero of Unix) are no times: what they stand in was never set.
    """
    if len(text) < 20 or text[10] not in "Tt" or not text.isascii():
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or moment.year < 1971:
        return None
    return moment.timestamp()


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=512)
def parse_http_date(text: str) -> float | None:
    """Epoch seconds of `Tue, 10 Mar 2026 09:15:30 GMT` (RFC 9110, the only form servers send today)."""
    words = text.split()
    if len(words) != 6 or words[5] != "GMT" or words[2] not in _MONTHS:
        return None
    clock = words[4].split(":")
    numbers = (words[3], words[1], *clock)
    if len(clock) != 3 or not all(word.isdigit() and word.isascii() and len(word) <= 4 for word in numbers):
        return None
    year, day, hour, minute, second = map(int, numbers)
    try:
        moment = datetime(year, _MONTHS.index(words[2]) + 1, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp()


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """An HTTP answer that came as text from the machine's own curl or wget."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    received_at: float


def parse_http_text(payload: bytes, received_at: float) -> TextAnswer | None:
    """Status, headers and body of section `get` (or a captured answer); None when it is no HTTP answer."""
    head, gap, body = _split_head(payload)
    lines = head.split(b"\n")
    words = lines[0].split(None, 2)
    if not gap or len(words) < 2 or not words[0].startswith(b"HTTP/"):
        return None
    if not words[1].isdigit() or len(words[1]) != 3:
        return None
    headers = []
    for line in lines[1:]:
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            headers.append((name.strip().lower(), value.strip()))
    return TextAnswer(int(words[1]), tuple(headers), body, received_at)


def _split_head(payload: bytes) -> tuple[bytes, bool, bytes]:
    for gap in (b"\r\n\r\n", b"\n\n"):
        head, found, body = payload.partition(gap)
        if found:
            return head, True, body
    return payload, False, b""
