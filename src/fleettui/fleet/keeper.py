"""Stores the newest snapshot once an interval, so that `--route` answers without polling."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from fleettui.fleet.lease_watch import LeaseWatch
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.database import Store, StoreError
from fleettui.store.snapshots import save_snapshot

WHOLE_PERIOD_S = 30.0
"""Routing needs each snapshot; all the rest of a machine is stored this often only."""

log = logging.getLogger(__name__)


class SnapshotKeeper:
    """One writer thread over the state database; the event loop never waits for the disk."""

    def __init__(self, state_dir: str, writer: str) -> None:
        self.state_dir = state_dir
        self.writer = writer
        """Who stores: `dashboard`, `status --watch`."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="snapshot keeper")
        self._store: Store | None = None
        self._stored_seqs: dict[str, int] = {}
        self._whole_seqs: dict[str, int] = {}
        self._whole_at = 0.0
        self._leases = LeaseWatch()
        self._pending: asyncio.Future[None] | None = None
        self.error: str | None = None
        """Why nothing is stored; None while all is well."""

    def keep(self, fleet: FleetSnapshot) -> None:
        """Store what changed since the last call; dropped while the last write still runs."""
        if self._pending is not None and not self._pending.done():
            return
        loop = asyncio.get_running_loop()
        self._pending = loop.run_in_executor(self._thread, self._write, fleet)

    async def close(self, last: FleetSnapshot | None = None) -> None:
        """Finish the last write and close the database. `last`: stored whole, where anything was stored, so
        that the next run knows how this one left the machines."""
        if self._pending is not None:
            await asyncio.wait([self._pending], timeout=3.0)
        loop = asyncio.get_running_loop()
        if last is not None and self._whole_at:
            self._whole_at = 0.0
            await asyncio.wait([loop.run_in_executor(self._thread, self._write, last)], timeout=3.0)
        await loop.run_in_executor(self._thread, self._close_store)
        self._thread.shutdown(wait=False)

    def _write(self, fleet: FleetSnapshot) -> None:
        try:
            if self._store is None:
                self._store = Store.open(self.state_dir)
            is_whole = not 0 <= fleet.taken_at - self._whole_at < WHOLE_PERIOD_S  # clocks may be set back
            before = self._whole_seqs if is_whole else self._stored_seqs
            changed = {machine.name for machine in fleet.machines if before.get(machine.name) != machine.seq}
            save_snapshot(self._store, fleet, changed, writer=self.writer, is_whole=is_whole)
            self._leases.look_at(self._store, fleet)
            self._stored_seqs = {machine.name: machine.seq for machine in fleet.machines}
            if is_whole:
                self._whole_at, self._whole_seqs = fleet.taken_at, self._stored_seqs
            self.error = None
        except StoreError as error:
            if self.error is None:
                log.warning("snapshots are not stored: %s", error)
            self.error = f"snapshots are not stored, so --route polls by itself: {error}"

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
