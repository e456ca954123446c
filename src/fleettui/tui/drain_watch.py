"""Drains as they are stored, read beside the screen while somebody looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from fleettui.fleet.drain.words import DrainError
from fleettui.model.drain import WORKING, CopyProgress, DrainStatus
from fleettui.view.text import clean

if TYPE_CHECKING:
    from fleettui.fleet.drain.desk import DrainDesk
    from fleettui.tui.app import FleetApp

LOOK_S = 1.0
"""Drains that another process works on are read this often."""


def is_under_way(copies: Iterable[CopyProgress]) -> bool:
    """Some of what is moved back is not there yet."""
    return any(not copy.is_ended and copy.state != "switched" for copy in copies)


class DrainWatch:
    """The last that was read of each drain that a screen shows."""

    def __init__(self, app: FleetApp) -> None:
        self._app = app
        self._statuses: dict[str, DrainStatus | None] = {}
        self._returning: dict[str, tuple[CopyProgress, ...]] = {}
        self._wanted: set[str] = set()
        self._looked_at = float("-inf")
        self._is_looking = False
        self._has_news = True
        self._desk: DrainDesk | None = None
        self.error = ""
        """Why drains cannot be read."""

    @property
    def desk(self) -> DrainDesk | None:
        """Who has them; None without a state folder."""
        desk = self._app.service.drains
        if desk is not None and desk is not self._desk:
            self._desk = desk
            desk.subscribe(lambda _: self.note_news())
        return desk

    def is_known(self, name: str) -> bool:
        """It was looked whether the machine has a drain."""
        return name in self._statuses

    def status_of(self, name: str) -> DrainStatus | None:
        """As last read, with what the machine shows by now; None where it has none, or nobody looked yet."""
        status = self._statuses.get(name)
        # A drain at work is as stored, whatever the machine shows: its worker says when it is empty.
        if status is None or status.drain.state in WORKING:
            return status
        seen = self._app.service.snapshot.find(name)
        return status if seen is None else status.as_shown(seen.drain)

    def returning(self, name: str) -> tuple[CopyProgress, ...]:
        """Copies that are moved back there."""
        return self._returning.get(name, ())

    def _tell_returns(self, before: Mapping[str, tuple[CopyProgress, ...]]) -> None:
        """What was moved back has come to an end."""
        for name, copies in self._returning.items():
            if is_under_way(before.get(name, ())) and not is_under_way(copies):
                back = [copy.copy.name for copy in copies if copy.state == "switched"]
                rest = [f"{copy.copy.name} ({copy.text})" for copy in copies if copy.copy.name not in back]
                told = [
                    f"moved back: {', '.join(back)}" if back else "",
                    f"not: {', '.join(rest)}" if rest else "",
                ]
                self._app.notify(clean(f"{name}: {'; '.join(filter(None, told))}"), markup=False)

    def note_news(self) -> None:
        """Something went on: read again with the next look."""
        self._has_news = True
        self._app.painter.request()

    def look(self, names: Iterable[str]) -> None:
        """Read these beside the screen where that was long ago; who shows them calls it with each paint."""
        names = set(names)
        desk = self.desk
        if desk is None or self._is_looking:
            return
        is_due = self._has_news or monotonic() - self._looked_at >= LOOK_S
        if not is_due and names <= self._wanted:
            return
        self._wanted, self._has_news, self._is_looking = names, False, True
        self._app.run_worker(self._read(desk), group="drain status", exit_on_error=True)

    async def _read(self, desk: DrainDesk) -> None:
        before = (dict(self._statuses), dict(self._returning), self.error)
        try:
            for name in self._wanted:
                self._statuses[name] = await desk.status(name)
                self._returning[name] = desk.returning(name)
            self.error = desk.error or ""
            self._tell_returns(before[1])
        except DrainError as error:
            self.error = error.text
            for name in self._wanted:
                self._statuses.setdefault(name, None)
        finally:
            self._is_looking = False
            self._looked_at = monotonic()
        if before != (self._statuses, self._returning, self.error):
            self._app.painter.request()
