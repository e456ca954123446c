"""The snapshot bus: holds the latest value; a subscriber may lag, it never blocks a poller."""

from __future__ import annotations

import logging
from collections.abc import Callable

from fleettui.model.snapshot import FleetSnapshot

Subscriber = Callable[[FleetSnapshot], None]

log = logging.getLogger(__name__)


class SnapshotBus:
    """Latest FleetSnapshot and who wants to hear of the next one."""

    def __init__(self, first: FleetSnapshot) -> None:
        self.latest = first
        self._subscribers: dict[int, Subscriber] = {}
        self._next_id = 0

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with each new snapshot, in the event loop. Returns the call that ends it."""
        self._next_id += 1
        key = self._next_id
        self._subscribers[key] = subscriber
        return lambda: self._subscribers.pop(key, None) and None

    def publish(self, snapshot: FleetSnapshot) -> None:
        """Make `snapshot` the latest and tell everybody; a subscriber that raises is logged, not fatal."""
        self.latest = snapshot
        for subscriber in tuple(self._subscribers.values()):
            try:
                subscriber(snapshot)
            except Exception:
                log.exception("a snapshot subscriber failed")
