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
_KEPT_S = 2.0
"""The clock alone tells only that machines grow stale: counted as often as that of the same snapshot."""


class SummaryLine(CellBlock):
    """The summary at the left, the pace at the right."""

    def __init__(self) -> None:
        super().__init__(id="summary")
        self._made_of: tuple[object, ...] | None = None
        self._summary: Cells = ()
        """Of all that."""

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
        made_of = (fleet, now // _KEPT_S, room, glyphs, thresholds)
        if self._made_of is None or not all(map(_is_same, made_of, self._made_of)):
            summary = summary_cells(fleet, now, room, glyphs, thresholds)
            self._made_of, self._summary = made_of, fit_cells(summary, room, "left", glyphs.ellipsis)
        self.show_cells((*left, *self._summary, Cell("  "), *right))


def _is_same(now: object, before: object) -> bool:
    """The same object, or an equal number: whole snapshots are not compared."""
    return now is before or (isinstance(now, int | float) and now == before)
