"""Chips for what the operator decided: maintenance and drain."""

from __future__ import annotations

from fleettui.model.snapshot import MachineSnapshot, MaintenanceFlag
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import clean
from fleettui.view.units import duration, remaining


def flag_texts(snapshot: MachineSnapshot, now: float) -> list[str]:
    """`maintenance "fan swap" mia, 2h, 30m left` (past its time `5m overdue`), `drained "x" mia, 3m`."""
    return [text for text, _ in _chips(snapshot, now)]


def flag_cells(snapshot: MachineSnapshot, now: float, glyphs: Glyphs) -> list[Cells]:
    """One group of cells for each flag; a maintenance past its time wants a look."""
    return [(Cell(f"{glyphs.flag} {text}", tone),) for text, tone in _chips(snapshot, now)]


def _chips(snapshot: MachineSnapshot, now: float) -> list[tuple[str, Tone]]:
    found: list[tuple[str, Tone]] = []
    maintenance, drain = snapshot.maintenance, snapshot.drain
    if maintenance is not None:
        text = _maintenance_text(maintenance, now)
        found.append((text, "warn" if maintenance.is_overdue(now) else "accent"))
    if drain is not None:
        word = "drained" if drain.state == "drained" else f"drain {drain.state}"
        text = clean(f"{word}{_quoted(drain.reason)} {drain.by}, {duration(now - drain.since)}")
        found.append((text, "accent"))
    return found


def _maintenance_text(flag: MaintenanceFlag, now: float) -> str:
    text = f"maintenance{_quoted(flag.reason)} {flag.by}, {duration(now - flag.since)}"
    if flag.until is not None:
        left = flag.until - now
        text += f", {duration(-left)} overdue" if flag.is_overdue(now) else f", {remaining(left)} left"
    return clean(text)


def _quoted(reason: str | None) -> str:
    return f' "{reason}"' if reason else ""
