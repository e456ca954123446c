"""What stands below the tabs of the Machine screen."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell
from fleettui.view.text import clean

if TYPE_CHECKING:
    from textual.widget import Widget

    from fleettui.tui.app import FleetApp
else:
    Widget = object
    """Style sheets go by the first base that is a widget: that must be the list."""


class MachinePane(Widget):
    """A pane is made for one machine, when its tab is shown first, and is thrown away with it: nothing of
    one machine can show on the page of another. First base of a LineView, CursorView or container."""

    def __init__(self, machine_name: str) -> None:
        super().__init__()
        self.machine_name = machine_name

    @property
    def fleet_app(self) -> FleetApp:
        """The app, with its type."""
        return cast("FleetApp", self.app)

    @abstractmethod
    def show_machine(self, machine: MachineSnapshot | None, fleet: FleetSnapshot, now: float) -> None:
        """Paint what changed; None: it is not declared any more. Called while the pane is shown only: with
        each snapshot, each second, and when it comes up again."""

    def take_focus(self) -> None:
        """The pane came up: its keys should work."""
        self.focus()


def gone_line(name: str, fleet: FleetSnapshot) -> Line:
    """For a machine that is not declared any more."""
    text = f"   {clean(name)} is no longer declared in {clean(fleet.machines_dir)}"
    return Line("gone", (Cell(text, "warn"),))
