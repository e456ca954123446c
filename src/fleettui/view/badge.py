"""What waits for the operator, in a few words, for every screen."""

from __future__ import annotations

from fleettui.model.snapshot import FleetSnapshot
from fleettui.view.cells import Cell, Cells
from fleettui.view.units import count


def badge_cells(fleet: FleetSnapshot, key: str = "") -> Cells:
    """Changed host keys, machines that wait for approval, the key to see them; nothing when none waits."""
    changed = sum(item.trust == "key_changed" for item in fleet.machines)
    pending = sum(item.trust == "pending" for item in fleet.machines)
    cells: list[Cell] = []
    if changed:
        cells.append(Cell(f"{count(changed, 'key')} changed", "bad"))
    if pending:
        cells += [Cell("  ")] if cells else []
        cells.append(Cell(f"{pending} pending", "warn"))
    if cells and key:
        cells.append(Cell(f"  {key}", "key"))
    return tuple(cells)
