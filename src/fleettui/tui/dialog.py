"""Boxes that open over a screen and close again."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar, cast

from textual.screen import ModalScreen

from fleettui.model.snapshot import FleetSnapshot

if TYPE_CHECKING:
    from fleettui.tui.app import FleetApp

BOX_WIDTH = 76
"""Columns of the box, where the terminal has as many."""

ResultT = TypeVar("ResultT")


class Dialog(ModalScreen[ResultT]):
    """A modal screen with one Box in it; what is below stays in sight, dimmed, and is not painted."""

    DEFAULT_CSS = f"""
    Dialog {{
        align: center middle;
        color: $tone-plain;
        background: $background 60%;
    }}
    Dialog:ansi {{ background: $background; }}
    Dialog > Box {{
        width: {BOX_WIDTH};
        max-width: 100%;
        height: auto;
        max-height: 100%;
        border: round $tone-faint;
        border-title-color: $tone-strong;
        border-subtitle-color: $tone-dim;
        background: $background;
        padding: 0 1;
    }}
    """


class LiveDialog(Dialog[ResultT]):
    """A dialog that shows the fleet as it is now."""

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
