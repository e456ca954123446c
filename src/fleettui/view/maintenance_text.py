"""What became of maintenance flags, as lines and as JSON."""

from __future__ import annotations

from fleettui.model.flag_words import maintenance_words
from fleettui.model.flags import MaintenanceChange, MaintenanceResult
from fleettui.view.document import maintenance_document
from fleettui.view.json_values import Document
from fleettui.view.text import clean


def change_lines(change: MaintenanceChange, now: float, utc_offset_s: int | None = None) -> list[str]:
    """One sentence for each machine; times are local by `utc_offset_s`, else UTC."""
    return [change_line(result, now, utc_offset_s) for result in change.results]


def change_line(result: MaintenanceResult, now: float, utc_offset_s: int | None = None) -> str:
    """`cleo: maintenance "fan swap" by mia since 12:03; not routed from now on, nothing is unloaded`."""
    before, after = (
        None if flag is None else maintenance_words(flag, now, utc_offset_s)
        for flag in (result.before, result.after)
    )
    if after is None:
        text = "not in maintenance; unchanged" if before is None else f"out of maintenance; it was: {before}"
    elif before is None:
        text = f"{after}; not routed from now on, nothing is unloaded"
    else:
        text = f"{after}; before: {before}" if result.is_changed else f"{after}; unchanged"
    return clean(f"{result.name}: {text}")


def change_document(change: MaintenanceChange, now: float) -> Document:
    """`fleettui maintenance on|off --json`."""
    return {
        "schema": 1,
        "machines": [
            {
                "name": result.name,
                "outcome": _outcome(result),
                "maintenance": maintenance_document(result.after),
                "before": maintenance_document(result.before),
                "text": change_line(result, now),
            }
            for result in change.results
        ],
        "errors": [],
        "exit_code": 0,
    }


def _outcome(result: MaintenanceResult) -> str:
    if result.after is None:
        return "already_off" if result.before is None else "off"
    if result.before is None:
        return "on"
    return "changed" if result.is_changed else "already_on"
