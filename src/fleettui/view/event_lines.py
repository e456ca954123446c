"""Events as lines: time, machine, sign, what happened. For `fleettui events` and the screens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fleettui.model.clock import civil_date, hh_mm_ss
from fleettui.model.event import Event, EventKind, EventSeverity
from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.text import cell_width, clean, fit, wrap
from fleettui.view.units import date_and_time

TONES: dict[EventSeverity, Tone] = {"good": "good", "note": "plain", "warn": "warn", "bad": "bad"}
_SIGNS: dict[EventKind, tuple[str, str]] = {
    "engine_down": ("↓", "-"),
    "engine_up": ("↑", "+"),
    "loaded": ("+", "+"),
    "unloaded": ("−", "-"),
    "expired": ("−", "-"),
    "evicted": ("↯", "-"),
    "moved": ("~", "~"),
    "trust": ("⚿", "k"),
    "maintenance": ("⚑", "!"),
    "drain": ("⚑", "!"),
    "action": ("→", ">"),
    "file": ("≡", "="),
    "unseen": ("…", "."),
    "poll_failed": ("·", "."),
}
_HEALTH_KINDS = frozenset({"health", "offline", "back"})
NAME_WIDTH = 20
"""Longer names are cut in a terminal."""
_MIN_WRAP = 24
SAMPLE = "●→−↯⚿⚑≡…"
"""What the lines need beyond ASCII."""


def event_lines(
    events: Sequence[Event],
    *,
    width: int | None = None,
    utc_offset_s: int = 0,
    now: float | None = None,
    glyphs: Glyphs = UNICODE,
    name_width: int | None = None,
    has_names: bool = True,
) -> list[Cells]:
    """One line for each event, wrapped below its text where the terminal is narrower.

    `now`: events of other days get their date; None: never. `width`: columns, None wraps nothing.
    `name_width`: of the column of machines; None: as the events need. `has_names`: False for the timeline of
    one machine.
    """
    today = None if now is None else civil_date(now + utc_offset_s)
    has_dates = today is not None and any(civil_date(e.at + utc_offset_s) != today for e in events)
    if name_width is None:
        name_width = name_column(event.machine for event in events)
    lines: list[Cells] = []
    for event in events:
        head = _head(event, utc_offset_s, has_dates, name_width if has_names else 0, glyphs)
        lines += _wrapped(head, _body(event, utc_offset_s, glyphs), width)
    return lines


def name_column(names: Iterable[str]) -> int:
    """Columns that these names take, at most `NAME_WIDTH`."""
    return min(NAME_WIDTH, max((cell_width(clean(name)) for name in names), default=0))


def _head(event: Event, utc_offset_s: int, has_dates: bool, name_width: int, glyphs: Glyphs) -> list[Cell]:
    when = date_and_time(event.at, utc_offset_s) if has_dates else hh_mm_ss(event.at + utc_offset_s)
    cells = [Cell(f"{when}  ", "dim")]
    if name_width:
        name = clean(event.machine) or glyphs.dash
        cells.append(Cell(f"{fit(name, name_width, glyphs.ellipsis)}  ", "strong"))
    return cells


def event_text(event: Event, glyphs: Glyphs) -> str:
    """Sign and sentence."""
    text = clean(event.text)
    if event.kind == "health" and event.details.get("from") and event.details.get("to"):
        was, now_is = str(event.details["from"]), str(event.details["to"])
        reason = event.details.get("reason")
        signs = (glyphs.of_health(was), glyphs.of_health(now_is))  # type: ignore[arg-type]
        text = f"{signs[0]} {clean(was)} → {signs[1]} {clean(now_is)}"
        text += f": {clean(str(reason))}" if reason else ""
    else:
        text = f"{_sign(event, glyphs)} {text}"
    return glyphs.plain(text)


def _body(event: Event, utc_offset_s: int, glyphs: Glyphs) -> list[Cell]:
    """Sign and text; the parts of a line that may wrap."""
    cells = [Cell(event_text(event, glyphs), TONES.get(event.severity, "plain"))]
    if event.by:
        cells.append(Cell(f" by {clean(event.by)}", "accent"))
    if event.count > 1:
        last = hh_mm_ss(event.ended_at + utc_offset_s)
        cells.append(Cell(f" ({event.count} times, last {last})", "dim"))
    return cells


def _sign(event: Event, glyphs: Glyphs) -> str:
    if event.kind in _HEALTH_KINDS:
        return glyphs.of_health(event.details.get("to", "unknown"))
    return _SIGNS.get(event.kind, ("·", "-"))[glyphs.is_ascii]


def _wrapped(head: list[Cell], body: list[Cell], width: int | None) -> list[Cells]:
    indent = sum(cell_width(cell.text) for cell in head)
    room = None if width is None else width - indent - 2
    whole = sum(cell_width(cell.text) for cell in body)
    if width is None or room is None or room < _MIN_WRAP or indent + whole <= width:
        return [(*head, *body)]
    lines: list[Cells] = []
    texts = wrap("".join(cell.text for cell in body), room)
    for number, text in enumerate(texts):
        start: list[Cell] = head if number == 0 else [Cell(" " * (indent + 2))]
        lines.append((*start, Cell(text, body[0].tone)))
    return lines
