"""Screens that show the fleet as it is now."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from fleettui.model.snapshot import FleetSnapshot

if TYPE_CHECKING:
    from fleettui.tui.app import FleetApp


class LiveScreen(Screen[None]):
    """A screen that is handed snapshots while it is on top, and the newest one when it comes back."""

    machine_name: str | None = None
    """The one machine it is about; None: about all."""

    @property
    def fleet_app(self) -> FleetApp:
        """The app, with its type."""
        return cast("FleetApp", self.app)

    @abstractmethod
    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed. Also called each second, so that ages go on."""

    def on_screen_resume(self) -> None:
        """Whatever was on top is gone: catch up."""
        self.fleet_app.painter.paint_now()
