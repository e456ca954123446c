"""Maintenance on and off, and undo; usable with and without a running service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from fleettui.fleet.flags import FlagBook
from fleettui.fleet.trust_words import login_user
from fleettui.model.flags import MaintenanceChange, MaintenanceResult
from fleettui.model.literal import Literal
from fleettui.model.record import replace
from fleettui.model.snapshot import DrainFlag, MaintenanceFlag
from fleettui.probes.clean import clean_text
from fleettui.store.database import StoreError

if TYPE_CHECKING:
    from fleettui.config.machine_folder import MachineFiles
    from fleettui.fleet.record import MachineRecord
    from fleettui.store.flags import Change

REASON_LIMIT = 200
"""Characters: a reason stands in a line with everything else."""

FlagFailure = Literal[
    "unknown_name",
    "until",  # not ahead
    "reason",  # too long
    "changed_meanwhile",  # somebody else changed the flag after us
    "state",
]


class FlagError(Exception):
    """No flag was changed. `text`: what, where, why, what to do next."""

    def __init__(self, kind: FlagFailure, name: str, text: str) -> None:
        super().__init__(text)
        self.kind: FlagFailure = kind
        self.name = name
        """Of the machine; empty where it is about none."""
        self.text = text


def set_maintenance(
    book: FlagBook,
    declared: Collection[str],
    names: Sequence[str],
    *,
    is_on: bool,
    now: float,
    reason: str | None = None,
    until: float | None = None,
    by: str | None = None,
) -> MaintenanceChange:
    """Set or clear the flag of all these machines, or raise FlagError and change none.

    A machine in maintenance stays so since when it was; a reason and an `until` that are given replace those
    it had, what is not given stays. `off` takes a machine that is not declared any more but still flagged.
    """
    reason = _clean_reason(reason)
    if until is not None and until <= now:
        raise FlagError("until", "", "the end of a maintenance lies ahead, the time that is given does not")
    if not is_on:
        book.refresh()
    known = declared if is_on else {*declared, *book.maintenance}
    for name in names:
        if name not in known:
            raise FlagError("unknown_name", name, f"no machine is named {name!r} in {book.machines_dir}")
    flag = MaintenanceFlag(reason, by or login_user(), now, until)
    change = _change(book, dict.fromkeys(names, _raised(flag) if is_on else _cleared))
    book.refresh()
    return change


def undo_maintenance(book: FlagBook, change: MaintenanceChange) -> MaintenanceChange:
    """Make the flags what they were. Raises FlagError, and changes none, where one was changed since."""
    undone = _change(book, {result.name: _restored(result) for result in change.changed})
    book.refresh()
    return undone


class FlagOperations:
    """What front ends call on a running service: flags that take effect at once. Raises FlagError."""

    def __init__(
        self,
        book: FlagBook,
        files: Callable[[], MachineFiles],
        record_of: Callable[[str], MachineRecord | None],
        note_change: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.book = book
        self._files = files
        self._record_of = record_of
        self._note_change = note_change
        self._clock = clock
        self._shown = book.flags
        """The flags that the records have; the book may be read by others in between."""

    async def follow(self) -> None:
        """Bring the records in line with the flags, set here or by another process."""
        await asyncio.to_thread(self.book.refresh)
        before, self._shown = self._shown, self.book.flags
        if before is self._shown:
            return
        for name in {*before.maintenance, *before.drains, *self._shown.maintenance, *self._shown.drains}:
            record = self._record_of(name)
            if record is not None and self._flags_of(name) != (record.maintenance, record.drain):
                self.mark(record)
                self._note_change(name)

    def mark(self, record: MachineRecord) -> None:
        """Give a record its machine's flags."""
        record.maintenance, record.drain = self._flags_of(record.machine.name)

    def _flags_of(self, name: str) -> tuple[MaintenanceFlag | None, DrainFlag | None]:
        return self._shown.maintenance.get(name), self._shown.drains.get(name)

    async def set_maintenance(
        self,
        names: Sequence[str],
        *,
        is_on: bool,
        reason: str | None = None,
        until: float | None = None,
        by: str | None = None,
    ) -> MaintenanceChange:
        """All these machines or none; `undo` takes what comes out."""
        declared = {machine.name for machine in self._files().machines}
        now = self._clock()
        change = await asyncio.to_thread(
            lambda: set_maintenance(
                self.book, declared, names, is_on=is_on, now=now, reason=reason, until=until, by=by
            )
        )
        await self.follow()
        return change

    async def undo(self, change: MaintenanceChange) -> MaintenanceChange:
        """Make the flags what they were before; what comes out undoes the undoing."""
        undone = await asyncio.to_thread(undo_maintenance, self.book, change)
        await self.follow()
        return undone


def _change(book: FlagBook, changes: dict[str, Change]) -> MaintenanceChange:
    if not changes:
        return MaintenanceChange(())
    try:
        outcomes = book.change(changes)
    except StoreError as error:
        raise FlagError("state", "", f"no flag was changed: {error}") from None
    return MaintenanceChange(tuple(MaintenanceResult(name, *flags) for name, flags in outcomes.items()))


def _raised(flag: MaintenanceFlag) -> Change:
    def change(before: MaintenanceFlag | None) -> MaintenanceFlag:
        if before is None:
            return flag
        reason = before.reason if flag.reason is None else flag.reason
        until = before.until if flag.until is None else flag.until
        if (reason, until) == (before.reason, before.until):
            return before
        return replace(flag, reason=reason, since=before.since, until=until)

    return change


def _cleared(_: MaintenanceFlag | None) -> None:
    return None


def _restored(result: MaintenanceResult) -> Change:
    def change(now: MaintenanceFlag | None) -> MaintenanceFlag | None:
        if now != result.after:
            what = "maintenance was ended" if now is None else f"{now.by} changed the maintenance"
            raise FlagError(
                "changed_meanwhile", result.name, f"{result.name}: {what} since; nothing is undone"
            )
        return result.before

    return change


def _clean_reason(reason: str | None) -> str | None:
    text = " ".join(clean_text(reason or "", 10_000).split())
    if len(text) > REASON_LIMIT:
        raise FlagError("reason", "", f"the reason has {len(text)} characters; at most {REASON_LIMIT} fit")
    return text or None
