"""A machine's log as rows of a list: laid out only when somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fleettui.model.clock import hh_mm_ss
from fleettui.model.log import LogGroup, LogLine
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone, fit_cells
from fleettui.view.detail import DetailRoom, detail_lines
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.log_lines import FIRST_TITLE, first_lines, is_alarming
from fleettui.view.text import cell_width, clean, clip, fit
from fleettui.view.units import date_and_time

NARROW = 60
"""Below, times have no seconds."""
_SOURCE_MIN, _SOURCE_MAX, _SOURCE_NARROW = 6, 20, 8
_TONES: dict[LogGroup, Tone] = {"gpu": "accent", "engine": "plain", "kernel": "plain", "other": "plain"}
_TITLES = {"kernel": "kernel", "engine": "engines", "other": "other"}


class LogLayout(NamedTuple):
    """How rows are drawn."""

    width: int
    source_width: int
    utc_offset_s: int = 0
    glyphs: Glyphs = UNICODE


def log_layout(width: int, lines: Iterable[LogLine], utc_offset_s: int, glyphs: Glyphs) -> LogLayout:
    """The layout for a width; whoever wrote the lines decides the column of names."""
    longest = max((cell_width(source) for source in {line.source for line in lines}), default=0)
    most = _SOURCE_MAX if width >= NARROW else _SOURCE_NARROW
    return LogLayout(width, max(_SOURCE_MIN, min(longest, most)), utc_offset_s, glyphs)


class LogRow:
    """One line of the log, or a title between lines."""

    __slots__ = ("_cells", "_layout", "key", "line", "text")

    def __init__(self, key: str, line: LogLine | None, layout: LogLayout, title: str = "") -> None:
        self.key = key
        self.line = line
        """None: a title."""
        self.text = title if line is None else f"{line.source} {line.text}"
        """What is looked through."""
        self._layout = layout
        self._cells: Cells | None = None

    @property
    def cells(self) -> Cells:
        """The line, made when it comes into view."""
        if self._cells is None:
            is_title = self.line is None
            self._cells = _title(self.text, self._layout) if is_title else _row(self.line, self._layout)  # type: ignore[arg-type]
        return self._cells


def log_rows_by_group(lines: Sequence[LogLine], layout: LogLayout) -> list[LogRow]:
    """The GPU driver first, then kernel and engines, each in order of time."""
    first = first_lines(lines)
    rest = [line for line in lines if line.group != "gpu"]
    if not first or not rest:
        return list(log_rows_by_time(lines, layout))
    groups = [title for group, title in _TITLES.items() if any(line.group == group for line in rest)]
    return [
        LogRow("title gpu", None, layout, FIRST_TITLE),
        *log_rows_by_time(first, layout),
        LogRow("title rest", None, layout, ", ".join(groups)),
        *log_rows_by_time(rest, layout, start=len(first)),
    ]


def log_rows_by_time(lines: Iterable[LogLine], layout: LogLayout, start: int = 0) -> list[LogRow]:
    """One list, oldest first; rows are numbered from `start`."""
    return [LogRow(f"line {start + number}", line, layout) for number, line in enumerate(lines)]


def log_detail(line: LogLine, layout: LogLayout, room: DetailRoom) -> tuple[Cells, ...]:
    """All of a line."""
    when = f" {date_and_time(line.at, layout.utc_offset_s)}"
    head = (Cell(when, "dim"), Cell(f"  {clean(line.source)}", "strong"))
    facts = fit_cells(head, layout.width, "left", layout.glyphs.ellipsis) if room.has_facts else None
    return detail_lines(facts, clean(line.text), _tone(line), layout.width, room, layout.glyphs)


def _tone(line: LogLine) -> Tone:
    return "bad" if is_alarming(line) else _TONES[line.group]


def _row(line: LogLine, layout: LogLayout) -> Cells:
    is_narrow = layout.width < NARROW
    time = "" if isinstance(line.at, Unknown) else hh_mm_ss(line.at + layout.utc_offset_s)
    time_width, gap = (5, " ") if is_narrow else (8, "  ")
    head = (
        Cell(f" {fit(time[:time_width] or layout.glyphs.dash, time_width)}{gap}", "dim"),
        Cell(fit(clean(line.source), layout.source_width, layout.glyphs.ellipsis) + gap, "dim"),
    )
    room = max(1, layout.width - 1 - time_width - layout.source_width - 2 * len(gap))
    return (*head, Cell(clip(clean(line.text), room, layout.glyphs.ellipsis), _tone(line)))


def _title(title: str, layout: LogLayout) -> Cells:
    return (
        Cell(f" {title} ", "title"),
        Cell(layout.glyphs.rule * max(0, layout.width - len(title) - 3), "faint"),
    )
