"""Maintenance by keys: on and off, with a reason and an end, and undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fleettui.fleet.maintenance import FlagError, FlagOperations
from fleettui.fleet.until import parse_reason_until
from fleettui.model.flags import MaintenanceChange
from fleettui.tui.actions import BY_ID
from fleettui.tui.typed import split_named
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell, Cells
from fleettui.view.maintenance_text import announced_text, told_text, undone_text
from fleettui.view.text import clean

if TYPE_CHECKING:
    from fleettui.tui.app import FleetApp

NO_STATE = "Flags are kept in the state folder, and there is none."
TOLD_S = 10.0
"""How long a toast with an undo stays."""
SWITCHES = {"on": True, "off": False}


class MaintenanceKeys:
    """What the operator last did to maintenance flags can be undone until something else is done to them."""

    def __init__(self, app: FleetApp) -> None:
        self._app = app
        self._turn = asyncio.Lock()
        self.last: MaintenanceChange | None = None
        """What `undo` would undo."""

    def command(self, chosen: Sequence[str], text: str) -> None:
        """As typed behind `:`: of the machines that are named there, before or after on and off, else of the
        chosen ones."""
        word, _, rest = text.strip().partition(" ")
        fleet = self._app.snapshot
        if word.lower() in SWITCHES:
            names, rest = split_named(fleet, rest)
            rest = f"{word} {rest}"
        else:
            names, rest = split_named(fleet, text)
        self.run(names or chosen, rest)

    def run(self, names: Sequence[str], text: str = "") -> None:
        """One key: on where one is off, else off. `text`: `on`, `off` or a reason."""
        word, _, rest = text.strip().partition(" ")
        is_on = SWITCHES.get(word.lower())
        if not names:
            return
        try:
            reason, until = parse_reason_until(text if is_on is None else rest, self._app.clock())
        except ValueError as error:
            self._fail(str(error))
            return
        if is_on is None and (reason or until):
            is_on = True
        if is_on is False and (reason or until):
            self._fail("The end of a maintenance takes no reason: maintenance off")
            return
        self._start(lambda flags: self._set(flags, names, is_on, reason, until))

    def ask(self, names: Sequence[str]) -> None:
        """Ask for reason and end, then set the flag of these machines."""
        screen = self._app.live_screen
        if screen is None or not names:
            return
        who = names[0] if len(names) == 1 else f"{len(names)} machines"
        screen.ask(
            Question(
                f"maintenance of {clean(who)}:",
                lambda text: self.run(names, f"on {text}"),
                placeholder="fan swap until 2h",
                hint_of=self._hint,
                is_wrong=lambda text: self._problem(text) != "",
            )
        )

    def undo(self) -> None:
        """Make the flags what they were before the last change."""
        if self.last is not None:
            change = self.last
            self._note(None)
            self._start(lambda flags: self._undo(flags, change))

    # One at a time: the second of two presses sees what the first one did

    def _start(self, work: Callable[[FlagOperations], Awaitable[None]]) -> None:
        flags = self._app.service.flags
        if flags is None:
            self._fail(NO_STATE)
            return

        async def take_turn() -> None:
            async with self._turn:
                try:
                    await work(flags)
                except FlagError as error:
                    self._fail(error.text)

        self._app.run_worker(take_turn(), group="flags")

    async def _set(
        self,
        flags: FlagOperations,
        names: Sequence[str],
        is_on: bool | None,
        reason: str | None,
        until: float | None,
    ) -> None:
        if is_on is None:
            is_on = not all(name in flags.book.maintenance for name in names)
        change = await flags.set_maintenance(names, is_on=is_on, reason=reason, until=until)
        self._note(change if change.changed else self.last)
        app = self._app
        text = told_text(change, app.clock(), app.look.utc_offset_s)
        self._tell(f"{text}\n{self._key('undo')} undoes" if change.changed else text)

    async def _undo(self, flags: FlagOperations, change: MaintenanceChange) -> None:
        undone = await flags.undo(change)
        self._tell(undone_text(undone, self._app.clock(), self._app.look.utc_offset_s))

    def _note(self, change: MaintenanceChange | None) -> None:
        self.last = change
        if change is not None:
            self._app.drains.last = None
        self._app.screen.refresh_bindings()

    # Words

    def _problem(self, text: str) -> str:
        try:
            parse_reason_until(text, self._app.clock())
        except ValueError as error:
            return str(error)
        return ""

    def _hint(self, text: str) -> Cells:
        problem = self._problem(text)
        if problem:
            return (Cell(f" {problem}", "warn"),)
        now = self._app.clock()
        reason, until = parse_reason_until(text, now)
        told = announced_text(reason, until, now, self._app.look.utc_offset_s)
        return (Cell(f" {self._app.look.glyph_set.plain(told)}", "dim"),)

    def _key(self, action: str) -> str:
        own = self._app.look.keys.get(action)
        return own.partition(",")[0] if own else BY_ID[action].label

    def _tell(self, text: str) -> None:
        self._app.clear_notifications()  # what the one before says of undoing holds no more
        self._app.notify(text, timeout=TOLD_S, markup=False)

    def _fail(self, text: str) -> None:
        self._app.notify(clean(text), severity="error", timeout=TOLD_S, markup=False)
