"""The timeline as rows of a list, newest first: laid out only when somebody looks, days set apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fleettui.model.clock import civil_date, hh_mm_ss
from fleettui.model.event import EVENT_KINDS, Event
from fleettui.view.cells import Cell, Cells, fit_cells, width_of
from fleettui.view.detail import DetailRoom, detail_lines
from fleettui.view.event_filter import EVERY_EVENT, EventFilter
from fleettui.view.event_lines import TONES, event_text, name_column
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.text import clean, clip, fit
from fleettui.view.units import count, date_and_time, duration

NARROW = 60
"""Below, times have no seconds and names are short."""
KINDS_FROM = 110
"""From here on the kind stands in a column of its own."""
_NAME_TITLE = "machine"
_NARROW_NAME = 10
_KIND_WIDTH = max(map(len, EVENT_KINDS))
_DAY_S = 86_400
_DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
"""Of the first day of the epoch and those that follow."""


class EventLayout(NamedTuple):
    """How rows are drawn."""

    width: int
    name_width: int
    """0: the timeline of one machine, names stand nowhere."""
    today: int
    """Number of the operator's day."""
    utc_offset_s: int = 0
    is_utc: bool = False
    """Times are shown in UTC since nobody knows the operator's zone."""
    glyphs: Glyphs = UNICODE

    @property
    def kind_width(self) -> int:
        """0 where there is no room."""
        return _KIND_WIDTH if self.width >= KINDS_FROM else 0

    def day_of(self, epoch_s: float) -> int:
        """Number of the day that a moment is in, by the operator's clock."""
        return int((epoch_s + self.utc_offset_s) // _DAY_S)


def event_layout(
    width: int, names: Iterable[str], now: float, *, utc_offset_s: int | None, glyphs: Glyphs
) -> EventLayout:
    """The layout for a width. `names`: machines that may stand there, none for the timeline of one."""
    offset_s = utc_offset_s or 0
    name_width = name_column(names)
    if name_width:
        name_width = max(name_width, len(_NAME_TITLE)) if width >= NARROW else min(name_width, _NARROW_NAME)
    return EventLayout(
        width, name_width, int((now + offset_s) // _DAY_S), offset_s, utc_offset_s is None, glyphs
    )


class TimelineRow:
    """One event, or the heading of a day. The same object as long as it says the same."""

    __slots__ = ("_asked", "_cells", "_is_asked_for", "_layout", "event", "key")

    def __init__(
        self, key: str, event: Event | None, layout: EventLayout, cells: Cells | None = None
    ) -> None:
        self.key = key
        self.event = event
        """None: the heading of a day."""
        self._layout = layout
        self._cells = cells
        self._asked: EventFilter | None = None
        self._is_asked_for = True

    @property
    def cells(self) -> Cells:
        """The line, made when it comes into view."""
        if self._cells is None:
            self._cells = () if self.event is None else _event_cells(self.event, self._layout)
        return self._cells

    def is_asked_for(self, wanted: EventFilter) -> bool:
        """True when it matches; a filter is asked once."""
        if self._asked is not wanted:
            self._asked = wanted
            self._is_asked_for = self.event is None or wanted.matches(self.event)
        return self._is_asked_for


class Timeline:
    """Rows for the events of a machine or of all; what was there already is the same row again."""

    def __init__(self) -> None:
        self._known: dict[int, TimelineRow] = {}
        """By identity of the event, which the row keeps alive."""
        self._layout: EventLayout | None = None
        self._days: dict[int, TimelineRow] = {}
        self.total = 0
        """Events before the filter."""
        self.shown = 0

    def rows_of(
        self,
        events: Iterable[Event],
        layout: EventLayout,
        wanted: EventFilter = EVERY_EVENT,
        machine: str | None = None,
    ) -> list[TimelineRow]:
        """Newest first. `events`: newest first too; `machine`: only of this one."""
        if layout != self._layout:
            self._known, self._days, self._layout = {}, {}, layout
        known, fresh = self._known, dict[int, TimelineRow]()
        rows: list[TimelineRow] = []
        keys: set[str] = set()
        day = layout.today
        self.shown = 0
        for event in events:
            if machine is not None and event.machine != machine:
                continue
            row = known.get(id(event))
            if row is None:
                row = TimelineRow(_key_of(event), event, layout)
            fresh[id(event)] = row
            if not row.is_asked_for(wanted):
                continue
            if row.key in keys:
                row.key = f"{row.key} {len(keys)}"
            keys.add(row.key)
            event_day = layout.day_of(event.at)
            if event_day != day:
                day = event_day
                rows.append(self._day_row(day, layout))
            rows.append(row)
            self.shown += 1
        self._known, self.total = fresh, len(fresh)
        return rows

    def _day_row(self, day: int, layout: EventLayout) -> TimelineRow:
        row = self._days.get(day)
        if row is None:
            row = self._days[day] = TimelineRow(f"day {day}", None, layout, _day_cells(day, layout))
        return row


def header_of(layout: EventLayout) -> Cells:
    """Titles of the columns."""
    time_width = 5 if layout.width < NARROW else 8
    gap = _gap(layout)
    parts = [fit("UTC" if layout.is_utc else "time", time_width)]
    if layout.name_width:
        parts.append(fit(_NAME_TITLE, layout.name_width, layout.glyphs.ellipsis))
    if layout.kind_width:
        parts.append(fit("kind", layout.kind_width))
    parts.append("what happened")
    return (Cell(" " + gap.join(parts), "title"),)


def event_detail(event: Event, now: float, layout: EventLayout, room: DetailRoom) -> tuple[Cells, ...]:
    """All of an event: what the list has no room for."""
    text = event_text(event, layout.glyphs)
    facts = _facts(event, now, layout) if room.has_facts else None
    return detail_lines(facts, text, TONES.get(event.severity, "plain"), layout.width, room, layout.glyphs)


def _facts(event: Event, now: float, layout: EventLayout) -> Cells:
    dot = f" {layout.glyphs.dot} "
    age_s = now - event.ended_at
    facts = [event.kind, f"{duration(age_s)} ago" if age_s >= 1 else "now"]
    if event.count > 1:
        last = hh_mm_ss(event.ended_at + layout.utc_offset_s)
        facts.append(f"{count(event.count, 'time')}, last {last}")
    cells = [
        Cell(f" {date_and_time(event.at, layout.utc_offset_s)}{' UTC' if layout.is_utc else ''}", "dim"),
        Cell(f"  {clean(event.machine) or layout.glyphs.dash}", "strong"),
        Cell("  " + dot.join(facts), "dim"),
    ]
    if event.by:
        cells += [Cell(dot, "dim"), Cell(f"by {clean(event.by)}", "accent")]
    return fit_cells(cells, layout.width, "left", layout.glyphs.ellipsis)


def _key_of(event: Event) -> str:
    """Stays with an event when it happens again and is counted."""
    return f"{event.at} {event.machine} {event.kind} {event.subject}"


def _gap(layout: EventLayout) -> str:
    return " " if layout.width < NARROW else "  "


def _event_cells(event: Event, layout: EventLayout) -> Cells:
    glyphs, gap = layout.glyphs, _gap(layout)
    time = hh_mm_ss(event.at + layout.utc_offset_s)
    head = [Cell(f" {time[:5] if layout.width < NARROW else time}{gap}", "dim")]
    if layout.name_width:
        name = clean(event.machine) or glyphs.dash
        head.append(Cell(fit(name, layout.name_width, glyphs.ellipsis) + gap, "strong"))
    if layout.kind_width:
        head.append(Cell(fit(event.kind, layout.kind_width) + gap, "dim"))
    tail = []
    if event.count > 1:
        tail.append(Cell(glyphs.plain(f" ×{event.count}"), "dim"))
    if event.by:
        tail.append(Cell(f" by {clean(event.by)}", "accent"))
    room = layout.width - width_of(head) - width_of(tail)
    if room < layout.width // 4:
        room, tail = room + width_of(tail), []
    return (*head, *_tinted(clip(event_text(event, glyphs), max(1, room), glyphs.ellipsis), event), *tail)


def _tinted(text: str, event: Event) -> Cells:
    """The sign in its colour, the sentence only where it calls for somebody: a calm list."""
    tone = TONES.get(event.severity, "plain")
    return (
        (Cell(text, tone),) if event.severity in ("warn", "bad") else (Cell(text[:1], tone), Cell(text[1:]))
    )


def _day_cells(day: int, layout: EventLayout) -> Cells:
    """` yesterday, Sun 2026-11-29 ────`."""
    ago = layout.today - day
    word = {0: "today, ", 1: "yesterday, "}.get(ago, "")
    date = "{:04d}-{:02d}-{:02d}".format(*civil_date(day * _DAY_S))
    title = f" {word}{_DAYS[day % 7]} {date} "
    return (Cell(title, "title"), Cell(layout.glyphs.rule * max(0, layout.width - len(title) - 1), "faint"))
