"""What the dashboard remembers between runs, kept for each machines folder: a JSON object for each screen."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleettui.store.database import Store

    Parts = dict[str, dict[str, object]]
    """By name of the screen; values are JSON's."""


def load_parts(store: Store, machines_dir: str) -> Parts:
    """All that is remembered of that folder; what is no JSON object is left out. Raises StoreError."""
    with store.transaction("DEFERRED") as connection:
        if not store.has_table("ui_state"):
            return {}
        rows = connection.execute(
            "SELECT part, contents FROM ui_state WHERE machines_dir = ?", (os.path.realpath(machines_dir),)
        ).fetchall()
    parts: Parts = {}
    for part, contents in rows:
        try:
            read = json.loads(contents)
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(read, dict):
            parts[part] = read
    return parts


def save_parts(store: Store, machines_dir: str, parts: Mapping[str, Mapping[str, object]]) -> None:
    """Replace these parts, leave others as they are. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    rows = [
        (folder, part, json.dumps(dict(contents), separators=(",", ":"))) for part, contents in parts.items()
    ]
    with store.transaction() as connection:
        connection.executemany(
            "INSERT OR REPLACE INTO ui_state (machines_dir, part, contents) VALUES (?, ?, ?)", rows
        )
