"""Times as text. Pure: every time is a parameter, in seconds since the epoch."""

from __future__ import annotations

_DAY_S = 86_400


def civil_date(epoch_s: float) -> tuple[int, int, int]:
    """(year, month, day) in UTC. Source: Howard Hinnant, "chrono-compatible low-level date algorithms"."""
    days = int(epoch_s // _DAY_S) + 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_index + 2) // 5 + 1
    month = month_index + 3 if month_index < 10 else month_index - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def iso_utc(epoch_s: float) -> str:
    """`2026-11-30T14:03:12Z`; the fraction of a second is dropped."""
    year, month, day = civil_date(epoch_s)
    return f"{year:04d}-{month:02d}-{day:02d}T{hh_mm_ss(epoch_s)}Z"


def hh_mm(epoch_s: float, utc_offset_s: int | None = None) -> str:
    """`14:03` in the zone of that offset; without an offset `14:03 UTC`."""
    if utc_offset_s is None:
        return f"{hh_mm_ss(epoch_s)[:5]} UTC"
    return hh_mm_ss(epoch_s + utc_offset_s)[:5]


def hh_mm_ss(epoch_s: float) -> str:
    """Time of day, `14:03:12`, UTC."""
    second = int(epoch_s // 1) % _DAY_S
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def duration(seconds: float) -> str:
    """`3s`, `2m`, `5h`, `1d4h`, `40d`; whole units, rounded down."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m"
    if whole < _DAY_S:
        return f"{whole // 3600}h"
    days, hours = whole // _DAY_S, whole % _DAY_S // 3600
    return f"{days}d{hours}h" if days < 10 and hours else f"{days}d"


def duration_words(seconds: float) -> str:
    """`12 s`, `3 min`, `5 h`, `40 d`, for sentences; whole units, rounded down."""
    whole = max(0, int(seconds))
    for size, unit in ((_DAY_S, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def day_and_time(epoch_s: float, now: float, utc_offset_s: int | None = None) -> str:
    """`14:03` for a moment of today, else `2026-11-27 14:03`; ` UTC` behind it without an offset."""
    offset_s = utc_offset_s or 0
    date = civil_date(epoch_s + offset_s)
    time = hh_mm(epoch_s, utc_offset_s)
    return time if date == civil_date(now + offset_s) else "{:04d}-{:02d}-{:02d} ".format(*date) + time
