"""One key from a model or a machine anywhere to the Route screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleettui.tui.remembering import APP

if TYPE_CHECKING:
    from fleettui.tui.app import FleetApp

ROUTE = "route"
"""The mode of the screen."""


class RouteWish(NamedTuple):
    """What the screen is to show."""

    model: str
    """Empty: ask which."""
    machine: str | None
    """Marked in the ranking."""
    came_from: str | None
    """The top screen that Esc goes back to."""


class RouteKey:
    """Keeps the wish until the screen is there to take it."""

    def __init__(self, app: FleetApp) -> None:
        self._app = app
        self._wish: RouteWish | None = None

    def take(self) -> RouteWish | None:
        """What is wished for, once."""
        wish, self._wish = self._wish, None
        return wish

    async def go(self, model: str) -> None:
        """Route the model of that name; without one that under the cursor, else ask which, with the machine
        marked."""
        app = self._app
        screen, before = app.live_screen, app.current_mode
        if screen is None:
            return
        came_from = before if before != ROUTE else None
        machine = None if model else screen.current_machine
        self._wish = RouteWish(model or screen.current_model or "", machine, came_from)
        if before != ROUTE:
            app.memory.note(APP, screen=ROUTE)
            await app.switch_mode(ROUTE)
        app.show_top_screen(ROUTE)
        app.screen.take_wish()  # type: ignore[attr-defined]
