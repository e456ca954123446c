"""One machine's part of the timeline: remembers what was told, gives the events of each new snapshot."""

from __future__ import annotations

from collections.abc import Collection
from operator import attrgetter

from fleettui.decide.copy_events import join_evictions
from fleettui.decide.events import events_between, is_read, is_reconnecting, settle
from fleettui.decide.fleet_events import join_unseen
from fleettui.model.event import Event
from fleettui.model.record import replace
from fleettui.model.snapshot import LinkStatus, MachineSnapshot

CATCH_UP_S = 15.0
"""A machine that was not read after so long is compared with the earlier run as it is then."""
HOLD_S = 3.0
"""A copy that went may have gone for another one, which the next answer of the engine shows."""

_parts = attrgetter("machine", "trust", "link", "health", "engines", "maintenance", "drain")
"""What events are made of. Most of it is the same object in the next snapshot, so comparing costs little."""


class MachineWatch:
    """`base`: the machine as it was last known; `unseen_since`: when the earlier run looked that knew it."""

    def __init__(self, base: MachineSnapshot | None = None, unseen_since: float | None = None) -> None:
        self.base = base
        self.absent_since: float | None = None
        """Epoch seconds at which it was not among the machines any more."""
        self.done_with: MachineSnapshot | None = None
        """The last snapshot; None where another look at it may tell more, once time has passed."""
        self._unseen_since = unseen_since
        self._unseen: list[Event] = []
        self._unseen_until: float | None = None
        self._held: list[Event] = []
        self._held_until = 0.0
        self._seen: tuple[object, ...] | None = None
        self._has_to_look = unseen_since is not None
        self._link: LinkStatus | None = None
        self._attempts = 0

    def look(
        self,
        snapshot: MachineSnapshot,
        now: float,
        *,
        interval_s: float,
        utc_offset_s: int | None = None,
        told: Collection[tuple[str, str, str]] = (),
    ) -> list[Event]:
        """The events of a new snapshot. `told`: machine, kind, subject of what the earlier run told last."""
        parts = _parts(snapshot)
        if not self._has_to_look and parts == self._seen:
            self.done_with = snapshot
            return []
        self._seen = parts
        self._count_attempt(snapshot.link)
        events = [self._with_attempts(e) for e in events_between(self.base, snapshot, now, utc_offset_s)]
        self.base = settle(self.base, snapshot, now)
        if self._unseen_since is None:
            events = self._hold(events, now, max(HOLD_S, 1.5 * interval_s))
        else:
            self._unseen += [e for e in events if (e.machine, e.kind, e.subject) not in told]
            events = self._end_catching_up(snapshot, now, utc_offset_s)
        self._has_to_look = (
            bool(self._held) or self._unseen_since is not None or is_reconnecting(snapshot, now)
        )
        self.done_with = None if self._has_to_look else snapshot
        return events

    def release(self) -> list[Event]:
        """What is still held back, as it stands."""
        events, self._held = [*self._unseen, *self._held], []
        self._unseen = []
        return events

    def _end_catching_up(
        self, snapshot: MachineSnapshot, now: float, utc_offset_s: int | None
    ) -> list[Event]:
        since = self._unseen_since
        if self._unseen_until is None:
            self._unseen_until = now + CATCH_UP_S
        if since is None or (not is_read(snapshot) and now < self._unseen_until):
            return []
        unseen, self._unseen, self._unseen_since = self._unseen, [], None
        return [join_unseen(snapshot.machine.name, unseen, since, now, utc_offset_s)] if unseen else []

    def _hold(self, events: list[Event], now: float, hold_s: float) -> list[Event]:
        """Copies that went wait for the one that took their place; they are told before it."""
        came = [event for event in events if event.kind == "loaded"]
        freed: list[Event] = []
        if self._held and (came or now >= self._held_until):
            freed, self._held = join_evictions(self._held, came), []
        gone = [event for event in events if event.kind == "unloaded"]
        if not gone:
            return [*freed, *events]
        if came:  # of another engine, so nothing comes that could explain them
            return [*freed, *events]
        self._held += gone
        self._held_until = now + hold_s
        return [*freed, *(event for event in events if event.kind != "unloaded")]

    def _count_attempt(self, link: LinkStatus) -> None:
        if link.state == "failed" and link is not self._link:
            self._attempts += 1
        self._link = link

    def _with_attempts(self, event: Event) -> Event:
        if event.kind != "back":
            return event
        attempts, self._attempts = self._attempts, 0
        if attempts < 2:
            return replace(event, details={**event.details, "attempts": attempts})
        text = f"{event.text} ({attempts} attempts failed)"
        return replace(event, text=text, details={**event.details, "attempts": attempts})
