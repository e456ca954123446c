"""The fleet for a command that looks at it for a moment: what another process stores while that is fresh,
else what is polled here. Nothing is stored."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fleettui.fleet.bus import SnapshotBus, Subscriber
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot
from fleettui.store.database import Store, StoreError
from fleettui.store.flags import with_present_flags
from fleettui.store.snapshots import StoredFleet, load_for_routing

if TYPE_CHECKING:
    from fleettui.fleet.service import FleetService

log = logging.getLogger(__name__)

FOLLOW_S = 0.5
"""Between two looks at what is stored: 2 ms each for 64 machines."""
SETTLED_AFTER_S = 10.0
"""A machine that has not answered by then is not waited for."""


class LatestFleet:
    """Snapshots from either source; the first one at once, with what was stored however long ago."""

    def __init__(
        self,
        machines_dir: str,
        state_dir: str,
        make_service: Callable[[], FleetService],
        clock: Callable[[], float] = time.time,
        *,
        follows: bool = True,
    ) -> None:
        """`make_service`: called where machines have to be asked from here; what it takes is loaded then.

        `follows`: what another process stores will do; else nothing stored is looked at.
        """
        self.machines_dir = machines_dir
        self.state_dir = state_dir
        self.error: str | None = None
        """Why what is stored cannot be read, nor which host keys are approved; or why nobody is asked."""
        self._make_service = make_service
        self._clock = clock
        self._service: FleetService | None = None
        self._following: asyncio.Task[None] | None = None
        self._old: Mapping[str, MachineSnapshot] = {}
        self._polling_since = 0.0
        self._has_settled = False
        self._stored = self._read() if follows else None
        self._bus = SnapshotBus(FleetSnapshot(0, clock(), 2.0, machines_dir=machines_dir))

    @property
    def snapshot(self) -> FleetSnapshot:
        """The newest one."""
        return self._bus.latest

    @property
    def is_settled(self) -> bool:
        """Every machine has answered once, failed, or had its time."""
        service = self._service
        if service is not None and not self._has_settled:
            has_waited = self._clock() - self._polling_since > SETTLED_AFTER_S
            self._has_settled = has_waited or (
                bool(service.snapshot.machines) and all(poller.is_settled for poller in service.pollers)
            )
        return self._has_settled

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call back on each new snapshot; the answer ends that."""
        return self._bus.subscribe(subscriber)

    @property
    def is_stored_fresh(self) -> bool:
        """Another process asks the machines and stores what they say."""
        return self._stored is not None and self._stored.is_fresh(self._clock())

    async def start(self) -> None:
        """Show what is stored; poll where nobody else does."""
        if self._stored is not None and self.is_stored_fresh:
            self._has_settled = True
            self._publish(self._stored.fleet)
            self._following = asyncio.create_task(self._follow())
            self._following.add_done_callback(self._note_end)
        else:
            await self._poll()

    async def stop(self) -> None:
        """End either."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._service is not None:
            await self._service.stop()

    def poll_now(self) -> None:
        """Ask every machine at once, also those that failed; who follows another process sees its polls."""
        if self._service is not None:
            self._service.poll_now()

    def _read(self) -> StoredFleet | None:
        """The last stored snapshot with the flags of now. Never raises."""
        folder = self.machines_dir
        self.error = None
        try:
            store = Store.open_readonly(self.state_dir)
            if store is None:
                return None
            with store:
                stored = load_for_routing(store, folder)
                if stored is None:
                    return None
                return replace(stored, fleet=with_present_flags(store, folder, stored.fleet))
        except StoreError as error:
            self.error = str(error)
            return None

    async def _follow(self) -> None:
        """Until its writer falls silent; then the machines are asked from here."""
        while self.is_stored_fresh:
            await asyncio.sleep(FOLLOW_S)
            newer = await asyncio.to_thread(self._read)
            if newer is None:
                continue
            if self._stored is None or _is_news(self._stored, newer):
                self._publish(newer.fleet)
            self._stored = newer
        await self._poll()

    def _note_end(self, following: asyncio.Task[None]) -> None:
        """Nobody waits for it: that it failed would never be told."""
        error = None if following.cancelled() else following.exception()
        if error is not None:
            log.error("the fleet is not followed any more", exc_info=error)
            self.error = f"what is shown grew old: {type(error).__name__}: {error}"

    async def _poll(self) -> None:
        stored = self._stored
        if stored is not None:
            self._old = {item.name: item for item in stored.fleet.machines}
            asked = LinkStatus("connecting")
            machines = [replace(item, link=asked, health="unknown") for item in stored.fleet.machines]
            self._publish(replace(stored.fleet, machines=tuple(machines)))
        self._polling_since, self._has_settled = self._clock(), False
        service = self._service = self._make_service()
        service.subscribe(self._take)
        await service.start()

    def _take(self, fleet: FleetSnapshot) -> None:
        """Machines that have not answered yet are shown as they were stored, and as being asked."""
        if self._old:
            fleet = replace(fleet, machines=tuple(map(self._with_old, fleet.machines)))
        self._publish(fleet)

    def _with_old(self, machine: MachineSnapshot) -> MachineSnapshot:
        old = self._old.get(machine.name)
        has_answered = bool(machine.engines) or machine.link.state == "failed" or machine.trust != "approved"
        if old is None or has_answered:
            return machine
        return replace(
            old,
            machine=machine.machine,
            link=machine.link,
            trust=machine.trust,
            maintenance=machine.maintenance,
            health="unknown",
        )

    def _publish(self, fleet: FleetSnapshot) -> None:
        self._bus.publish(replace(fleet, seq=self._bus.latest.seq + 1))


def _is_news(before: StoredFleet, newer: StoredFleet) -> bool:
    """Stored since, or somebody set or cleared a flag."""
    if newer.written_at != before.written_at:
        return True
    flags, old = ([(item.maintenance, item.drain) for item in one.fleet.machines] for one in (newer, before))
    return flags != old
