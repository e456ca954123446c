"""Events as JSON: `fleettui events --json`."""

from __future__ import annotations

from collections.abc import Iterable

from fleettui.model.clock import iso_utc
from fleettui.model.event import Event
from fleettui.view.json_values import Document


def event_document(event: Event) -> Document:
    """One event; null where something does not apply."""
    return {
        "at": iso_utc(event.at),
        "machine": event.machine or None,
        "kind": event.kind,
        "severity": event.severity,
        "text": event.text,
        "by": event.by,
        "count": event.count,
        "last_at": None if event.last_at is None else iso_utc(event.last_at),
        "details": dict(event.details),
    }


def events_document(events: Iterable[Event], since: float | None, recorder: str | None) -> Document:
    """The whole answer. `recorder`: who writes events now, None: nobody."""
    return {
        "schema": 1,
        "since": None if since is None else iso_utc(since),
        "recorded_by": recorder,
        "events": [event_document(event) for event in events],
        "errors": [],
    }
