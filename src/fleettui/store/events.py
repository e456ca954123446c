"""The timeline of each fleet, kept for each machines folder, and who writes it."""

from __future__ import annotations

import json
import os

from fleettui.model.event import Event
from fleettui.model.record import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence
    from typing import Any

    from fleettui.store.database import Store

KEEP_DAYS = 30
KEEP_ROWS = 50_000
READ_ROWS = 10_000
"""At most so many events are read at once, the newest."""
WRITER_TIMEOUT_S = 15.0
"""A writer that did not renew its entry for so long is gone."""

_COLUMNS = "at, machine, kind, severity, text, details, by_whom, subject, count, last_at"


@dataclass(frozen=True, slots=True)
class EventWriter:
    """The process that writes the events of a fleet."""

    owner: str
    """Its own mark; empty: it ended in order."""
    pid: int
    kind: str
    """`dashboard`, `status --watch`."""
    renewed_at: float
    """Epoch seconds."""

    def is_alive(self, now: float) -> bool:
        """It renewed its entry not long ago."""
        return bool(self.owner) and abs(now - self.renewed_at) <= WRITER_TIMEOUT_S


def claim_writing(
    store: Store, machines_dir: str, owner: str, kind: str, now: float
) -> tuple[bool, EventWriter | None]:
    """Become, or stay, the one that writes; False while another one does.

    With it the entry as it stood before: what that writer did not see any more is from after its last
    renewal. Raises StoreError.
    """
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        before = _writer(connection, folder)
        if before is not None and before.owner != owner and before.is_alive(now):
            return False, before
        connection.execute(
            "INSERT OR REPLACE INTO event_writers (machines_dir, owner, pid, kind, renewed_at) "
            "VALUES (?, ?, ?, ?, ?)",
            (folder, owner, os.getpid(), kind, now),
        )
    return True, before


def release_writing(store: Store, machines_dir: str, owner: str, now: float) -> None:
    """End writing in order; another process may begin at once. Raises StoreError."""
    with store.transaction() as connection:
        connection.execute(
            "UPDATE event_writers SET owner = '', renewed_at = ? WHERE machines_dir = ? AND owner = ?",
            (now, os.path.realpath(machines_dir), owner),
        )


def read_writer(store: Store, machines_dir: str) -> EventWriter | None:
    """Who writes, or wrote last; None: nobody ever did. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        return _writer(connection, os.path.realpath(machines_dir)) if store.has_table("events") else None


def append_events(store: Store, machines_dir: str, events: Sequence[Event]) -> None:
    """Store events; one that is there already only gets its repetitions. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    rows = [
        (
            folder, event.at, event.machine, event.kind, event.severity, event.text,
            json.dumps(dict(event.details), separators=(",", ":")), event.by, event.subject, event.count,
            event.ended_at,
        )
        for event in events
    ]  # fmt: skip
    with store.transaction() as connection:
        connection.executemany(
            f"INSERT INTO events (machines_dir, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608 - ours
            "ON CONFLICT (machines_dir, at, machine, kind, subject) DO UPDATE SET "
            "count = max(count, excluded.count), last_at = max(last_at, excluded.last_at)",
            rows,
        )


def read_events(
    store: Store,
    machines_dir: str,
    *,
    since: float | None = None,
    machines: Collection[str] = (),
    kinds: Collection[str] = (),
    after_id: int = 0,
    limit: int = READ_ROWS,
) -> tuple[int, tuple[Event, ...]]:
    """The newest events, the oldest of them first, and the number of the last one of the fleet.

    `since`: epoch seconds, repetitions count; `machines`, `kinds`: only these, all without; `after_id`: only
    events stored since that number was returned. Raises StoreError.
    """
    wanted, values = ["machines_dir = ?", "id > ?"], [os.path.realpath(machines_dir), after_id]
    if since is not None:
        wanted.append("last_at >= ?")
        values.append(since)
    for column, words in (("machine", machines), ("kind", kinds)):
        if words:
            wanted.append(f"{column} IN ({', '.join('?' * len(words))})")
            values += words
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("events"):
            return 0, ()
        (last_id,) = connection.execute(
            "SELECT coalesce(max(id), 0) FROM events WHERE machines_dir = ?", values[:1]
        ).fetchone()
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM events WHERE {' AND '.join(wanted)} ORDER BY at DESC, id DESC LIMIT ?",  # noqa: S608 - ours
            (*values, limit),
        ).fetchall()
    return last_id, tuple(_event(row) for row in reversed(rows))


def known_machines(store: Store, machines_dir: str) -> set[str]:
    """Names that stand in the timeline, also of machines that are gone. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("events"):
            return set()
        rows = connection.execute(
            "SELECT DISTINCT machine FROM events WHERE machines_dir = ?", (os.path.realpath(machines_dir),)
        )
        return {name for (name,) in rows if name}


def prune_events(
    store: Store, machines_dir: str, now: float, *, keep_days: int = KEEP_DAYS, keep_rows: int = KEEP_ROWS
) -> None:
    """Drop what is too old or too much. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        connection.execute(
            "DELETE FROM events WHERE machines_dir = ? AND last_at < ?", (folder, now - keep_days * 86_400)
        )
        connection.execute(
            "DELETE FROM events WHERE machines_dir = ? AND id <= "
            "(SELECT id FROM events WHERE machines_dir = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (folder, folder, keep_rows),
        )


def _writer(connection: sqlite3.Connection, folder: str) -> EventWriter | None:
    row = connection.execute(
        "SELECT owner, pid, kind, renewed_at FROM event_writers WHERE machines_dir = ?", (folder,)
    ).fetchone()
    return None if row is None else EventWriter(*row)


def _event(row: tuple[Any, ...]) -> Event:
    at, machine, kind, severity, text, details, by, subject, count, last_at = row
    try:
        read = json.loads(details)
    except ValueError:
        read = {}
    last = last_at if count > 1 else None
    return Event(
        at, machine, kind, severity, text, read if isinstance(read, dict) else {}, by, subject, count, last
    )
