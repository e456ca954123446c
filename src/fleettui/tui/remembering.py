"""An app that opens as it was left, and that knows when the operator last touched anything."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from textual import events

from fleettui.tui.dressed import DressedApp
from fleettui.tui.key_order import KeyOrder
from fleettui.tui.memory import Memory, text_in
from fleettui.tui.port import Look
from fleettui.tui.theme_menu import theme_menu
from fleettui.tui.themes import theme_names

if TYPE_CHECKING:
    from fleettui.fleet.ui_state import UiState

SAVE_S = 3.0
"""What changed is stored this often at most: a terminal that dies takes no more with it."""
LOAD_TIMEOUT_S = 1.0
"""A state folder that does not answer holds the screen up no longer."""
APP = "app"
"""The app's own part of the memory: `screen` on top, `commands` typed, `theme` chosen."""


class RememberingApp(DressedApp):
    """Has a memory, stored whenever it changed."""

    def __init__(
        self, look: Look | None, memory: Memory | None, state: UiState | None, clock: Callable[[], float]
    ) -> None:
        self.memory = memory or Memory()
        """What is shown, for the next run."""
        top = text_in(self.memory.part(APP), "screen")
        if top in self.MODES:  # another version may have had other screens
            self.DEFAULT_MODE = top  # type: ignore[misc]  # Textual reads it from the app itself
        self._state = state
        self._input_clock = clock
        self._touched_at = float("-inf")
        self._is_saving = False
        super().__init__(look)
        self._keys = KeyOrder(self, super().on_event)

    @property
    def last_theme(self) -> str:
        """What the operator chose in the menu, as long as it exists."""
        name = text_in(self.memory.part(APP), "theme")
        return name if name in theme_names() else ""

    def action_theme(self, name: str = "") -> None:
        """Wear that theme, or let the operator choose: each is shown as the cursor moves over it."""
        if name:
            self._wear_theme(name)
            return
        before = self.theme

        def chosen(key: str | None) -> None:
            if key is None:
                self.theme = before
            else:
                self._wear_theme(key)

        self.push_screen(theme_menu(before, self._show_theme), chosen)

    def _show_theme(self, name: str) -> None:
        self.theme = name

    def _wear_theme(self, name: str) -> None:
        if name not in theme_names():
            near = get_close_matches(name, theme_names(), 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            self.notify(f"There is no theme {name}{hint}", severity="warning", markup=False)
            return
        self.theme = name
        self.memory.note(APP, theme=name)

    def on_mount(self) -> None:
        if self._state is not None:
            self.set_interval(SAVE_S, self.save_memory)

    async def save_memory(self) -> None:
        """Store what changed; what cannot be stored now is tried again, and the service's notices say why."""
        if self._state is None or self._is_saving:
            return
        changes = self.memory.take_changes()
        if not changes:
            return
        self._is_saving, is_stored = True, False
        try:
            is_stored = await self._state.save(changes)
        finally:  # also where the end of the dashboard cuts it short: the last save has it then
            self._is_saving = False
            if not is_stored:
                self.memory.give_back(changes)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):
            self._touched_at = self._input_clock()
        if isinstance(event, events.Key) and not event.is_forwarded:
            await self._keys.take(event)
        else:
            await super().on_event(event)

    @property
    def idle_s(self) -> float:
        """Seconds since the last key or mouse."""
        now = self._input_clock()
        self._touched_at = min(self._touched_at, now)  # the clock may have been set back
        return now - self._touched_at


async def recall(state: UiState | None) -> Memory:
    """What the last run left; nothing where there is no state folder or it does not answer."""
    import asyncio

    if state is None:
        return Memory()
    try:
        return Memory(await asyncio.wait_for(state.load(), LOAD_TIMEOUT_S))
    except TimeoutError:
        return Memory()


async def recall_theme(state: UiState) -> str:
    """The theme that the dashboard wore last; empty where none was chosen."""
    return text_in((await recall(state)).part(APP), "theme")
