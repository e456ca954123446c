"""The summary of the fleet: machines up, GPUs, VRAM, copies, and what needs the operator."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.model.snapshot import FleetSnapshot
from fleettui.model.unknown import Unknown
from fleettui.model.vram import vram_sum
from fleettui.view.bars import DEFAULT_THRESHOLDS, Thresholds, bar_cells
from fleettui.view.cells import Cell, Cells, Tone, join_cells, width_of
from fleettui.view.figures import is_answering
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.units import count, gib_whole

_BAR_WIDTH = 22


class FleetSummary(NamedTuple):
    """Counts over the fleet."""

    up: int
    total: int
    gpus: int
    used_mib: int
    free_mib: int
    total_mib: int
    """VRAM of machines that are up, cards whose memory is known; a unified part once."""
    copies: int
    pending: int
    key_changed: int
    offline: int
    """In maintenance or drained too: see `expected_offline`."""
    stale: int
    """Up, but heard longer than two intervals ago."""
    in_maintenance: int
    expected_offline: int
    """Offline and in maintenance or drained: nobody need be alarmed."""
    draining: int
    """Flagged and not empty yet."""
    stuck_drains: int
    """Of them blocked or failed."""
    drained: int
    drained_offline: int
    """Offline, drained and not in maintenance, which counts it already."""
    problems: int
    """In machine files."""


class SummaryPart(NamedTuple):
    """One part of the summary line."""

    key: str
    cells: Cells
    priority: int
    """0 is kept longest when the line is short."""


def summarize(fleet: FleetSnapshot, now: float) -> FleetSummary:
    """Count everything once."""
    up = [item for item in fleet.machines if is_answering(item)]
    offline = [item for item in fleet.machines if item.trust == "approved" and item.health == "offline"]
    drains = [item.drain for item in fleet.machines if item.drain is not None]
    used = free = total = gpus = 0
    for snapshot in up:
        sums = vram_sum(snapshot)
        gpus += sums.card_count
        used += 0 if isinstance(sums.used_mib, Unknown) else sums.used_mib
        free += 0 if isinstance(sums.free_mib, Unknown) else sums.free_mib
        total += 0 if isinstance(sums.total_mib, Unknown) else sums.total_mib
    return FleetSummary(
        up=len(up),
        total=len(fleet.machines),
        gpus=gpus,
        used_mib=used,
        free_mib=free,
        total_mib=total,
        copies=sum(len(item.loaded) for item in up),
        pending=sum(item.trust == "pending" for item in fleet.machines),
        key_changed=sum(item.trust == "key_changed" for item in fleet.machines),
        offline=len(offline),
        stale=sum((item.age_s(fleet.judged_at(now)) or 0.0) > 2 * fleet.interval_s for item in up),
        in_maintenance=sum(item.maintenance is not None for item in fleet.machines),
        expected_offline=sum(item.is_out_of_service for item in offline),
        draining=sum(not drain.is_drained for drain in drains),
        stuck_drains=sum(drain.state in ("blocked", "failed") for drain in drains),
        drained=sum(drain.is_drained for drain in drains),
        drained_offline=sum(item.is_out_of_service and item.maintenance is None for item in offline),
        problems=len(fleet.problems),
    )


def summary_parts(
    fleet: FleetSnapshot,
    now: float,
    glyphs: Glyphs = UNICODE,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> tuple[SummaryPart, ...]:
    """Parts in the order of the line; what is zero and bad is left out."""
    figures = summarize(fleet, now)
    up_tone: Tone = "good" if figures.up == figures.total else "warn" if figures.up else "bad"
    parts = [SummaryPart("up", (Cell(f"{figures.up}/{figures.total} up", up_tone),), 0)]
    if figures.gpus:
        free = f"{gib_whole(figures.free_mib)}/{gib_whole(figures.total_mib)} GiB free"
        fraction = figures.used_mib / figures.total_mib if figures.total_mib else None
        bar = bar_cells(fraction, _BAR_WIDTH, thresholds.memory, glyphs)
        parts += [
            SummaryPart("gpus", (Cell(count(figures.gpus, "GPU")),), 3),
            SummaryPart("vram", (Cell("VRAM ", "dim"), Cell(free)), 1),
            SummaryPart("bar", bar, 6),
        ]
    parts.append(SummaryPart("copies", (Cell(count(figures.copies, "copy", "copies")),), 4))
    alarming = figures.offline - figures.expected_offline
    flagged = f"{figures.in_maintenance} in maintenance"
    maintained = figures.expected_offline - figures.drained_offline
    if maintained:
        flagged += f" ({maintained} offline)"
    draining, drained = f"{figures.draining} draining", f"{figures.drained} drained"
    if figures.stuck_drains:
        draining += f" ({figures.stuck_drains} stuck)"
    if figures.drained_offline:
        drained += f" ({figures.drained_offline} offline)"
    concerns: list[tuple[str, int, str, Tone]] = [
        ("offline", alarming, f"{alarming} offline", "bad"),
        ("key_changed", figures.key_changed, f"{count(figures.key_changed, 'key')} changed", "bad"),
        ("pending", figures.pending, f"{figures.pending} pending", "warn"),
        ("stale", figures.stale, f"{figures.stale} stale", "warn"),
        ("maintenance", figures.in_maintenance, flagged, "accent"),
        ("draining", figures.draining, draining, "warn" if figures.stuck_drains else "accent"),
        ("drained", figures.drained, drained, "accent"),
        ("problems", figures.problems, f"{count(figures.problems, 'problem')} in files", "bad"),
    ]
    parts += [SummaryPart(key, (Cell(text, tone),), 2) for key, number, text, tone in concerns if number]
    return tuple(parts)


def summary_cells(
    fleet: FleetSnapshot,
    now: float,
    width: int,
    glyphs: Glyphs = UNICODE,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Cells:
    """The line in at most `width` columns: the least important parts go first, none is cut in the middle."""
    parts = list(summary_parts(fleet, now, glyphs, thresholds))
    while True:
        cells = _join(parts, glyphs)
        if width_of(cells) <= width or len(parts) == 1:
            return cells
        worst = max(part.priority for part in parts)
        parts.remove(next(part for part in reversed(parts) if part.priority == worst))


def _join(parts: list[SummaryPart], glyphs: Glyphs) -> Cells:
    """Parts between dots; the bar follows its figures without one."""
    groups: list[Cells] = []
    for part in parts:
        if part.key == "bar" and groups:
            groups[-1] = (*groups[-1], Cell(" "), *part.cells)
        else:
            groups.append(part.cells)
    return join_cells(groups, f" {glyphs.dot} ")
