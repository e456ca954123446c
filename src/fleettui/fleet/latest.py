"""The fleet for a command that looks at it for a moment: what another process stores while that is fresh,
else what is polled here. Nothing is stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from fleettui.fleet.bus import SnapshotBus, Subscriber
from fleettui.fleet.needs import Needs
from fleettui.fleet.service import FleetService, FleetSettings
from fleettui.model.record import replace
from fleettui.model.snapshot import FleetSnapshot, LinkStatus, MachineSnapshot
from fleettui.net.connector import Connector
from fleettui.store.database import Store, StoreError
from fleettui.store.flags import with_present_flags
from fleettui.store.snapshots import StoredFleet, load_for_routing

CHOOSING = Needs(rates=False, disks=False, processes=False, condition=False)
"""What one chooses a machine by: free VRAM, models, whether it is well."""
FOLLOW_S = 0.5
"""Between two looks at what is stored: 2 ms each for 64 machines."""
SETTLED_AFTER_S = 10.0
"""A machine that has not answered by then is not waited for."""


class LatestFleet:
    """Snapshots from either source; the first one at once, with what was stored however long ago."""

    def __init__(
        self,
        settings: FleetSettings,
        connector: Callable[[], Connector],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = replace(settings, needs=CHOOSING)
        self.error: str | None = None
        """Why what is stored cannot be read; host keys that were approved are not known then either."""
        self._connector = connector
        self._clock = clock
        self._service: FleetService | None = None
        self._following: asyncio.Task[None] | None = None
        self._old: Mapping[str, MachineSnapshot] = {}
        self._polling_since = 0.0
        self._has_settled = False
        self._bus = SnapshotBus(
            FleetSnapshot(0, clock(), settings.interval_s, machines_dir=settings.machines_dir)
        )

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

    async def start(self) -> None:
        """Show what is stored; poll where nobody else does."""
        stored = await asyncio.to_thread(self._read)
        if stored is not None and stored.is_fresh(self._clock()):
            self._has_settled = True
            self._publish(stored.fleet)
            self._following = asyncio.create_task(self._follow(stored))
            return
        await self._poll(stored)

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
        folder = self.settings.machines_dir
        self.error = None
        try:
            store = Store.open_readonly(self.settings.state_dir or "")
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

    async def _follow(self, stored: StoredFleet) -> None:
        """Until its writer falls silent; then the machines are asked from here."""
        while stored.is_fresh(self._clock()):
            await asyncio.sleep(FOLLOW_S)
            newer = await asyncio.to_thread(self._read)
            if newer is not None and newer.written_at != stored.written_at:
                self._publish(newer.fleet)
            stored = newer or stored
        await self._poll(stored)

    async def _poll(self, stored: StoredFleet | None) -> None:
        if stored is not None:
            self._old = {item.name: item for item in stored.fleet.machines}
            asked = LinkStatus("connecting")
            machines = [replace(item, link=asked, health="unknown") for item in stored.fleet.machines]
            self._publish(replace(stored.fleet, machines=tuple(machines)))
        self._polling_since, self._has_settled = self._clock(), False
        service = self._service = FleetService(self.settings, self._connector(), clock=self._clock)
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
