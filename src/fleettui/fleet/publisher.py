"""Makes a snapshot of the fleet of what its machines said lately, and publishes it on the bus."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Collection, Mapping

from fleettui.fleet.bus import SnapshotBus
from fleettui.fleet.driver_watch import DriverWatch
from fleettui.fleet.inbox import ANSWER_KINDS
from fleettui.fleet.poller import MachinePoller
from fleettui.model.catalog import EMPTY_CATALOG
from fleettui.model.machine import ConfigProblem
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot

PUBLISH_DELAY_S = 0.2
"""Frames that arrive together become one snapshot: 64 machines on one grid would else make 192 of them."""

MACHINES_AT_ONCE = 32
"""Read and judged in one go, then keys and sockets get their turn: 256 at once take a tenth of a second."""

GOES_TO_A_SNAPSHOT = 2
"""So many goes become one: each snapshot is compared, kept, told and painted."""

log = logging.getLogger(__name__)


class SnapshotPublisher:
    """Knows which machines have news; freezes those anew, leaves the others as they are."""

    def __init__(
        self, bus: SnapshotBus, pollers: Mapping[str, MachinePoller], clock: Callable[[], float]
    ) -> None:
        self.interval_s = bus.latest.interval_s
        self.order: tuple[str, ...] = ()
        """Names of the machines to show, in natural order."""
        self.problems: tuple[ConfigProblem, ...] = ()
        self.catalog = EMPTY_CATALOG
        self.catalog_problems: tuple[ConfigProblem, ...] = ()
        self.paused_at: float | None = None
        """Since when nobody is asked because the operator paused."""
        self._bus = bus
        self._pollers = pollers
        self._clock = clock
        self._frozen: dict[str, MachineSnapshot] = {}
        self._drivers = DriverWatch()
        self._dirty: set[str] = set()
        self._goes = 0
        """Since the last snapshot."""
        self._handle: asyncio.TimerHandle | None = None

    def note_change(self, *names: str) -> None:
        """These machines have news; they are in the next snapshot."""
        self._dirty.update(names)

    def forget(self, name: str) -> None:
        """The machine is gone."""
        self._frozen.pop(name, None)
        self._drivers.forget(name)
        self._dirty.discard(name)

    def schedule(self) -> None:
        """Publish soon, together with what comes until then."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(PUBLISH_DELAY_S, self._publish)

    def publish_all(self) -> None:
        """Publish now, until nothing is left to read."""
        self._publish()
        while self._dirty:
            self._publish()
        self._cancel()

    def stop(self) -> None:
        """Publish no more."""
        self._dirty.clear()
        self._cancel()

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _all_problems(self, before: tuple[ConfigProblem, ...]) -> tuple[ConfigProblem, ...]:
        """Of machine files and the catalog; the same object while they stay the same."""
        problems = (*self.problems, *self.catalog_problems)
        return before if problems == before else problems

    def _read_answers(self, names: Collection[str]) -> None:
        """Parse what arrived, one kind for all these machines after the other."""
        for kind in ANSWER_KINDS:
            for name in names:
                try:
                    self._pollers[name].read_answers(kind)
                except Exception:
                    log.exception("the answers of %s cannot be read", name)

    def _publish(self) -> None:
        self._cancel()
        now = self._clock()
        offset_s = time.localtime(now).tm_gmtoff
        names = tuple(itertools.islice(self._dirty, MACHINES_AT_ONCE))
        self._dirty.difference_update(names)
        self._read_answers(names)
        for name in names:
            try:
                self._frozen[name] = self._pollers[name].record.freeze(now, self.interval_s, offset_s)
                self._drivers.look_at(name, self._frozen[name].gpu)
            except Exception:
                # A defect of ours on one machine's answers must not stop the news of all others.
                log.exception("the readings of %s cannot be judged", name)
        for name, notes in self._drivers.changed_notes().items():
            if name in self._pollers:
                self._pollers[name].record.fleet_notes = notes
                self._dirty.add(name)
        self._goes += 1
        if self._dirty:
            self._cancel()
            self._handle = asyncio.get_running_loop().call_later(0, self._publish)
            if self._goes < GOES_TO_A_SNAPSHOT:
                return
        self._goes = 0
        before = self._bus.latest
        self._bus.publish(
            FleetSnapshot(
                seq=before.seq + 1,
                taken_at=now,
                interval_s=self.interval_s,
                machines=tuple(self._frozen[name] for name in self.order if name in self._frozen),
                problems=self._all_problems(before.problems),
                machines_dir=before.machines_dir,
                paused_at=self.paused_at,
                catalog=self.catalog,
            )
        )
