"""The first line of the Fleet screen: what the fleet has, and how often it is asked."""

from __future__ import annotations

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.widgets.cell_block import CellBlock
from fleettui.view.bars import DEFAULT_THRESHOLDS, Thresholds
from fleettui.view.cells import Cell, Cells, fit_cells, width_of
from fleettui.view.glyphs import Glyphs
from fleettui.view.summary import summary_cells

_NAME: Cells = (Cell(" fleettui", "strong"), Cell("  "))
_NAME_FROM_WIDTH = 60
"""Narrower lines have no room for the program's name."""


class SummaryLine(CellBlock):
    """The summary at the left, the pace at the right."""

    def __init__(self) -> None:
        super().__init__(id="summary")

    def show_summary(
        self,
        fleet: FleetSnapshot,
        now: float,
        interval_s: float,
        pause: Cells,
        glyphs: Glyphs,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
    ) -> None:
        """Take over the fleet's figures; repaints only when the text changed. `pause`: said instead of the
        pace."""
        width = self.screen.size.width
        is_wide = width >= _NAME_FROM_WIDTH
        left: Cells = _NAME if is_wide else (Cell(" "),)
        pace = Cell(f"every {interval_s:g} s" if is_wide else f"{interval_s:g} s", "dim")
        right: Cells = pause or (pace,)
        room = width - width_of(left) - width_of(right) - 3
        summary = summary_cells(fleet, now, room, glyphs, thresholds)
        middle = fit_cells(summary, room, "left", glyphs.ellipsis)
        self.show_cells((*left, *middle, Cell("  "), *right))
