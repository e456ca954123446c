"""The fleet's timeline while it runs: derives events from the snapshots, keeps the newest, stores them."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import insort
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from operator import attrgetter

from fleettui.decide.fleet_events import (
    REPEAT_WINDOW_S,
    added_event,
    decisions_of,
    join_repetition,
    problem_events,
    removed_event,
    trust_events,
)
from fleettui.decide.trust import TrustTable
from fleettui.fleet.bus import SnapshotBus
from fleettui.fleet.event_keeper import EventKeeper, Past
from fleettui.fleet.event_watch import MachineWatch
from fleettui.fleet.flags import FlagBook
from fleettui.fleet.keeper import WHOLE_PERIOD_S, SnapshotKeeper
from fleettui.fleet.trust_gate import TrustGate
from fleettui.model.event import Event
from fleettui.model.machine import ConfigProblem
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot

KEPT_EVENTS = 2_000
RENEW_S = 5.0
"""How often the claim to write is renewed; others take it over after 15 s."""
GATHER_S = 0.3
"""Events that come together are stored together."""
ABSENT_S = 2.0
"""A machine that is connected anew is missing in a snapshot or two; its file is not gone."""
CLOSE_S = 3.0

EventSubscriber = Callable[[tuple[Event, ...]], None]

log = logging.getLogger(__name__)


class EventLog:
    """A subscriber of the snapshot bus; screens subscribe to it, or read `events`."""

    def __init__(
        self,
        keeper: EventKeeper | None = None,
        decisions: Callable[[], TrustTable | None] = lambda: None,
        clock: Callable[[], float] = time.time,
        utc_offset_s: Callable[[], int] = lambda: time.localtime().tm_gmtoff,
        who_undrained: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._keeper = keeper
        """None: nothing is stored."""
        self._decisions = decisions
        self._clock = clock
        self._utc_offset_s = utc_offset_s
        self._who_undrained = who_undrained
        """Of a machine's name; a flag that is gone tells nothing any more."""
        self._events: list[Event] = []
        self._recent: dict[tuple[str, str, str], Event] = {}
        self._told: frozenset[tuple[str, str, str]] = frozenset()
        self._watches: dict[str, MachineWatch] = {}
        self._problems: tuple[ConfigProblem, ...] = ()
        self._table: TrustTable | None = None
        self._looked_at: float | None = None
        """When an earlier run looked last."""
        self._has_base = False
        self._unstored: list[Event] = []
        self._has_news = asyncio.Event()
        self._subscribers: dict[int, EventSubscriber] = {}
        self._next_id = 0
        self._unsubscribe: Callable[[], None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    # -- what front ends use -------------------------------------------------------------------------

    @property
    def events(self) -> tuple[Event, ...]:
        """The newest 2,000, of the last day also those of earlier runs; the oldest first."""
        return tuple(self._events)

    @property
    def error(self) -> str | None:
        """Why events are not stored; None while all is well."""
        return None if self._keeper is None else self._keeper.error

    def subscribe(self, subscriber: EventSubscriber) -> Callable[[], None]:
        """Hear of new events, and of those that happened again, in the event loop. Returns the call that
        ends it."""
        self._next_id += 1
        key = self._next_id
        self._subscribers[key] = subscriber
        return lambda: self._subscribers.pop(key, None) and None

    def add(self, event: Event) -> None:
        """Something that no snapshot shows: what this process was asked to do, and what came of it."""
        self._tell([event])

    def start(self, bus: SnapshotBus) -> None:
        """Begin to watch; what an earlier run left is read beside."""
        self._task = asyncio.create_task(self._run(bus), name="event log")

    async def close(self) -> None:
        """Store what is not stored yet; bounded, whatever the disk does."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CLOSE_S)
        for watch in self._watches.values():
            self._tell(watch.release())
        if self._keeper is not None and self._thread is not None:
            last = asyncio.get_running_loop().run_in_executor(self._thread, self._close_keeper)
            await asyncio.wait([last], timeout=CLOSE_S)
            self._thread.shutdown(wait=False)
            self._thread = None

    # -- watching ------------------------------------------------------------------------------------

    def begin(self, past: Past) -> None:
        """Start from what an earlier run left."""
        self._events = [*past.events][-KEPT_EVENTS:]
        self._recent = {_identity(event): event for event in past.events}
        if past.fleet is None:
            return
        self._has_base, self._looked_at = True, past.written_at
        if not past.has_ended:
            limit = past.written_at - WHOLE_PERIOD_S
            self._told = frozenset(_identity(event) for event in past.events if event.ended_at >= limit)
        self._problems = past.fleet.problems
        for machine in past.fleet.machines:
            self._watches[machine.machine.name] = MachineWatch(machine, past.written_at)

    def take(self, fleet: FleetSnapshot) -> None:
        """A new snapshot of the fleet."""
        now = fleet.taken_at
        found: list[Event] = []
        offset_s = self._utc_offset_s()
        for snapshot in fleet.machines:
            name = snapshot.machine.name
            watch = self._watches.get(name)
            if watch is None:
                watch = self._watches[name] = MachineWatch()
                if self._has_base:
                    found.append(added_event(snapshot.machine, now))
            elif watch.done_with is snapshot and watch.absent_since is None:
                continue  # nearly all machines: a snapshot of the fleet brings news of a few
            watch.absent_since = None
            found += map(
                self._with_whoever_undrained,
                watch.look(
                    snapshot, now, interval_s=fleet.interval_s, utc_offset_s=offset_s, told=self._told
                ),
            )
        if len(self._watches) != len(fleet.machines):
            present = {snapshot.machine.name for snapshot in fleet.machines}
            for name, watch in self._watches.items():
                if name not in present and watch.absent_since is None:
                    watch.absent_since = now
            found += self._removed(now)
        if fleet.problems is not self._problems:
            found += self._file_events(fleet, now)
        found += self._trust_events(now)
        self._has_base = True
        self._tell(found)

    def _with_whoever_undrained(self, event: Event) -> Event:
        if event.kind != "drain" or event.subject != "off":
            return event
        return replace(event, by=self._who_undrained(event.machine))

    def _file_events(self, fleet: FleetSnapshot, now: float) -> list[Event]:
        before, self._problems = self._problems, fleet.problems
        if not self._has_base:
            return []
        names = {item.machine.config_file: item.machine.name for item in fleet.machines}
        return problem_events(before, fleet.problems, names, now)

    def _removed(self, now: float) -> list[Event]:
        """Machines that stay away; an absence of a moment is a new connection."""
        found = []
        for name, watch in tuple(self._watches.items()):
            if watch.absent_since is not None and now - watch.absent_since >= ABSENT_S:
                del self._watches[name]
                if watch.base is not None:
                    found.append(removed_event(watch.base.machine, watch.absent_since))
        return found

    def _trust_events(self, now: float) -> list[Event]:
        table = self._decisions()
        if table is None or table is self._table:
            return []
        before, self._table = self._table, table
        if before is not None:
            return trust_events(before.decisions, table.decisions, now)
        if self._looked_at is None:
            return []
        return trust_events(decisions_of(self._looked_at, table.decisions), table.decisions, now)

    def _tell(self, events: Sequence[Event]) -> None:
        events = [event for event in events if not self._is_told_already(event)]
        if not events:
            return
        told = [self._keep(event) for event in events]
        if self._keeper is not None:
            self._unstored += told
            self._has_news.set()
        for subscriber in tuple(self._subscribers.values()):
            try:
                subscriber(tuple(told))
            except Exception:
                log.exception("a subscriber of events failed")

    def _is_told_already(self, event: Event) -> bool:
        """Short runs leave no snapshot, so each of them finds the same since somebody looked."""
        earlier = self._recent.get(_identity(event)) if event.kind == "unseen" else None
        return earlier is not None and earlier.text == event.text

    def _keep(self, event: Event) -> Event:
        """The event as it is told: with the one that it repeats, if it does."""
        earlier = self._recent.get(_identity(event))
        joined = join_repetition(earlier, event)
        if joined is not None:
            for index in range(len(self._events) - 1, -1, -1):
                if self._events[index] is earlier:
                    self._events[index] = joined
                    break
            event = joined
        elif not self._events or self._events[-1].at <= event.at:
            self._events.append(event)
        else:
            insort(self._events, event, key=attrgetter("at"))
        del self._events[:-KEPT_EVENTS]
        self._recent[_identity(event)] = event
        if len(self._recent) > 2 * KEPT_EVENTS:
            limit = event.at - REPEAT_WINDOW_S
            kept = [item for item in self._recent.items() if item[1].ended_at >= limit]
            self._recent = dict(kept[-KEPT_EVENTS:])
        return event

    # -- storing -------------------------------------------------------------------------------------

    async def _run(self, bus: SnapshotBus) -> None:
        loop = asyncio.get_running_loop()
        keeper = self._keeper
        if keeper is not None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="event keeper")
            self.begin(await loop.run_in_executor(self._thread, keeper.load, self._clock()))
        self._unsubscribe = bus.subscribe(self.take)
        if bus.latest.seq > 0:
            self.take(bus.latest)
        while True:
            if keeper is not None and self._thread is not None:
                events, self._unstored = self._unstored, []
                await loop.run_in_executor(self._thread, keeper.write, events, self._clock())
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S):
                    await self._has_news.wait()
                await asyncio.sleep(GATHER_S)
            self._has_news.clear()
            self._tell(self._removed(self._clock()))

    def _close_keeper(self) -> None:
        assert self._keeper is not None  # noqa: S101 - the caller looked
        now = self._clock()
        self._keeper.write(self._unstored, now)
        self._keeper.close(now)


def make_event_log(
    machines_dir: str,
    keeper: SnapshotKeeper | None,
    gate: TrustGate | None,
    clock: Callable[[], float],
    flags: FlagBook | None = None,
) -> EventLog:
    """The log of a service; it stores events where the service stores snapshots."""
    writer = None if keeper is None else EventKeeper(keeper.state_dir, machines_dir, keeper.writer)
    return EventLog(
        writer,
        lambda: gate.book.table if gate is not None else None,
        clock,
        who_undrained=lambda name: None if flags is None else flags.flags.undrained_by.get(name),
    )


def _identity(event: Event) -> tuple[str, str, str]:
    return event.machine, event.kind, event.subject
