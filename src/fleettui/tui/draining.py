"""Drains by keys: looked at first, started, cancelled, ended, and undone as long as nothing was unloaded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fleettui.fleet.drain.words import DrainError
from fleettui.fleet.until import parse_reason_until
from fleettui.model.drain import CopyProgress, Drain, DrainOptions
from fleettui.tui.drain_watch import DrainWatch
from fleettui.tui.maintenance import TOLD_S
from fleettui.tui.typed import split_named
from fleettui.tui.widgets.prompt import Question
from fleettui.view.cells import Cell, Cells
from fleettui.view.text import clean
from fleettui.view.units import count

if TYPE_CHECKING:
    from fleettui.fleet.drain.desk import DrainDesk
    from fleettui.tui.app import FleetApp

NO_STATE = "Drains are kept in the state folder, and there is none."
_RETURN = "return"
_YES = ("", "y", "yes")


class Undoable(NamedTuple):
    """What was done last."""

    is_start: bool
    names: tuple[str, ...]
    drains: tuple[Drain, ...] = ()
    """Of an undrain: as they were."""


class DrainKeys:
    """What the operator does about drains, on any screen."""

    def __init__(self, app: FleetApp) -> None:
        self._app = app
        self._turn = asyncio.Lock()
        self.watch = DrainWatch(app)
        self.last: Undoable | None = None
        """What `undo` would undo."""

    @property
    def desk(self) -> DrainDesk | None:
        """Who works on drains; None without a state folder."""
        return self.watch.desk

    def open(self, names: Sequence[str], text: str = "") -> None:
        """Show what a drain of these machines would do, or how far it is. `text`: which are meant instead,
        reason and end."""
        named, text = split_named(self._app.snapshot, text)
        names = named or names
        if not names:
            return
        if self.desk is None:
            self.fail(NO_STATE)
            return
        try:
            parse_reason_until(text, self._app.clock())
        except ValueError as error:
            self.fail(str(error))
            return
        self._app.open_drain(tuple(names), text)

    # What changes something

    def start(
        self,
        names: Sequence[str],
        reason: str,
        options: DrainOptions,
        until: float | None,
        on_done: Callable[[], None],
    ) -> None:
        """Begin to work on all of them."""

        async def begin(desk: DrainDesk) -> None:
            await desk.start(names, reason, options, until=until)
            who = _named(names)
            verb = "takes" if len(names) == 1 else "take"
            self._tell(
                f"{who} {verb} no requests from now on; what is loaded there is moved first.\n"
                f"{self._key('undo')} undoes, as long as nothing was unloaded"
            )
            self._note(Undoable(True, tuple(names)))
            on_done()

        self._begin(begin)

    def cancel(self, name: str, *, aborts_load: bool = False) -> None:
        """No new steps."""

        async def end(desk: DrainDesk) -> None:
            await desk.cancel(name, aborts_load=aborts_load)
            how = "the load under way is given up" if aborts_load else "a load under way still finishes"
            self._tell(
                f"{clean(name)}: no new steps; {how}. It takes no requests until "
                f"{self._key('undrain')} puts it back into service"
            )
            self._note(None)

        self._begin(end)

    def skip(self, name: str, copy_key: tuple[str, str, int, str]) -> None:
        """Leave one copy where it is."""

        async def leave(desk: DrainDesk) -> None:
            await desk.skip(name, copy_key)
            self._tell(f"{clean(copy_key[3])} stays on {clean(name)}, which keeps it from being drained")

        self._begin(leave)

    def take_over(self) -> None:
        """Go on with what nobody works on."""

        async def resume(desk: DrainDesk) -> None:
            taken = await desk.resume()
            self._tell(
                f"this dashboard works on {_named(taken)} now" if taken else "somebody works on it again"
            )

        self._begin(resume)

    def ask_undrain(self, names: Sequence[str], text: str = "") -> None:
        """Say what it means, then put them back into service."""
        screen, watch = self._app.live_screen, self.watch
        named, text = split_named(self._app.snapshot, text)
        names = named or names
        if named and not any(map(self.is_flagged, named)):
            self.fail(f"{_named(named)} {'is' if len(named) == 1 else 'are'} not drained")
            return
        drained = [name for name in names if self.is_flagged(name)]
        if screen is None or not drained:
            return
        if self.desk is None:
            self.fail(NO_STATE)
            return
        if text.strip():
            if text.strip().lower() != _RETURN:
                self.fail(f"undrain takes nothing but `{_RETURN}`, which moves back what was moved away")
                return
            self._undrain(drained, returns=True)
            return
        watch.look([*drained])
        screen.ask(
            Question(
                f"undrain {_named(drained)}?",
                lambda typed: self._undrain(drained, returns=typed.strip().lower() == _RETURN),
                placeholder="Enter does it, Esc does not",
                hint_of=lambda typed: self._undrain_hint(drained, typed),
                is_wrong=lambda typed: typed.strip().lower() not in (*_YES, _RETURN),
                complete=lambda typed: _RETURN if _RETURN.startswith(typed.strip().lower()) else typed,
            )
        )

    def _undrain_hint(self, names: Sequence[str], typed: str) -> Cells:
        moved = [copy for name in names for copy in self._moved(name)]
        if typed.strip().lower() == _RETURN:
            told = ", ".join(f"{clean(copy.copy.name)} from {clean(copy.target or '')}" for copy in moved)
            return (Cell(f" moved back: {told}" if told else " nothing was moved away", "dim"),)
        text = " takes requests again" if len(names) == 1 else " take requests again"
        if moved:
            number = count(len(moved), "copy was", "copies were")
            text += (
                f"; {number} moved away: type {_RETURN} to move {'it' if len(moved) == 1 else 'them'} back"
            )
        return (Cell(text, "dim"),)

    def _moved(self, name: str) -> tuple[CopyProgress, ...]:
        status = self.watch.status_of(name)
        return (
            () if status is None else tuple([copy for copy in status.copies if copy.is_moved and copy.target])
        )

    def _undrain(self, names: Sequence[str], *, returns: bool) -> None:
        async def end(desk: DrainDesk) -> None:
            drains = []
            for name in names:
                status = await desk.status(name)
                await desk.undrain(name, returns=returns)
                drains += [status.drain] if status is not None else []
            verb = "takes" if len(names) == 1 else "take"
            back = "; what was moved away is moved back" if returns else ""
            undo = "" if returns else f"\n{self._key('undo')} undoes"
            self._tell(f"{_named(names)} {verb} requests again{back}{undo}")
            self._note(None if returns else Undoable(False, tuple(names), tuple(drains)))

        self._begin(end)

    def undo(self) -> None:
        """Take back the last start, as long as nothing was unloaded, or the last undrain."""
        if self.last is None:
            return
        last = self.last
        self._note(None)
        self._begin(
            lambda desk: self._undo_start(desk, last) if last.is_start else self._undo_end(desk, last)
        )

    async def _undo_start(self, desk: DrainDesk, last: Undoable) -> None:
        undone: list[str] = []
        kept: list[str] = []
        for name in last.names:
            status = await desk.status(name)
            unloaded = (
                [copy.copy.name for copy in status.copies if copy.unloads] if status is not None else []
            )
            if unloaded:
                kept.append(f"{name}: not undone, {', '.join(unloaded)} is unloaded there already")
                continue
            await desk.cancel(name, aborts_load=True, is_eligible=True)
            undone.append(name)
        if undone:
            verb = "takes" if len(undone) == 1 else "take"
            self._tell(f"Undone: {_named(undone)} {verb} requests again, nothing was unloaded")
        if kept:
            how = f"{self._key('undrain')} puts it back into service, `{_RETURN}` moves copies back"
            self.fail(f"{'; '.join(kept)}; {how}")

    async def _undo_end(self, desk: DrainDesk, last: Undoable) -> None:
        for drain in last.drains:
            await desk.start([drain.machine], drain.reason, drain.options, until=self._ahead(drain.until))
        verb = "is" if len(last.names) == 1 else "are"
        self._tell(f"Undone: {_named(last.names)} {verb} drained again")

    def _ahead(self, until: float | None) -> float | None:
        return until if until is not None and until > self._app.clock() else None

    def is_flagged(self, name: str | None) -> bool:
        """The machine is drained, or about to be."""
        machine = None if name is None else self._app.snapshot.find(name)
        return machine is not None and machine.drain is not None

    # One at a time

    def _begin(self, work: Callable[[DrainDesk], Awaitable[None]]) -> None:
        desk = self.desk
        if desk is None:
            self.fail(NO_STATE)
            return

        async def take_turn() -> None:
            async with self._turn:
                try:
                    await work(desk)
                except DrainError as error:
                    self.fail(error.text)
                finally:
                    self.watch.note_news()

        self._app.run_worker(take_turn(), group="drains")

    def _note(self, done: Undoable | None) -> None:
        self.last = done
        if done is not None:
            self._app.maintenance.last = None
        self._app.screen.refresh_bindings()

    # Words

    def _key(self, action: str) -> str:
        screen = self._app.live_screen
        return "" if screen is None else screen.key_of(action)

    def _tell(self, text: str) -> None:
        self._app.clear_notifications()
        self._app.notify(text, timeout=TOLD_S, markup=False)

    def fail(self, text: str) -> None:
        """Why nothing was done."""
        self._app.notify(clean(text), severity="error", timeout=TOLD_S, markup=False)


def _named(names: Sequence[str]) -> str:
    return clean(names[0]) if len(names) == 1 else f"{len(names)} machines"
