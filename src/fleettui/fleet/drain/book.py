"""Drains in the state database, read and written by a thread of their own: the event loop never waits."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from fleettui.decide.knowledge import RouteKnowledge
from fleettui.decide.lease_terms import lease_on
from fleettui.fleet.drain.knowledge import load_all_knowledge
from fleettui.fleet.drain.words import DrainError
from fleettui.fleet.trust_words import operator_name
from fleettui.fleet.warm_up import WarmedUp, keep_measured
from fleettui.model.drain import CopyProgress, Drain, DrainLock, DrainStatus, JournalEntry
from fleettui.model.lease import Lease
from fleettui.model.names import canonical_name
from fleettui.model.record import replace
from fleettui.model.route import RouteCandidate
from fleettui.model.snapshot import FleetSnapshot
from fleettui.store.database import Store, StoreError
from fleettui.store.drain_unloads import Standing, write_unload
from fleettui.store.drains import (
    LOCK_STALE_S,
    append_journal,
    beat_lock,
    change_drain,
    load_drain,
    load_drains,
    load_journal,
    load_load_locks,
    release_lock,
    save_copies,
    start_drains,
    take_lock,
)
from fleettui.store.leases import drop_leases, load_leases, new_lease_id, take_lease

if TYPE_CHECKING:
    from fleettui.store.drains import Begin, Change

Result = TypeVar("Result")


class DrainBook:
    """Every call raises DrainError where the state database does not answer."""

    def __init__(self, state_dir: str, machines_dir: str, clock: Callable[[], float]) -> None:
        self.state_dir = state_dir
        self.machines_dir = machines_dir
        self.clock = clock
        self.by = operator_name()
        self.pid = os.getpid()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="drains")
        self._store: Store | None = None

    async def load(self, machine: str, entries: int = 200) -> DrainStatus | None:
        """One drain with all that is stored of it; None: the machine has none."""
        return await self._call(lambda store: load_drain(store, self.machines_dir, machine, entries=entries))

    async def load_drains(self) -> dict[str, Drain]:
        """Every drain that is on, by machine."""
        return await self._call(lambda store: load_drains(store, self.machines_dir))

    async def load_all(self) -> tuple[DrainStatus, ...]:
        """Every drain that is on, with all that is stored of it."""

        def load(store: Store) -> tuple[DrainStatus, ...]:
            found = [
                load_drain(store, self.machines_dir, name) for name in load_drains(store, self.machines_dir)
            ]
            return tuple([status for status in found if status is not None])

        return await self._call(load)

    async def load_journal(self, drain: Drain) -> tuple[JournalEntry, ...]:
        """The last steps of that very drain, also when its flag is off by now."""
        folder, entries = self.machines_dir, 50
        return await self._call(
            lambda store: load_journal(store, folder, drain.machine, drain.id, entries=entries)
        )

    async def load_leases(self) -> tuple[Lease, ...]:
        """Askers whose effect no poll has shown yet."""
        return await self._call(lambda store: load_leases(store, self.machines_dir, self.clock()))

    def lease_on(self, target: RouteCandidate) -> Lease:
        """The lease of a load there that begins now."""
        return lease_on(
            target,
            canonical_name(target.model),
            lease_id=new_lease_id(),
            now=self.clock(),
            pid=self.pid,
            owner=self.by.partition("@")[0],
        )

    async def take_lease(self, lease: Lease) -> None:
        """Let routing, and drains of other processes, see the room that a load takes; over by itself, should
        nobody drop it. Where this is cancelled it may be written all the same."""
        await self._call(lambda store: take_lease(store, self.machines_dir, lambda *_: lease, self.clock))

    async def drop_lease(self, lease: Lease) -> None:
        """That load is over."""
        await self._call(lambda store: drop_leases(store, self.machines_dir, (lease.id,)))

    async def load_knowledge(self, fleet: FleetSnapshot) -> RouteKnowledge:
        """All that routing knows beyond the snapshot, of every model of the fleet."""
        return await self._call(
            lambda store: load_all_knowledge(store, self.machines_dir, fleet, self.clock())
        )

    async def start_drains(self, machines: Sequence[str], begin: Begin) -> tuple[Drain, ...]:
        """Flag all these machines and write the starts down, or none where `begin`, called by another thread,
        raises."""
        return await self._call(lambda store: start_drains(store, self.machines_dir, machines, begin))

    async def change(
        self, machine: str, change: Change, entry: JournalEntry | None = None
    ) -> tuple[Drain | None, Drain | None]:
        """Change a flag and write the step down; what stood before and what stands now."""
        return await self._call(lambda store: change_drain(store, self.machines_dir, machine, change, entry))

    async def set_state(
        self,
        drain: Drain,
        change: Callable[[Drain], Drain],
        entry: JournalEntry,
        only_in: Collection[str] | None = None,
        by: str | None = None,
    ) -> Drain | None:
        """Change that very drain, `only_in` one of these states; None where it is gone, another one, or in
        another state by now: then nothing is changed. The step is written down all the same."""
        changed = False

        def apply(present: Drain | None) -> Drain | None:
            nonlocal changed
            if present is None or present.id != drain.id:
                return present
            if only_in is not None and present.state not in only_in:
                return present
            changed = True
            after = change(present)
            if after == present:
                return present
            return replace(after, changed_by=by or self.by, changed_at=self.clock())

        _, after = await self.change(drain.machine, apply, entry)
        return after if changed else None

    async def save(
        self, drain: Drain, copies: Sequence[CopyProgress], entry: JournalEntry | None = None
    ) -> bool:
        """How far each copy is, and the step that led there; False where the drain is another one by now."""
        kept = tuple(copies)
        return await self._call(lambda store: save_copies(store, self.machines_dir, drain, kept, entry))

    async def note(self, entry: JournalEntry) -> None:
        """Write a step down."""
        await self._call(lambda store: append_journal(store, self.machines_dir, entry))

    async def write_unload(self, entry: JournalEntry, check: Callable[[Standing], None]) -> None:
        """Write down that a copy is about to be unloaded. `check`, called by another thread, raises what is
        stored against it: nothing is written then, and nobody changes that between the look and the entry."""
        await self._call(lambda store: write_unload(store, self.machines_dir, entry, check))

    async def keep_measured(self, warmed: WarmedUp) -> None:
        """Keep what a load told of the machine and of the model."""
        await self._call(lambda store: keep_measured(store, self.machines_dir, warmed, self.clock()))

    def entry(
        self, drain: Drain, step: str, copy: str = "", target: str = "", result: str = "ok", call: str = ""
    ) -> JournalEntry:
        """A step of this moment, by us."""
        return JournalEntry(
            self.clock(), drain.machine, drain.id, self.by, self.pid, step, copy, target, result, call
        )

    # -- locks --------------------------------------------------------------------------------------

    async def take_lock(self, machine: str) -> DrainLock | None:
        """Become the worker of a drain; None where another one is alive."""
        now = self.clock()
        lock = DrainLock(machine, self.by, self.pid, now, now)
        held = await self._call(lambda store: take_lock(store, self.machines_dir, lock, self.is_dead))
        return lock if held == lock else None

    async def beat_lock(self, lock: DrainLock) -> bool:
        """Give a sign of life; False where somebody else took over."""
        return await self._call(lambda store: beat_lock(store, self.machines_dir, lock, self.clock()))

    async def release_lock(self, lock: DrainLock) -> None:
        """Let the next worker in."""
        await self._call(lambda store: release_lock(store, self.machines_dir, lock))

    async def load_load_locks(self) -> tuple[DrainLock, ...]:
        """Of other processes that load on a target now."""
        found = await self._call(lambda store: load_load_locks(store, self.machines_dir))
        return tuple([lock for lock in found if not self.is_ours(lock) and not self.is_dead(lock)])

    def is_dead(self, lock: DrainLock) -> bool:
        """No sign of life for a minute, or one of a time to come, as a clock leaves it that was wrong; or a
        process of this computer that has ended."""
        if abs(self.clock() - lock.beat_at) > LOCK_STALE_S:
            return True
        user, _, host = lock.holder.rpartition("@")
        return bool(user) and host == socket.gethostname() and not _is_running(lock.pid)

    def is_ours(self, lock: DrainLock | None) -> bool:
        """This process holds it."""
        return lock is not None and (lock.holder, lock.pid) == (self.by, self.pid)

    # -- the thread ---------------------------------------------------------------------------------

    async def _call(self, work: Callable[[Store], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)
        except StoreError as error:
            raise DrainError("state", "", f"drains cannot be followed: {error}") from None

    def _run(self, work: Callable[[Store], Result]) -> Result:
        if self._store is None:
            self._store = Store.open(self.state_dir)
        return work(self._store)

    async def close(self) -> None:
        """Close the file; more than once is fine."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another account's
        return True
    return True
