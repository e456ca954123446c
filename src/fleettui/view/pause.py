"""What a screen says while nobody is asked."""

from __future__ import annotations

from fleettui.model.clock import day_and_time, hh_mm
from fleettui.view.cells import Cell, Cells

_TIME_FROM, _SINCE_FROM = 60, 100


def pause_cells(paused_at: float | None, now: float, utc_offset_s: int | None, width: int) -> Cells:
    """`paused since 14:03`, shorter on a screen that has not that many columns."""
    if paused_at is None or width < _TIME_FROM:
        return (Cell("paused", "warn"),)
    if width < _SINCE_FROM:
        return (Cell(f"paused {hh_mm(paused_at, utc_offset_s)}", "warn"),)
    return (Cell(f"paused since {day_and_time(paused_at, now, utc_offset_s)}", "warn"),)
