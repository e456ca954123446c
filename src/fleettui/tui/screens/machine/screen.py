"""The Machine screen: everything known of one machine, live."""

from __future__ import annotations

from textual.app import ComposeResult

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.live import LiveScreen
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.footer import Footer
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell


class MachineScreen(LiveScreen):
    """One machine; `]` and `[` go to its neighbours."""

    BINDINGS = bindings_for("machine")
    DEFAULT_CSS = """
    MachineScreen > #title { margin: 0 0 1 0; }
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.machine_name = name

    def compose(self) -> ComposeResult:
        yield CellBlock(id="title")
        yield LineView[Line](id="page")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(LineView).focus()

    def on_resize(self) -> None:
        self.fleet_app.painter.paint_now()

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint the lines that changed."""
        machine = snapshot.find(self.machine_name)
        if machine is None:
            self.query_one(LineView).show_lines(
                [Line("gone", (Cell(f" {self.machine_name} is no longer declared", "warn"),))]
            )
            return
        self.query_one(LineView).show_lines([Line("x", (Cell(" TODO"),))])

    def action_back(self) -> None:
        self.dismiss()

    def action_next_machine(self) -> None:
        self._go(1)

    def action_previous_machine(self) -> None:
        self._go(-1)

    def _go(self, step: int) -> None:
        names = [item.name for item in self.fleet_app.snapshot.machines]
        if names:
            here = names.index(self.machine_name) if self.machine_name in names else 0
            self.machine_name = names[(here + step) % len(names)]
            self.query_one(LineView).action_top()
            self.fleet_app.painter.paint_now()
