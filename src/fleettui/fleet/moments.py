"""Moments in the past as an operator writes them: `30m`, `2h`, `1d`, `14:00`, `2026-11-30`, ISO 8601."""

from __future__ import annotations

import re
import time
from datetime import datetime

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_FORMS = "write 30m, 2h, 1d, 14:00, 2026-11-30 or 2026-11-30T14:00"


def past_moment(text: str, now: float | None = None) -> float:
    """Epoch seconds; a time of day is the last such, and local as all without a zone. Raises ValueError."""
    now = time.time() if now is None else now
    word = text.strip()
    span = _SPAN.fullmatch(word)
    if span is not None:
        return max(0.0, now - float(span[1]) * _SECONDS[span[2]])
    clock = _CLOCK.fullmatch(word)
    try:
        moment = _last_time_of_day(clock, now) if clock is not None else _of_iso(word)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is no moment; {_FORMS}") from None
    if moment > now:
        raise ValueError(f"{text!r} is in the future; {_FORMS}")
    return moment


def _last_time_of_day(clock: re.Match[str], now: float) -> float:
    hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(clock[0])
    today = time.localtime(now)
    for days in (0, 1):  # mktime takes days below 1 as those of the month before
        day = today.tm_mday - days
        moment = time.mktime((today.tm_year, today.tm_mon, day, hour, minute, second, 0, 0, -1))
        if moment <= now:
            return moment
    raise ValueError(clock[0])


def _of_iso(word: str) -> float:
    return datetime.fromisoformat(word).timestamp()
