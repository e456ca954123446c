"""Flags of machines in words, and what became of them when the operator changed them."""

from __future__ import annotations

from fleettui.model.clock import day_and_time
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MaintenanceFlag


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The maintenance flag of one machine before and after a change; None: off."""

    name: str
    before: MaintenanceFlag | None
    after: MaintenanceFlag | None

    @property
    def is_changed(self) -> bool:
        """False where it stood so already."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class MaintenanceChange:
    """One change of one or more machines, with all that is needed to undo it."""

    results: tuple[MaintenanceResult, ...]
    """In the order in which the machines were named."""

    @property
    def changed(self) -> tuple[MaintenanceResult, ...]:
        """The machines whose flag is another one now."""
        return tuple(result for result in self.results if result.is_changed)


def maintenance_words(flag: MaintenanceFlag, now: float, utc_offset_s: int | None = None) -> str:
    """`maintenance "fan swap" by mia since 12:03, until 14:00`; past its time it is overdue, never over."""
    reason = f' "{flag.reason}"' if flag.reason else ""
    text = f"maintenance{reason} by {flag.by} since {day_and_time(flag.since, now, utc_offset_s)}"
    if flag.until is None:
        return text
    word = "overdue since" if flag.is_overdue(now) else "until"
    return f"{text}, {word} {day_and_time(flag.until, now, utc_offset_s)}"
