"""The timeline of a front end that does not poll: what a server tells, or its own log while that is away."""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Callable, Sequence
from operator import attrgetter

from fleettui.model.event import Event

KEPT_EVENTS = 2_000

log = logging.getLogger(__name__)


class ServedEvents:
    """The newest events, each once."""

    error: str | None = None
    """The server keeps them."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._subscribers: dict[int, Callable[[tuple[Event, ...]], None]] = {}
        self._next_id = 0

    @property
    def events(self) -> tuple[Event, ...]:
        """Oldest first."""
        return tuple(self._events)

    def subscribe(self, subscriber: Callable[[tuple[Event, ...]], None]) -> Callable[[], None]:
        """Hear of new events; the answer ends that."""
        self._next_id += 1
        key = self._next_id
        self._subscribers[key] = subscriber
        return lambda: self._subscribers.pop(key, None) and None

    def take(self, events: Sequence[Event]) -> None:
        """Events that came; one that is there already is replaced: it happened again."""
        if not events:
            return
        places = {_identity(event): index for index, event in enumerate(self._events)}
        news = []
        for event in events:
            place = places.get(_identity(event))
            if place is None:
                news.append(event)
            elif self._events[place] != event:
                self._events[place] = event
                news.append(event)
        for event in news:
            if _identity(event) not in places:
                insort(self._events, event, key=attrgetter("at"))
        del self._events[:-KEPT_EVENTS]
        if news:
            self._tell(tuple(news))

    def _tell(self, events: tuple[Event, ...]) -> None:
        for subscriber in tuple(self._subscribers.values()):
            try:
                subscriber(events)
            except Exception:
                log.exception("a subscriber of events failed")


def _identity(event: Event) -> tuple[float, str, str, str]:
    return event.at, event.machine, event.kind, event.subject
