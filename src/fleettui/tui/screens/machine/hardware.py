"""The Hardware tab: health, utilisation, devices, system."""

from __future__ import annotations

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.screens.machine.page import column_width, page_lines
from fleettui.tui.screens.machine.pane import MachinePane, gone_line
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.layout import Layout, make_layout
from fleettui.view.machine_page import machine_page


class HardwarePane(MachinePane, LineView[Line]):
    """Sections below each other, side by side where there is room."""

    def __init__(self, machine_name: str) -> None:
        super().__init__(machine_name)
        self._layout: Layout | None = None

    def show_machine(self, machine: MachineSnapshot | None, fleet: FleetSnapshot, now: float) -> None:
        if machine is None:
            self.show_lines([gone_line(self.machine_name, fleet)])
            return
        layout = self._layout_for(fleet)
        sections = machine_page(machine, now, layout, fleet.problems)
        self.show_lines(page_lines(sections, self.screen.size.width, layout.glyphs.ellipsis))

    def _layout_for(self, fleet: FleetSnapshot) -> Layout:
        width = column_width(self.screen.size.width)
        if self._layout is None or (self._layout.width, self._layout.interval_s) != (width, fleet.interval_s):
            look = self.fleet_app.look
            self._layout = make_layout(
                width,
                interval_s=fleet.interval_s,
                glyphs=look.glyph_set,
                thresholds=look.thresholds,
                utc_offset_s=look.utc_offset_s,
                has_hints=False,
            )
        return self._layout
