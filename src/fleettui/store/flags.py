"""Flags that the operator set on machines, kept for each machines folder by the machine's name."""

from __future__ import annotations

import os

from fleettui.model.record import dataclass, field, replace
from fleettui.model.snapshot import DrainFlag, FleetSnapshot, MaintenanceFlag

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping

    from fleettui.store.database import Store

    Change = Callable[[MaintenanceFlag | None], MaintenanceFlag | None]
    """From the flag as it stands to what it shall be; None: off. May raise to change nothing at all."""
    Outcome = tuple[MaintenanceFlag | None, MaintenanceFlag | None]
    """The flag before and after a change."""

_MAINTENANCE = "maintenance"
FLAG_REVISIONS = "flag_revisions"


@dataclass(frozen=True, slots=True)
class FleetFlags:
    """Every flag of a fleet that is on, by the machine's name."""

    maintenance: Mapping[str, MaintenanceFlag] = field(default_factory=dict)
    drains: Mapping[str, DrainFlag] = field(default_factory=dict)
    """With the state that was stored; what the machine shows may say more."""
    undrained_by: Mapping[str, str] = field(default_factory=dict)
    """Who took the last drain of a machine off; only where the flags are followed."""


def read_revision(store: Store, machines_dir: str) -> int:
    """Changes with every flag of that folder; 0 before the first. Raises StoreError."""
    with store.transaction("DEFERRED"):
        return store.read_revision(FLAG_REVISIONS, os.path.realpath(machines_dir))


def load_flags(store: Store, machines_dir: str) -> tuple[int, FleetFlags]:
    """The revision and every flag that is on, of one moment. Raises StoreError."""
    key = os.path.realpath(machines_dir)
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("machine_flags"):
            return 0, FleetFlags()
        rows = connection.execute(
            "SELECT name, reason, flagged_by, since, until FROM machine_flags "
            "WHERE machines_dir = ? AND kind = ?",
            (key, _MAINTENANCE),
        ).fetchall()
        maintenance = {name: MaintenanceFlag(*values) for name, *values in rows}
        rows = []
        if store.has_table("drains"):
            rows = connection.execute(
                "SELECT machine, state, reason, flagged_by, since, until, text, id, revision, changed_by, "
                "changed_at FROM drains WHERE machines_dir = ?",
                (key,),
            ).fetchall()
        drains = {machine: DrainFlag(*values) for machine, *values in rows}
        return store.read_revision(FLAG_REVISIONS, key), FleetFlags(maintenance, drains)


def with_present_flags(store: Store, machines_dir: str, fleet: FleetSnapshot) -> FleetSnapshot:
    """A stored fleet with the flags of this moment: one set since then holds at once. Raises StoreError."""
    _, flags = load_flags(store, machines_dir)
    machines, is_odd = [], False
    for machine in fleet.machines:
        name = machine.machine.name
        maintenance, drain = flags.maintenance.get(name), flags.drains.get(name)
        shown = machine.drain
        if (
            drain is not None
            and shown is not None
            and drain.id == shown.id
            and drain.revision == shown.revision
        ):
            drain = shown  # its state was compared with what the machine shows
        if machine.maintenance != maintenance or shown != drain:
            is_odd = True
            machines.append(replace(machine, maintenance=maintenance, drain=drain))
        else:
            machines.append(machine)
    return replace(fleet, machines=tuple(machines)) if is_odd else fleet


def load_fresh_fleet(
    store: Store, machines_dir: str, max_age_s: float | None, now: float
) -> FleetSnapshot | None:
    """What a running dashboard or `status --watch` stored, when it is fresh enough, with the flags of this
    moment. Raises StoreError."""
    from fleettui.store.snapshots import load_for_routing

    stored = load_for_routing(store, machines_dir)
    if stored is None or not stored.is_fresh(now, max_age_s):
        return None
    return with_present_flags(store, machines_dir, stored.fleet)


def change_maintenance(store: Store, machines_dir: str, changes: Mapping[str, Change]) -> dict[str, Outcome]:
    """Apply all changes or, when one raises, none; by name what stood before and what stands now.

    Raises StoreError.
    """
    folder = os.path.realpath(machines_dir)
    outcomes: dict[str, Outcome] = {}
    with store.transaction() as connection:
        for name, change in changes.items():
            row = connection.execute(
                "SELECT reason, flagged_by, since, until FROM machine_flags "
                "WHERE machines_dir = ? AND name = ? AND kind = ?",
                (folder, name, _MAINTENANCE),
            ).fetchone()
            before = None if row is None else MaintenanceFlag(*row)
            after = change(before)
            outcomes[name] = (before, after)
            if after != before:
                _write(connection, (folder, name, _MAINTENANCE), after)
        if any(before != after for before, after in outcomes.values()):
            store.raise_revision(FLAG_REVISIONS, folder)
    return outcomes


def forget_flags(store: Store, machines_dir: str, names: Collection[str]) -> bool:
    """Drop every flag of these machines; True where one had any. The journal of drains stays. Raises
    StoreError."""
    folder = os.path.realpath(machines_dir)
    dropped = 0
    with store.transaction() as connection:
        for name in names:
            for statement in _FORGET:
                dropped += connection.execute(statement, (folder, name)).rowcount
        if dropped:
            store.raise_revision(FLAG_REVISIONS, folder)
    return dropped > 0


_FORGET = (
    "DELETE FROM machine_flags WHERE machines_dir = ? AND name = ?",
    "DELETE FROM drains WHERE machines_dir = ? AND machine = ?",
    "DELETE FROM drain_copies WHERE machines_dir = ? AND machine = ?",
    "DELETE FROM drain_locks WHERE machines_dir = ? AND machine = ?",
)


def _write(connection: sqlite3.Connection, key: tuple[str, str, str], flag: MaintenanceFlag | None) -> None:
    if flag is None:
        connection.execute("DELETE FROM machine_flags WHERE machines_dir = ? AND name = ? AND kind = ?", key)
        return
    connection.execute(
        "INSERT OR REPLACE INTO machine_flags (machines_dir, name, kind, reason, flagged_by, since, until) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*key, flag.reason, flag.by, flag.since, flag.until),
    )
