"""Events as rows of JSON values, for another fleettui."""

from __future__ import annotations

from fleettui.model.event import EVENT_KINDS, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def event_row(event: Event) -> list[Any]:
    """The values of an event."""
    return [
        event.at, event.machine, event.kind, event.severity, event.text, dict(event.details), event.by,
        event.subject, event.count, event.last_at,
    ]  # fmt: skip


def read_event(row: object) -> Event | None:
    """The event of `event_row`'s values; None for anything else. Never raises."""
    if not isinstance(row, list) or len(row) != 10:
        return None
    at, machine, kind, severity, text, details, by, subject, count, last_at = row
    is_sound = (
        isinstance(at, int | float)
        and all(isinstance(word, str) for word in (machine, text, subject))
        and kind in EVENT_KINDS
        and severity in ("good", "note", "warn", "bad")
        and isinstance(details, dict)
        and (by is None or isinstance(by, str))
        and isinstance(count, int)
        and (last_at is None or isinstance(last_at, int | float))
    )
    return (
        Event(at, machine, kind, severity, text, details, by, subject, count, last_at) if is_sound else None
    )
