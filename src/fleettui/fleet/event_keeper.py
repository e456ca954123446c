"""Stores events of a fleet through a thread of its own; of several processes only one writes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from fleettui.model.event import Event
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.database import Store, StoreError
from fleettui.store.events import (
    append_events,
    claim_writing,
    prune_events,
    read_events,
    read_writer,
    release_writing,
)
from fleettui.store.snapshots import load_snapshot

PAST_S = 86_400.0
PAST_EVENTS = 500
"""So much of the stored timeline is shown from the start."""
PRUNE_PERIOD_S = 3600.0
MAX_WAITING = 2_000
"""Events kept while another process writes or the file cannot be written."""
KNOWN_HERE = ("action",)
"""Kinds that only the process knows where they happen: it stores them whoever writes the timeline."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Past:
    """What an earlier run left; no fleet while another process watches it."""

    fleet: FleetSnapshot | None = None
    written_at: float = 0.0
    """Epoch seconds at which that run looked last."""
    has_ended: bool = True
    """In order, with everything stored; what a killed run stored is older than what it told."""
    events: tuple[Event, ...] = ()


class EventKeeper:
    """Every call may take as long as the disk does: off the event loop, one at a time."""

    def __init__(self, state_dir: str, machines_dir: str, writer: str) -> None:
        self._state_dir = state_dir
        self._machines_dir = machines_dir
        self._writer = writer
        self._owner = f"{os.getpid()}:{time.time_ns()}"
        self._store: Store | None = None
        self._waiting: list[Event] = []
        self._is_writing = False
        self._pruned_at = float("-inf")
        self.error: str | None = None
        """Why nothing is stored; None while all is well."""

    def load(self, now: float) -> Past:
        """What an earlier run left, nothing where it cannot be read. Never raises."""
        try:
            store = Store.open_readonly(self._state_dir)
            if store is None:
                return Past()
            with store:
                writer = read_writer(store, self._machines_dir)
                is_watched = writer is not None and writer.is_alive(now)
                stored = None if is_watched else load_snapshot(store, self._machines_dir)
                _, events = read_events(store, self._machines_dir, since=now - PAST_S, limit=PAST_EVENTS)
        except StoreError as error:
            log.info("the timeline of earlier runs cannot be read: %s", error)
            return Past()
        if stored is None:
            return Past(events=events)
        has_ended = writer is None or not writer.owner
        return Past(stored.fleet, stored.written_at, has_ended, events)

    def write(self, events: Sequence[Event], now: float) -> None:
        """Store them, if this is the process that writes; renews that claim. Never raises."""
        self._waiting = [*self._waiting, *events][-MAX_WAITING:]
        try:
            if self._store is None:
                self._store = Store.open(self._state_dir)
            may_write, before = claim_writing(self._store, self._machines_dir, self._owner, self._writer, now)
            self._drop_told(may_write, None if before is None else before.renewed_at)
            ready = [event for event in self._waiting if may_write or event.kind in KNOWN_HERE]
            if ready:
                append_events(self._store, self._machines_dir, ready)
                left = [event for event in self._waiting if event.kind not in KNOWN_HERE]
                self._waiting = [] if may_write else left
            if may_write and now - self._pruned_at >= PRUNE_PERIOD_S:
                self._pruned_at = now
                prune_events(self._store, self._machines_dir, now)
            self.error = None
        except StoreError as error:
            if self.error is None:
                log.warning("events are not stored: %s", error)
            self.error = f"events are not stored: {error}"

    def close(self, now: float) -> None:
        """End writing, so that another process may begin; closes the file."""
        if self._store is None:
            return
        try:
            release_writing(self._store, self._machines_dir, self._owner, now)
        except StoreError as error:
            log.warning("the end of writing events cannot be told: %s", error)
        self._store.close()
        self._store = None

    def _drop_told(self, may_write: bool, renewed_at: float | None) -> None:
        """What happened up to the last renewal of another process was told by that one."""
        if may_write and self._is_writing:
            return
        if renewed_at is not None:
            self._waiting = [
                event for event in self._waiting if event.ended_at > renewed_at or event.kind in KNOWN_HERE
            ]
        self._is_writing = may_write
