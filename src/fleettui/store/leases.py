"""Leases on choices of routing, kept for each machines folder: concurrent askers see each other's choices."""

from __future__ import annotations

import os
import time

from fleettui.model.lease import Lease
from fleettui.model.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection

    from fleettui.store.database import Store

    Choose = Callable[[tuple[Lease, ...], float], Lease | None]
    """From the leases that hold and the moment to the one to take; None: take none."""

LOCK_WAIT_S = 10.0
"""An asker's decision holds the file for milliseconds; a hundred of them at once wait for each other."""
CLOCK_SLACK_S = 60.0
"""A lease taken later than that from now is of a clock that was set back since: it is over."""
_ID_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's: none is taken for another when it is typed."""
_ID_LENGTH = 10
_COLUMNS = "id, machine, port, engine, model, kind, taken_at, until, vram_mib, gpu, digest, pid, owner"


def new_lease_id() -> str:
    """Ten letters and digits, of 128 random bits."""
    number = int.from_bytes(os.urandom(16), "big")
    return "".join(_ID_LETTERS[number >> 5 * place & 31] for place in range(_ID_LENGTH))


def load_leases(store: Store, machines_dir: str, now: float) -> tuple[Lease, ...]:
    """The leases of that folder that hold at `now`, oldest first. Raises StoreError."""
    with store.transaction("DEFERRED"):
        return _read(store, os.path.realpath(machines_dir), now) if store.has_table("leases") else ()


def take_lease(
    store: Store, machines_dir: str, choose: Choose, clock: Callable[[], float] = time.time
) -> Lease | None:
    """Choose with all leases that hold in view, and write the choice, in one step: who asks next sees it.

    `choose` may raise to take none. Raises StoreError (StoreBusyError: others held the file too long).
    """
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        now = clock()  # behind the waiting for others
        connection.execute(
            "DELETE FROM leases WHERE machines_dir = ? AND (until <= ? OR taken_at > ?)",
            (folder, now, now + CLOCK_SLACK_S),
        )
        lease = choose(_read(store, folder, now), now)
        if lease is not None:
            _write(connection, folder, lease)
    return lease


def release_lease(store: Store, machines_dir: str, lease_id: str) -> bool:
    """End one lease; False where that folder has none of that id any more. Raises StoreError."""
    return bool(drop_leases(store, machines_dir, (lease_id,)))


def drop_leases(store: Store, machines_dir: str, lease_ids: Collection[str]) -> int:
    """End these leases; how many there were. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        return sum(
            connection.execute(
                "DELETE FROM leases WHERE machines_dir = ? AND id = ?", (folder, lease_id)
            ).rowcount
            for lease_id in lease_ids
        )


def turn_resident(store: Store, machines_dir: str, lease: Lease) -> None:
    """The model of a cold lease is loaded by now: it reserves nothing any more, and holds as `lease` says,
    also where its time was over meanwhile. Raises StoreError."""
    with store.transaction() as connection:
        _write(
            connection, os.path.realpath(machines_dir), replace(lease, kind="resident", vram_mib=0, gpu=None)
        )


def _read(store: Store, folder: str, now: float) -> tuple[Lease, ...]:
    rows = store.connection.execute(
        f"SELECT {_COLUMNS} FROM leases "  # noqa: S608 - ours
        "WHERE machines_dir = ? AND until > ? AND taken_at <= ? ORDER BY taken_at, id",
        (folder, now, now + CLOCK_SLACK_S),
    )
    return tuple(Lease(*row) for row in rows)


def _write(connection: sqlite3.Connection, folder: str, lease: Lease) -> None:
    connection.execute(
        f"INSERT OR REPLACE INTO leases (machines_dir, {_COLUMNS}) "  # noqa: S608 - ours
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(folder, lease.id, lease.machine, lease.port, lease.engine, lease.model, lease.kind),
            *(lease.taken_at, lease.until, lease.vram_mib, lease.gpu, lease.digest),
            *(lease.pid, lease.owner),
        ),
    )
