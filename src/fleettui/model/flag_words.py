"""Flags of machines in words. A module without records: a warm `--route` loads it at every call."""

from __future__ import annotations

from fleettui.model.clock import day_and_time
from fleettui.model.snapshot import DrainFlag, MaintenanceFlag


def maintenance_words(flag: MaintenanceFlag, now: float, utc_offset_s: int | None = None) -> str:
    """`maintenance "fan swap" by mia since 12:03, until 14:00`; past its time it is overdue, never over."""
    reason = f' "{flag.reason}"' if flag.reason else ""
    text = f"maintenance{reason} by {flag.by} since {day_and_time(flag.since, now, utc_offset_s)}"
    return text + _end_words(flag, now, utc_offset_s)


def drain_words(flag: DrainFlag, now: float, utc_offset_s: int | None = None) -> str:
    """`draining (blocked: …) "PSU swap" by mia since 12:03, until 14:00`, `drained "PSU swap" by …`."""
    if flag.state == "drained":
        text = "drained"
    else:
        text = f"draining ({flag.state}{': ' if flag.text else ''}{flag.text})"
    reason = f' "{flag.reason}"' if flag.reason else ""
    text += f"{reason} by {flag.by} since {day_and_time(flag.since, now, utc_offset_s)}"
    return text + _end_words(flag, now, utc_offset_s)


def _end_words(flag: MaintenanceFlag | DrainFlag, now: float, utc_offset_s: int | None) -> str:
    if flag.until is None:
        return ""
    word = "overdue since" if flag.is_overdue(now) else "until"
    return f", {word} {day_and_time(flag.until, now, utc_offset_s)}"
