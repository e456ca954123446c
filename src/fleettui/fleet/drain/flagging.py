"""The flags of machines that are drained together: all are raised in one step, or none."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from fleettui.fleet.drain.book import DrainBook
from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import WORKING, Drain, DrainLock, DrainOptions, JournalEntry
from fleettui.model.record import replace


def check_free(book: DrainBook, drain: Drain | None, lock: DrainLock | None) -> None:
    """Raises DrainError where another process works on that drain."""
    if drain is None or lock is None or drain.state not in WORKING:
        return
    if not book.is_ours(lock) and not book.is_dead(lock):
        name, ago = drain.machine, max(0.0, book.clock() - drain.changed_at)
        raise DrainError(
            "changed_meanwhile", name,
            f"{name} is being drained by {lock.holder} (process {lock.pid}), changed {ago:.0f} s ago; "
            "nothing was changed; "
            f"follow it with `fleettui drain status {name} --follow`, or cancel it first",
        )  # fmt: skip


async def raise_flags(
    book: DrainBook,
    machines: Sequence[str],
    reason: str,
    options: DrainOptions,
    *,
    until: float | None,
    by: str,
    now: float,
) -> tuple[Drain, ...]:
    """Flag all of them, and write that down; the same drain goes on where a machine has one, so that what it
    moved can still be moved back. Raises DrainError where another process began with one of them."""

    def begin(name: str, before: Drain | None, lock: DrainLock | None) -> tuple[Drain, JournalEntry]:
        check_free(book, before, lock)
        drain_id, first = (uuid4().hex[:12], by) if before is None else (before.id, before.by)
        drain = Drain(
            drain_id, name, "planned", reason, first, now, until, options, "", changed_by=by, changed_at=now
        )
        return drain, replace(book.entry(drain, "started", result=reason), by=by)

    return await book.start_drains(machines, begin)
