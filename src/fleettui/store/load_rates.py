"""How fast machines load models, kept for each machines folder: an average that follows the last loads."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fleettui.store.database import Store

NEWEST_SHARE = 0.4
"""Of the newest load in the average: three loads later a new disk is four fifths of it."""


def load_load_rates(store: Store, machines_dir: str) -> dict[str, float]:
    """Bytes a second, by machine; only those that were measured. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("load_rates"):
            return {}
        rows = connection.execute(
            "SELECT machine, bytes_s FROM load_rates WHERE machines_dir = ?",
            (os.path.realpath(machines_dir),),
        )
        return {machine: bytes_s for machine, bytes_s in rows if bytes_s > 0}


def record_load_rate(
    store: Store, machines_dir: str, machine: str, bytes_s: float, measured_at: float
) -> float:
    """Take one more load into the average; the average then. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        row = connection.execute(
            "SELECT bytes_s, loads FROM load_rates WHERE machines_dir = ? AND machine = ?", (folder, machine)
        ).fetchone()
        before, loads = (bytes_s, 0) if row is None else row
        average = float(before + NEWEST_SHARE * (bytes_s - before))
        connection.execute(
            "INSERT OR REPLACE INTO load_rates (machines_dir, machine, bytes_s, loads, measured_at) "
            "VALUES (?, ?, ?, ?, ?)",
            (folder, machine, average, loads + 1, measured_at),
        )
    return average
