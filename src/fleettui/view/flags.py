"""Chips for what the operator decided: maintenance and drain."""

from __future__ import annotations

from typing import Literal

from fleettui.model.snapshot import DrainFlag, MachineSnapshot, MaintenanceFlag
from fleettui.view.cells import Cell, Cells, Tone, join_cells, width_of
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import cell_width, clean, clip
from fleettui.view.units import duration, remaining

Detail = Literal["full", "brief", "word", "bare"]
"""`maintenance "fan swap" mia, 2h, 30m left`, `maintenance "fan swap", 30m left`, `maintenance, 30m left`,
`maintenance`."""
_SHORTER: tuple[Detail, ...] = ("word", "bare")
_LEAST_REASON = 6
"""Columns; less of a reason says nothing."""


def flag_texts(snapshot: MachineSnapshot, now: float) -> list[str]:
    """`maintenance "fan swap" mia, 2h, 30m left` (past its time `5m overdue`), `drained "x" mia, 3m`."""
    return [text for text, _ in _chips(snapshot, now, "full", None)]


def flag_cells(
    snapshot: MachineSnapshot,
    now: float,
    glyphs: Glyphs,
    detail: Detail = "full",
    reason_width: int | None = None,
) -> list[Cells]:
    """One group of cells for each flag; one past its time wants a look, and a drain that is stuck. A reason
    is cut to `reason_width` columns."""
    chips = _chips(snapshot, now, detail, reason_width)
    return [(Cell(f"{glyphs.flag} {text}", tone),) for text, tone in chips]


def fitting_flags(snapshot: MachineSnapshot, now: float, glyphs: Glyphs, width: int) -> tuple[Cells, bool]:
    """As much of all flags as fits so many columns, and whether that is all there is to say."""
    if snapshot.maintenance is None and snapshot.drain is None:
        return (), True
    full = _joined(snapshot, now, glyphs, "full")
    if width_of(full) <= width:
        return full, True
    cells = _joined(snapshot, now, glyphs, "brief")
    over = width_of(cells) - width
    if over > 0:
        flags = [flag for flag in (snapshot.maintenance, snapshot.drain) if flag is not None and flag.reason]
        longest = max((cell_width(clean(flag.reason or "")) for flag in flags), default=0)
        cells = _joined(snapshot, now, glyphs, "brief", max(_LEAST_REASON, longest - over))
    for detail in _SHORTER:
        if width_of(cells) > width:
            cells = _joined(snapshot, now, glyphs, detail)
    return cells, False


def _joined(
    snapshot: MachineSnapshot, now: float, glyphs: Glyphs, detail: Detail, reason_width: int | None = None
) -> Cells:
    return join_cells(flag_cells(snapshot, now, glyphs, detail, reason_width), "  ")


def _chips(
    snapshot: MachineSnapshot, now: float, detail: Detail, reason_width: int | None
) -> list[tuple[str, Tone]]:
    found: list[tuple[str, Tone]] = []
    maintenance, drain = snapshot.maintenance, snapshot.drain
    if maintenance is not None:
        text = f"maintenance{_why(maintenance, now, detail, reason_width)}"
        if detail != "bare":
            text += _time_left(maintenance, now)
        found.append((text, "warn" if maintenance.is_overdue(now) else "accent"))
    if drain is not None:
        text = f"{drain_word(drain)}{_why(drain, now, detail, reason_width)}"
        if detail != "bare":
            text += _time_left(drain, now)
        if detail == "full" and drain.text:
            text += f": {clean(drain.text)}"
        is_stuck = drain.state in ("blocked", "failed")
        found.append((text, "warn" if is_stuck or drain.is_overdue(now) else "accent"))
    return found


def drain_word(flag: DrainFlag) -> str:
    """`drained`, `drain running`."""
    return "drained" if flag.is_drained else f"drain {flag.state}"


def _why(flag: MaintenanceFlag | DrainFlag, now: float, detail: Detail, reason_width: int | None) -> str:
    if detail in _SHORTER:
        return ""
    reason = clean(flag.reason or "")
    if reason and reason_width is not None:
        reason = clip(reason, reason_width)
    text = f' "{reason}"' if reason else ""
    return f"{text} {clean(flag.by)}, {duration(now - flag.since)}" if detail == "full" else text


def _time_left(flag: MaintenanceFlag | DrainFlag, now: float) -> str:
    if flag.until is None:
        return ""
    left = flag.until - now
    return f", {duration(-left)} overdue" if flag.is_overdue(now) else f", {remaining(left)} left"
