"""What became of maintenance flags, as lines and as JSON."""

from __future__ import annotations

from fleettui.model.clock import day_and_time, duration
from fleettui.model.flag_words import maintenance_words
from fleettui.model.flags import MaintenanceChange, MaintenanceResult
from fleettui.view.document import maintenance_document
from fleettui.view.json_values import Document
from fleettui.view.text import clean
from fleettui.view.units import count


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


def told_text(change: MaintenanceChange, now: float, utc_offset_s: int | None = None) -> str:
    """What one key did, in a sentence or two; a machine alone is told with everything."""
    results = change.results
    if len(results) == 1:
        return change_line(results[0], now, utc_offset_s)
    raised = sum(result.before is None and result.after is not None for result in results)
    cleared = sum(result.before is not None and result.after is None for result in results)
    edited = len(change.changed) - raised - cleared
    same = len(results) - len(change.changed)
    parts = []
    if raised:
        parts.append(
            f"{count(raised, 'machine')} now in maintenance: not routed from now on, nothing is unloaded"
        )
    if cleared:
        parts.append(f"{count(cleared, 'machine')} out of maintenance")
    if edited:
        parts.append(f"{count(edited, 'machine')} in maintenance with another reason or end")
    if same:
        word = "was" if same == 1 else "were"
        where = "in maintenance" if results[0].after is not None else "out of it"
        parts.append(f"{same} {word} {where} already")
    return "; ".join(parts)


def undone_text(change: MaintenanceChange, now: float, utc_offset_s: int | None = None) -> str:
    """What undoing did."""
    return "Undone: " + told_text(change, now, utc_offset_s)


def announced_text(
    reason: str | None, until: float | None, now: float, utc_offset_s: int | None = None
) -> str:
    """What Enter would set: `"fan swap", until 14:00, 2h from now; …`."""
    what = f'"{clean(reason)}"' if reason else "no reason"
    if until is None:
        return f"{what}, until you end it"
    end = f"{day_and_time(until, now, utc_offset_s)}, {duration(until - now)} from now"
    return f"{what}, until {end}; past that it is told as overdue, nothing ends by itself"


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
