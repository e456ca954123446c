"""The Machine screen: everything known of one machine, live."""

from __future__ import annotations

from textual.app import ComposeResult

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.live import LiveScreen
from fleettui.tui.screens.machine.page import column_width, page_lines
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell, Cells, fit_cells
from fleettui.view.column_cells import health
from fleettui.view.layout import Layout, make_layout
from fleettui.view.machine_page import machine_page
from fleettui.view.machine_view import MachineView
from fleettui.view.text import clean


class MachineScreen(LiveScreen):
    """One machine; `]` and `[` go to its neighbours."""

    BINDINGS = bindings_for("machine")
    DEFAULT_CSS = """
    MachineScreen > #title { margin: 0 0 1 0; }
    MachineScreen.-low > #title { margin: 0; }
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.machine_name: str = name  # one machine, never None here
        self._layout: Layout | None = None

    def compose_body(self) -> ComposeResult:
        yield CellBlock(id="title")
        yield LineView[Line](id="page")

    @property
    def page(self) -> LineView[Line]:
        """The lines about the machine."""
        return self.query_one("#page", LineView)

    def on_mount(self) -> None:
        self.page.focus()

    def on_resize(self) -> None:
        self._layout = None
        self.set_class(self.size.height < 20, "-low")
        self.fleet_app.painter.paint_now()

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint the lines that changed."""
        machine = snapshot.find(self.machine_name)
        self._show_title(snapshot, machine, now)
        if machine is None:
            gone = Cell(
                f"   {clean(self.machine_name)} is no longer declared in {clean(snapshot.machines_dir)}",
                "warn",
            )
            self.page.show_lines([Line("gone", (gone,))])
            return
        layout = self._layout_for(snapshot)
        sections = machine_page(machine, now, layout, snapshot.problems)
        self.page.show_lines(page_lines(sections, self.size.width, layout.glyphs.ellipsis))

    def _layout_for(self, snapshot: FleetSnapshot) -> Layout:
        if self._layout is None or self._layout.interval_s != snapshot.interval_s:
            look = self.fleet_app.look
            self._layout = make_layout(
                column_width(self.size.width),
                interval_s=snapshot.interval_s,
                glyphs=look.glyph_set,
                thresholds=look.thresholds,
                utc_offset_s=look.utc_offset_s,
                has_hints=False,
            )
        return self._layout

    def _show_title(self, snapshot: FleetSnapshot, machine: MachineSnapshot | None, now: float) -> None:
        width = self.size.width
        names = [item.name for item in snapshot.machines]
        place = f"{names.index(self.machine_name) + 1} of {len(names)}" if machine is not None else ""
        pace = Cell("paused", "warn") if self.fleet_app.service.is_paused else Cell(place, "dim")
        cells: Cells = (Cell(f" {clean(self.machine_name)}  ", "strong"),)
        if machine is not None:
            view = MachineView(machine, now, self._layout_for(snapshot))
            about = clean(f"  {machine.machine.role}  {machine.machine.hostname}")
            cells = (*cells, *health(view, width), Cell(about, "dim"))
        ellipsis = self.fleet_app.look.glyph_set.ellipsis
        room = max(0, width - len(pace.text) - 1)
        self.query_one("#title", CellBlock).show_cells((*fit_cells(cells, room, "left", ellipsis), pace))

    # Actions

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
            self.page.action_top()
            self.fleet_app.painter.paint_now()
