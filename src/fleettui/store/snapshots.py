"""The last snapshot of each fleet, so that a script can route without polling."""

from __future__ import annotations

import os
import time

from fleettui.model.catalog import Catalog
from fleettui.model.record import dataclass
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.store.catalog import load_catalog, save_catalog
from fleettui.store.codec import MachineEncoder, decode, decode_machine, encode, seal, unseal
from fleettui.store.database import Store
from fleettui.store.routing_part import RoutingEncoder, decode_for_routing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Literal

FRESH_INTERVALS = 2.0
"""Of its writer: as old as that a stored snapshot is the present."""
_MEMO = "snapshots"


@dataclass(frozen=True, slots=True)
class SnapshotWriter:
    """The process that stored a snapshot."""

    pid: int
    kind: str
    """`dashboard`, `watch`, `serve`, …"""


@dataclass(frozen=True, slots=True)
class StoredFleet:
    """A fleet snapshot as it was stored."""

    fleet: FleetSnapshot
    written_at: float
    """Epoch seconds."""
    interval_s: float
    """The writer's polling interval."""
    writer: SnapshotWriter

    def age_s(self, now: float) -> float:
        """Seconds since it was stored."""
        return max(0.0, now - self.written_at)

    def is_fresh(self, now: float, max_age_s: float | None = None) -> bool:
        """Its writer still runs, or it is no older than that; one of the future never is."""
        limit_s = self.interval_s * FRESH_INTERVALS if max_age_s is None else max_age_s
        return 0 <= now - self.written_at <= limit_s


def save_snapshot(
    store: Store,
    fleet: FleetSnapshot,
    changed: Collection[str],
    *,
    writer: str = "dashboard",
    written_at: float | None = None,
    is_whole: bool = True,
) -> None:
    """Stores the fleet in one transaction: the machines named in `changed` and those not stored yet.

    Without `is_whole` only what routing reads is brought up to date, at a third of the price; a machine not
    stored yet is stored whole all the same.
    Machines that are no longer in the fleet are deleted. Raises StoreError (StoreBusyError: leave it,
    the next snapshot comes soon).
    """
    machines_dir = os.path.realpath(fleet.machines_dir)
    now = time.time() if written_at is None else written_at
    encoders = store.memo.setdefault(_MEMO, _Encoders())
    assert isinstance(encoders, _Encoders)  # noqa: S101  (only this module writes that entry)
    names = [machine.machine.name for machine in fleet.machines]
    rest = encode((fleet.seq, names, fleet.problems, fleet.machines_dir))
    parts: dict[str, str] = {}
    texts: dict[str, tuple[str, str]] = {}
    for machine in fleet.machines:
        if machine.machine.name not in changed:
            continue
        if is_whole:
            texts[machine.machine.name] = _texts_of(machine, encoders)
        else:
            parts[machine.machine.name] = seal(encoders.routing.encode(machine))
    if encoders.catalogs.get(machines_dir) is not fleet.catalog:
        save_catalog(store, machines_dir, fleet.catalog, now)
        encoders.catalogs[machines_dir] = fleet.catalog
    with store.transaction() as connection:
        stored = {
            name
            for (name,) in connection.execute(
                "SELECT name FROM machine_snapshots WHERE machines_dir = ?", (machines_dir,)
            )
        }
        for machine in fleet.machines:
            if machine.machine.name not in texts and machine.machine.name not in stored:
                texts[machine.machine.name] = _texts_of(machine, encoders)
                parts.pop(machine.machine.name, None)
        connection.executemany(
            "UPDATE machine_snapshots SET seq = ?, taken_at = ?, routing = ? "
            "WHERE machines_dir = ? AND name = ?",
            [
                (machine.seq, fleet.taken_at, parts[machine.machine.name], machines_dir, machine.machine.name)
                for machine in fleet.machines
                if machine.machine.name in parts
            ],
        )
        connection.executemany(
            "INSERT INTO machine_snapshots (machines_dir, name, seq, taken_at, routing, payload) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (machines_dir, name) DO UPDATE SET seq = excluded.seq, "
            "taken_at = excluded.taken_at, routing = excluded.routing, payload = excluded.payload",
            [
                (
                    machines_dir,
                    machine.machine.name,
                    machine.seq,
                    fleet.taken_at,
                    *texts[machine.machine.name],
                )
                for machine in fleet.machines
                if machine.machine.name in texts
            ],
        )
        for name in stored.difference(names):
            connection.execute(
                "DELETE FROM machine_snapshots WHERE machines_dir = ? AND name = ?", (machines_dir, name)
            )
            encoders.forget(name)
        connection.execute(
            "INSERT OR REPLACE INTO fleet_snapshots "
            "(machines_dir, written_at, taken_at, interval_s, writer_pid, writer_kind, payload) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (machines_dir, now, fleet.taken_at, fleet.interval_s, os.getpid(), writer, seal(rest)),
        )


def load_snapshot(store: Store, machines_dir: str) -> StoredFleet | None:
    """The last snapshot of that folder; None where there is none, or none that this version can read.

    Raises StoreError when the file itself is damaged or cannot be read.
    """
    return _load(store, machines_dir, "payload", decode_machine)


def load_for_routing(store: Store, machines_dir: str) -> StoredFleet | None:
    """Like `load_snapshot`, with no more of each machine than routing reads."""
    return _load(store, machines_dir, "routing", decode_for_routing)


def _load(
    store: Store,
    machines_dir: str,
    column: Literal["routing", "payload"],
    decode_one: Callable[[str], MachineSnapshot | None],
) -> StoredFleet | None:
    key = os.path.realpath(machines_dir)
    with store.transaction("DEFERRED") as connection:
        row = connection.execute(
            "SELECT written_at, taken_at, interval_s, writer_pid, writer_kind, payload "
            "FROM fleet_snapshots WHERE machines_dir = ?",
            (key,),
        ).fetchone()
        if row is None:
            return None
        texts = connection.execute(
            f"SELECT name, {column} FROM machine_snapshots WHERE machines_dir = ?",  # noqa: S608 - ours
            (key,),
        ).fetchall()
    written_at, taken_at, interval_s, pid, kind, rest = row
    if not _are_numbers(written_at, taken_at, interval_s, pid):
        return None
    head = decode(unseal(rest) or "")
    if not isinstance(head, list) or len(head) != 4 or not isinstance(head[1], list):
        return None
    seq, names, problems, own_dir = head
    machines = _machines_in(texts, names, decode_one)
    if machines is None or type(seq) is not int or type(problems) is not list or type(own_dir) is not str:
        return None
    catalog = load_catalog(store, key)
    fleet = FleetSnapshot(seq, taken_at, interval_s, machines, tuple(problems), own_dir, catalog=catalog)
    return StoredFleet(fleet, written_at, interval_s, SnapshotWriter(pid, str(kind)))


class _Encoders:
    """What one process keeps between its writes."""

    def __init__(self) -> None:
        self.routing = RoutingEncoder()
        self.whole = MachineEncoder()
        self.catalogs: dict[str, Catalog] = {}
        """As stored, by folder of machine files."""

    def forget(self, name: str) -> None:
        self.routing.forget(name)
        self.whole.forget(name)


def _texts_of(machine: MachineSnapshot, encoders: _Encoders) -> tuple[str, str]:
    """What is stored of a machine: columns `routing` and `payload`."""
    return seal(encoders.routing.encode(machine)), seal(encoders.whole.encode(machine))


def _machines_in(
    rows: list[tuple[object, object]],
    names: list[object],
    decode_one: Callable[[str], MachineSnapshot | None],
) -> tuple[MachineSnapshot, ...] | None:
    """The machines in the order of `names`; None unless every one can be read."""
    texts = dict(rows)
    machines: list[MachineSnapshot] = []
    for name in names:
        machine = decode_one(unseal(texts.get(name)) or "")
        if machine is None or machine.machine.name != name:
            return None
        machines.append(machine)
    return tuple(machines)


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) for value in values)
