"""Gives each machine's record its stored profile: health knows by it which cards are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fleettui.fleet.profile_book import ProfileBook
from fleettui.model.profile import Profile

if TYPE_CHECKING:
    from fleettui.fleet.poller import MachinePoller
    from fleettui.fleet.record import MachineRecord


class ProfileWatch:
    """One comparison of objects a cycle while no profile changes; nothing without a book."""

    def __init__(
        self,
        book: ProfileBook | None,
        pollers: Mapping[str, MachinePoller],
        note_change: Callable[[str], None],
    ) -> None:
        self._book = book
        self._pollers = pollers
        self._note_change = note_change
        self._given: Mapping[str, Profile] = {}

    async def begin(self) -> None:
        """Read them before the first verdict."""
        if self._book is not None:
            self._give(await self._book.read())

    def follow(self) -> None:
        """What was collected meanwhile counts; it is read beside this."""
        if self._book is not None:
            self._give(self._book.latest)

    def mark(self, record: MachineRecord) -> None:
        """A machine came, or came again."""
        record.profile = self._given.get(record.machine.name)

    def _give(self, profiles: Mapping[str, Profile]) -> None:
        if profiles is self._given:
            return
        self._given = profiles
        for name, poller in self._pollers.items():
            before = poller.record.profile
            self.mark(poller.record)
            if poller.record.profile != before:
                self._note_change(name)
