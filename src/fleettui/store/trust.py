"""Decisions about host keys, kept for each machines folder so that demo and real fleets never mix."""

from __future__ import annotations

import os

from fleettui.model.trust import SeenKey, TrustDecision

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from typing import Any

    from fleettui.store.database import Store

    Key = tuple[str, str]
    """Name and address of a machine."""
    Change = Callable[[TrustDecision | None], TrustDecision | None]
    """From the entry as it stands to what it shall be; None: no entry. May raise to change nothing at all."""

_REVISIONS = "trust_revisions"
_COLUMNS = (
    "name, address, kind, key_type, fingerprint, decided_at, decided_by, how, tombstone, "
    "offer_type, offer_fingerprint, offer_expected, offer_at"
)


def read_revision(store: Store, machines_dir: str) -> int:
    """Changes with every decision of that folder; 0 before the first. Raises StoreError."""
    with store.transaction("DEFERRED"):
        return store.read_revision(_REVISIONS, os.path.realpath(machines_dir))


def load_decisions(store: Store, machines_dir: str) -> tuple[int, tuple[TrustDecision, ...]]:
    """The revision and every entry of that folder, of one moment. Raises StoreError."""
    key = os.path.realpath(machines_dir)
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("trust_decisions"):
            return 0, ()
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM trust_decisions WHERE machines_dir = ? ORDER BY name, address",  # noqa: S608 - ours
            (key,),
        ).fetchall()
        return store.read_revision(_REVISIONS, key), tuple(_decision(row) for row in rows)


def change_decisions(store: Store, machines_dir: str, changes: Mapping[Key, Change]) -> bool:
    """Apply all changes or, when one raises, none; True when an entry differs now. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    has_changed = False
    with store.transaction() as connection:
        for (name, address), change in changes.items():
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM trust_decisions WHERE machines_dir = ? AND name = ? AND address = ?",  # noqa: S608 - ours
                (folder, name, address),
            ).fetchone()
            before = None if row is None else _decision(row)
            after = change(before)
            if after == before:
                continue
            has_changed = True
            _write(connection, folder, (name, address), after)
        if has_changed:
            store.raise_revision(_REVISIONS, folder)
    return has_changed


def _write(connection: sqlite3.Connection, folder: str, key: Key, decision: TrustDecision | None) -> None:
    if decision is None:
        connection.execute(
            "DELETE FROM trust_decisions WHERE machines_dir = ? AND name = ? AND address = ?", (folder, *key)
        )
        return
    offer = decision.offer
    seen = ("", "", "", None)
    if offer is not None:
        seen = (offer.key_type, offer.fingerprint, " ".join(offer.expected), offer.at)  # type: ignore[assignment]
    values = (
        folder, *key, decision.kind, decision.key_type, decision.fingerprint, decision.decided_at,
        decision.decided_by, decision.how, decision.tombstone, *seen,
    )  # fmt: skip
    marks = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT OR REPLACE INTO trust_decisions (machines_dir, {_COLUMNS}) VALUES ({marks})",  # noqa: S608 - ours
        values,
    )


def _decision(row: tuple[Any, ...]) -> TrustDecision:
    name, address, kind, key_type, fingerprint, at, by, how, tombstone, *seen = row
    offer_type, offer_fingerprint, expected, offer_at = seen
    offer = None
    if offer_fingerprint and offer_at is not None:
        offer = SeenKey(offer_type, offer_fingerprint, offer_at, tuple(expected.split()))
    return TrustDecision(name, address, kind, key_type, fingerprint, at, by, how, tombstone, offer)
