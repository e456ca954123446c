"""What is stored that speaks against an unload: read and, where nothing does, answered by its journal entry.

Both are one transaction, so that two drains whose copies stand for each other take turns: the second sees
what the first is about to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from fleettui.model.drain import WORKING, Drain, JournalEntry
from fleettui.model.record import dataclass
from fleettui.store.database import Store
from fleettui.store.drains import find_drain, write_entry

LEAVING_S = 60.0
"""A copy that was asked to go may still be listed for so long: it covers nothing, even where the drain was
called off since, and whatever its engine answered: an answer may be lost."""
LET_GO = "let_go"
"""The step that unloads, on the way back, what a drain had loaded elsewhere. Its target is that machine."""
WENT = "went"
"""It was seen gone there."""
_READ_ENTRIES = 5000
"""Of the end of the journal: more than all fleets of a state file write in a minute."""

Place = tuple[str, str]
"""Machine and name of a copy."""


@dataclass(frozen=True, slots=True)
class Standing:
    """All of one moment."""

    drain: Drain | None
    """Of the machine that the step is about."""
    out_of_service: frozenset[str]
    """Machines that are drained or in maintenance."""
    asked_at: Mapping[Place, float]
    """Copies that were asked to go, and neither seen gone since nor brought back: when, in epoch seconds."""

    def goes_on(self, drain_id: str) -> bool:
        """That drain is still to be worked on."""
        return self.drain is not None and self.drain.id == drain_id and self.drain.state in WORKING

    def leaving(self, now: float) -> dict[Place, float]:
        """Copies that may go any moment: how many seconds ago they were asked to."""
        ages = {place: abs(now - at) for place, at in self.asked_at.items()}  # set back too
        return {place: age_s for place, age_s in ages.items() if age_s < LEAVING_S}


def write_unload(
    store: Store, machines_dir: str, entry: JournalEntry, check: Callable[[Standing], None]
) -> None:
    """Write down that a copy is about to be unloaded, unless `check` raises. Raises StoreError."""
    folder = os.path.realpath(machines_dir)
    with store.transaction() as connection:
        check(_read_standing(store, folder, entry.machine))
        write_entry(connection, folder, entry)


def _read_standing(store: Store, folder: str, machine: str) -> Standing:
    flagged = store.connection.execute(
        "SELECT machine FROM drains WHERE machines_dir = ? "
        "UNION SELECT name FROM machine_flags WHERE machines_dir = ?",
        (folder, folder),
    ).fetchall()
    # By its end, not by the index, which would read all that this folder ever wrote.
    steps = store.connection.execute(
        "SELECT machine, step, copy, target, result, at FROM drain_journal NOT INDEXED "
        "WHERE seq > (SELECT MAX(seq) FROM drain_journal) - ? AND machines_dir = ? "
        "AND step IN ('unload', 'gone', 'returned', ?, ?) ORDER BY seq",
        (_READ_ENTRIES, folder, LET_GO, WENT),
    )
    asked_at: dict[Place, float] = {}
    for name, step, copy, target, result, at in steps:
        if step == "unload" and result == "ok":
            asked_at[name, copy] = at
        elif step == LET_GO:
            asked_at[target, copy] = at
        elif step == WENT:
            asked_at.pop((target, copy), None)
        elif step != "unload":
            asked_at.pop((name, copy), None)
    return Standing(find_drain(store, folder, machine), frozenset(name for (name,) in flagged), asked_at)
