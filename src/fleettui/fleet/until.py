"""When something is to end, as an operator writes it: `2h`, `14:00`, `2026-12-01T08:00`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

FORMS = "write 2h, 30m, 1d, 14:00 or 2026-12-01T08:00"
LONGEST_DAYS = 3660

_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m)?", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)
_DATE_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)


def parse_until(text: str, now: float) -> float:
    """Epoch seconds after `now`. A time alone is the next such moment here; without a zone it is this
    computer's. Raises ValueError with a sentence."""
    words = text.strip()
    moment = _read(words, now)
    if moment is None:
        raise ValueError(f"{words!r} is no time; {FORMS}")
    if moment <= now:
        raise ValueError(f"{words} is over already; {FORMS}")
    if moment - now > LONGEST_DAYS * 86_400:
        raise ValueError(f"{words} is more than ten years ahead; {FORMS}")
    return moment


def parse_reason_until(text: str, now: float) -> tuple[str | None, float | None]:
    """`fan swap until 2h` -> reason and epoch seconds; both may be left out. Raises ValueError."""
    words = text.split()
    places = [place for place, word in enumerate(words) if word.lower() == "until"]
    if not places:
        return " ".join(words) or None, None
    reason, when = words[: places[-1]], words[places[-1] + 1 :]
    if not when:
        raise ValueError(f"until when? {FORMS}")
    return " ".join(reason) or None, parse_until(" ".join(when), now)


def _read(words: str, now: float) -> float | None:
    lengths = _DURATION.fullmatch(words)
    if words and lengths is not None:
        days, hours, minutes = (int(part or 0) for part in lengths.groups())
        return now + days * 86_400 + hours * 3600 + minutes * 60
    try:
        clock = _TIME.fullmatch(words)
        if clock is not None:
            return _next(int(clock[1]), int(clock[2]), now)
        if _DATE_AND_TIME.fullmatch(words) is not None:
            return datetime.fromisoformat(words).timestamp()
    except (ValueError, OverflowError, OSError):
        return None  # 25:00, February 30th
    return None


def _next(hour: int, minute: int, now: float) -> float:
    """The next time the clock here shows this; days with a change of the clock have it too."""
    moment = datetime.fromtimestamp(now).replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    if moment.timestamp() <= now:
        moment += timedelta(days=1)
    return moment.timestamp()
