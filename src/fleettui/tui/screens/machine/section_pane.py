"""A tab made of titled sections that scroll."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.screens.machine.page import TWO_COLUMNS_FROM, column_width, page_lines
from fleettui.tui.screens.machine.pane import MachinePane, gone_line
from fleettui.tui.widgets.line_view import LineView
from fleettui.tui.widgets.painting import Line
from fleettui.view.layout import Layout, make_layout
from fleettui.view.machine_page import Section


class SectionPane(MachinePane, LineView[Line]):
    """Sections below each other, in two columns where there is room."""

    def __init__(self, machine_name: str) -> None:
        super().__init__(machine_name)
        self._layout: Layout | None = None
        self._shown: MachineSnapshot | None = None
        self._shown_for: object = None

    @abstractmethod
    def sections_of(
        self, machine: MachineSnapshot, fleet: FleetSnapshot, now: float, layout: Layout
    ) -> Sequence[Section]:
        """What the page says."""

    @property
    def is_wide(self) -> bool:
        """True with two columns."""
        return self.screen.size.width >= TWO_COLUMNS_FROM

    def show_machine(self, machine: MachineSnapshot | None, fleet: FleetSnapshot, now: float) -> None:
        """Paint the lines that changed. A poll of another machine costs nothing."""
        layout = self._layout_for(fleet)
        made_for = (fleet.problems, int(now), layout, self.size)
        if machine is self._shown and made_for == self._shown_for:
            return
        self._shown, self._shown_for = machine, made_for
        if machine is None:
            self.show_lines([gone_line(self.machine_name, fleet)])
            return
        sections = self.sections_of(machine, fleet, now, layout)
        self.show_lines(page_lines(sections, self.screen.size.width, layout.glyphs.ellipsis))

    def _layout_for(self, fleet: FleetSnapshot) -> Layout:
        width = column_width(self.screen.size.width)
        layout = self._layout
        made_for = (width, fleet.interval_s, fleet.paused_at)
        if layout is None or (layout.width, layout.interval_s, layout.paused_at) != made_for:
            look = self.fleet_app.look
            layout = self._layout = make_layout(
                width,
                interval_s=fleet.interval_s,
                glyphs=look.glyph_set,
                thresholds=look.thresholds,
                utc_offset_s=look.utc_offset_s,
                has_hints=False,
                paused_at=fleet.paused_at,
            )
        return layout
