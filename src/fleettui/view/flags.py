"""Chips for what the operator decided: maintenance and drain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleettui.model.snapshot import MachineSnapshot
from fleettui.view.cells import Cell, Cells
from fleettui.view.text import clean
from fleettui.view.units import duration, remaining

if TYPE_CHECKING:
    from fleettui.view.layout import Layout


def flag_texts(snapshot: MachineSnapshot, now: float) -> list[str]:
    """`maintenance "fan swap" mia, 2h, 30m left` (past its time `5m overdue`), `drained "x" mia, 3m`."""
    found = []
    maintenance, drain = snapshot.maintenance, snapshot.drain
    if maintenance is not None:
        text = (
            f"maintenance{_quoted(maintenance.reason)} {maintenance.by}, {duration(now - maintenance.since)}"
        )
        if maintenance.until is not None:
            left = maintenance.until - now
            text += f", {remaining(left)} left" if left > 0 else f", {duration(-left)} overdue"
        found.append(clean(text))
    if drain is not None:
        word = "drained" if drain.state == "drained" else f"drain {drain.state}"
        found.append(clean(f"{word}{_quoted(drain.reason)} {drain.by}, {duration(now - drain.since)}"))
    return found


def flag_cells(snapshot: MachineSnapshot, now: float, layout: Layout) -> list[Cells]:
    """One group of cells for each flag."""
    return [(Cell(f"{layout.glyphs.flag} {text}", "accent"),) for text in flag_texts(snapshot, now)]


def _quoted(reason: str | None) -> str:
    return f' "{reason}"' if reason else ""
