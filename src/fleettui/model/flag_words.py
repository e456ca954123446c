"""Flags of machines in words. A module without records: a warm `--route` loads it at every call."""

from __future__ import annotations

from fleettui.model.clock import day_and_time
from fleettui.model.snapshot import MaintenanceFlag


def maintenance_words(flag: MaintenanceFlag, now: float, utc_offset_s: int | None = None) -> str:
    """`maintenance "fan swap" by mia since 12:03, until 14:00`; past its time it is overdue, never over."""
    reason = f' "{flag.reason}"' if flag.reason else ""
    text = f"maintenance{reason} by {flag.by} since {day_and_time(flag.since, now, utc_offset_s)}"
    if flag.until is None:
        return text
    word = "overdue since" if flag.is_overdue(now) else "until"
    return f"{text}, {word} {day_and_time(flag.until, now, utc_offset_s)}"
