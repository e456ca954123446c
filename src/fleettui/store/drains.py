"""Drains: the flag with its state, how far each copy is, who works on it, and every step that was made.

Options and copies that another version wrote are never read as ours; observation takes their place.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fleettui.model.drain import (
    CopyProgress,
    Drain,
    DrainLock,
    DrainOptions,
    DrainStatus,
    JournalEntry,
    SourceCopy,
)
from fleettui.model.record import replace
from fleettui.store.bare_values import BareValues
from fleettui.store.flags import FLAG_REVISIONS, FleetFlags, load_flags

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from fleettui.store.database import Store

    Change = Callable[[Drain | None], Drain | None]
    """From the drain as it stands to what it shall be; None: off. May raise to change nothing at all."""
    Begin = Callable[[str, Drain | None, DrainLock | None], tuple[Drain, JournalEntry]]
    """From a machine, its drain as it stands and who works on it to the drain that begins, with the step to
    write down. May raise to change nothing at all."""

UNDRAINED = "undrained"
"""The step that takes a flag off."""
LOCK_STALE_S = 60.0
"""A worker without a sign of life for so long has ended: another one may take over."""
LOAD_LOCK = "load/"
"""Before a machine's name: the lock of whoever loads there, for a drain or on the way back from one."""
_TEXT = BareValues(SourceCopy, CopyProgress, DrainOptions)
_DRAIN = (
    "machine, id, state, reason, flagged_by, since, until, options, text, revision, changed_by, changed_at"
)
_ENTRY = "at, machine, drain_id, by, pid, step, copy, target, result, call, seq"


def load_drains(store: Store, machines_dir: str) -> dict[str, Drain]:
    """Every drain of that folder that is on, by machine. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("drains"):
            return {}
        rows = connection.execute(
            f"SELECT {_DRAIN} FROM drains WHERE machines_dir = ? ORDER BY since, machine",  # noqa: S608 - ours
            (os.path.realpath(machines_dir),),
        )
        return {row[0]: _read_drain(row) for row in rows}


def load_drain(
    store: Store, machines_dir: str, machine: str, *, entries: int = 200, all_drains: bool = False
) -> DrainStatus | None:
    """One drain with its copies, its worker and the last `entries` of its journal, `all_drains`: of those
    before it too; None where the machine has no drain. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    with store.transaction("DEFERRED") as connection:
        drain = find_drain(store, folder, machine)
        if drain is None:
            return None
        copies = connection.execute(
            "SELECT payload FROM drain_copies WHERE machines_dir = ? AND machine = ? ORDER BY place",
            (folder, machine),
        ).fetchall()
        journal = _read_journal(connection, folder, machine, None if all_drains else drain.id, entries)
        found = [_TEXT.decode(payload, CopyProgress) for (payload,) in copies]
        return DrainStatus(
            drain,
            tuple([copy for copy in found if copy is not None]),
            _find_lock(connection, folder, machine),
            journal,
        )


def load_followed_flags(store: Store, machines_dir: str) -> tuple[int, FleetFlags]:
    """The revision and every flag that is on, with who took drains off. Raises StoreError."""
    revision, flags = load_flags(store, machines_dir)
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("drain_journal"):
            return revision, flags
        rows = connection.execute(
            "SELECT machine, by, MAX(seq) FROM drain_journal "
            "WHERE machines_dir = ? AND step = ? GROUP BY machine",
            (os.path.realpath(machines_dir), UNDRAINED),
        ).fetchall()
    return revision, replace(flags, undrained_by={machine: by for machine, by, _ in rows})


def load_journal(
    store: Store, machines_dir: str, machine: str, drain_id: str | None = None, *, entries: int = 200
) -> tuple[JournalEntry, ...]:
    """The last entries of a machine, or of one of its drains, oldest first. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("drain_journal"):
            return ()
        return _read_journal(connection, os.path.realpath(machines_dir), machine, drain_id, entries)


def change_drain(
    store: Store, machines_dir: str, machine: str, change: Change, entry: JournalEntry | None = None
) -> tuple[Drain | None, Drain | None]:
    """Change a drain flag and write the step down, in one transaction; what stood before and stands now.

    The revision of the flag grows by itself. Raises StoreError.
    """
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        before = find_drain(store, folder, machine)
        after = _put(store, folder, machine, before, change(before))
        if entry is not None:
            write_entry(connection, folder, entry)
    return before, after


def start_drains(store: Store, machines_dir: str, machines: Iterable[str], begin: Begin) -> tuple[Drain, ...]:
    """Flag all these machines and write the starts down in one transaction; none where `begin` raises. Raises
    StoreError."""
    folder, drains = os.path.realpath(machines_dir), []
    with store.transaction() as connection:
        for machine in machines:
            before = find_drain(store, folder, machine)
            wanted, entry = begin(machine, before, _find_lock(connection, folder, machine))
            drains.append(_put(store, folder, machine, before, wanted) or wanted)
            write_entry(connection, folder, entry)
    return tuple(drains)


def _put(store: Store, folder: str, machine: str, before: Drain | None, after: Drain | None) -> Drain | None:
    """What stands from now on, with its revision, within a transaction."""
    connection, key = store.connection, (folder, machine)
    if after is not None:
        after = replace(after, revision=1 if before is None else before.revision)
    if after == before:
        return after
    if after is None or (before is not None and before.id != after.id):
        connection.execute("DELETE FROM drain_copies WHERE machines_dir = ? AND machine = ?", key)
    if after is None:
        connection.execute("DELETE FROM drains WHERE machines_dir = ? AND machine = ?", key)
    else:
        if before is not None:
            after = replace(after, revision=before.revision + 1)
        _write_drain(connection, folder, after)
    store.raise_revision(FLAG_REVISIONS, folder)
    return after


def append_journal(store: Store, machines_dir: str, entry: JournalEntry) -> None:
    """Write a step down. Raises StoreError."""
    with store.transaction() as connection:
        write_entry(connection, os.path.realpath(machines_dir), entry)


def save_copies(
    store: Store, machines_dir: str, drain: Drain, copies: Iterable[CopyProgress], entry: JournalEntry | None
) -> bool:
    """How far each copy is, in the order of work, and the step that led there; False where the drain is
    another one by now, and nothing is written. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        present = find_drain(store, folder, drain.machine)
        if present is None or present.id != drain.id:
            return False
        connection.execute(
            "DELETE FROM drain_copies WHERE machines_dir = ? AND machine = ?", (folder, drain.machine)
        )
        connection.executemany(
            "INSERT INTO drain_copies (machines_dir, machine, place, payload) VALUES (?, ?, ?, ?)",
            [(folder, drain.machine, place, _TEXT.encode(copy)) for place, copy in enumerate(copies)],
        )
        if entry is not None:
            write_entry(connection, folder, entry)
    return True


def take_lock(
    store: Store, machines_dir: str, lock: DrainLock, is_dead: Callable[[DrainLock], bool]
) -> DrainLock:
    """Become the worker of a drain where nobody is, or where the one there `is_dead`; who is it now.
    Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        held = _find_lock(connection, folder, lock.machine)
        is_ours = held is not None and (held.holder, held.pid) == (lock.holder, lock.pid)
        if held is not None and not is_ours and not is_dead(held):
            return held
        connection.execute(
            "INSERT OR REPLACE INTO drain_locks (machines_dir, machine, holder, pid, taken_at, beat_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (folder, lock.machine, lock.holder, lock.pid, lock.taken_at, lock.beat_at),
        )
    return lock


def beat_lock(store: Store, machines_dir: str, lock: DrainLock, now: float) -> bool:
    """Give a sign of life; False where somebody else took over. Raises StoreError."""
    with store.transaction() as connection:
        changed = connection.execute(
            "UPDATE drain_locks SET beat_at = ? "
            "WHERE machines_dir = ? AND machine = ? AND holder = ? AND pid = ? AND taken_at = ?",
            (now, os.path.realpath(machines_dir), lock.machine, lock.holder, lock.pid, lock.taken_at),
        )
        return changed.rowcount > 0


def release_lock(store: Store, machines_dir: str, lock: DrainLock) -> None:
    """Let the next worker in; that of another stays. Raises StoreError."""
    with store.transaction() as connection:
        connection.execute(
            "DELETE FROM drain_locks "
            "WHERE machines_dir = ? AND machine = ? AND holder = ? AND pid = ? AND taken_at = ?",
            (os.path.realpath(machines_dir), lock.machine, lock.holder, lock.pid, lock.taken_at),
        )


def find_drain(store: Store, folder: str, machine: str) -> Drain | None:
    """Within a transaction; `folder`: its real path."""
    if not store.has_table("drains"):
        return None
    row = store.connection.execute(
        f"SELECT {_DRAIN} FROM drains WHERE machines_dir = ? AND machine = ?",  # noqa: S608 - ours
        (folder, machine),
    ).fetchone()
    return None if row is None else _read_drain(row)


def _read_drain(row: tuple[Any, ...]) -> Drain:
    machine, drain_id, state, reason, by, since, until, options, text, revision, changed_by, changed_at = row
    wanted = _TEXT.decode(options, DrainOptions) or DrainOptions()
    return Drain(
        drain_id, machine, state, reason, by, since, until, wanted, text, revision, changed_by, changed_at
    )


def _write_drain(connection: sqlite3.Connection, folder: str, drain: Drain) -> None:
    connection.execute(
        f"INSERT OR REPLACE INTO drains (machines_dir, {_DRAIN}) "  # noqa: S608 - ours
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(folder, drain.machine, drain.id, drain.state, drain.reason, drain.by, drain.since, drain.until),
            *(_TEXT.encode(drain.options), drain.text, drain.revision, drain.changed_by, drain.changed_at),
        ),
    )


def load_load_locks(store: Store, machines_dir: str) -> tuple[DrainLock, ...]:
    """Who loads on a target now, dead or alive; their `machine` is its name. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        rows = connection.execute(
            "SELECT machine, holder, pid, taken_at, beat_at FROM drain_locks "
            "WHERE machines_dir = ? AND substr(machine, 1, ?) = ?",
            (os.path.realpath(machines_dir), len(LOAD_LOCK), LOAD_LOCK),
        ).fetchall()
    return tuple([DrainLock(name.removeprefix(LOAD_LOCK), *row) for name, *row in rows])


def _find_lock(connection: sqlite3.Connection, folder: str, machine: str) -> DrainLock | None:
    row = connection.execute(
        "SELECT machine, holder, pid, taken_at, beat_at FROM drain_locks "
        "WHERE machines_dir = ? AND machine = ?",
        (folder, machine),
    ).fetchone()
    return None if row is None else DrainLock(*row)


def _read_journal(
    connection: sqlite3.Connection, folder: str, machine: str, drain_id: str | None, entries: int
) -> tuple[JournalEntry, ...]:
    only = "" if drain_id is None else "AND drain_id = ? "
    rows = connection.execute(
        f"SELECT {_ENTRY} FROM drain_journal WHERE machines_dir = ? AND machine = ? {only}"  # noqa: S608 - ours
        "ORDER BY seq DESC LIMIT ?",
        (folder, machine, *(() if drain_id is None else (drain_id,)), entries),
    ).fetchall()
    return tuple([JournalEntry(*row) for row in reversed(rows)])


def write_entry(connection: sqlite3.Connection, folder: str, entry: JournalEntry) -> None:
    """Within a transaction; `folder`: its real path."""
    connection.execute(
        "INSERT INTO drain_journal "
        "(machines_dir, machine, drain_id, at, by, pid, step, copy, target, result, call) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(folder, entry.machine, entry.drain_id, entry.at, entry.by, entry.pid, entry.step, entry.copy),
            *(entry.target, entry.result, entry.call),
        ),
    )
