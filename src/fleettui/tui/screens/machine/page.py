"""Sections of a machine laid out on the screen: below each other, side by side where there is room."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell, Cells, fit_cells
from fleettui.view.machine_page import Section

TWO_COLUMNS_FROM = 130
_MARGIN, _INDENT, _GAP, _EDGE = 1, 2, 3, 2
_NOTHING: Cells = ()


def column_width(width: int) -> int:
    """Width of the lines of a section on a screen that wide."""
    is_wide = width >= TWO_COLUMNS_FROM
    outer = (width - _GAP) // 2 if is_wide else width
    return max(1, outer - _MARGIN - _INDENT - _EDGE)


def page_lines(sections: Sequence[Section], width: int, ellipsis: str) -> list[Line]:
    """All lines from top to bottom. Keys are line numbers: what changed is painted where it stands."""
    if width < TWO_COLUMNS_FROM:
        return [Line(str(number), cells) for number, cells in enumerate(_stack(sections))]
    left = _stack([section for section in sections if not section.is_right])
    right = _stack([section for section in sections if section.is_right])
    height = max(len(left), len(right))
    left += [_NOTHING] * (height - len(left))
    right += [_NOTHING] * (height - len(right))
    outer = (width - _GAP) // 2
    return [
        Line(str(number), (*fit_cells(one, outer, "left", ellipsis), Cell(" " * _GAP), *other))
        for number, (one, other) in enumerate(zip(left, right, strict=True))
    ]


def _stack(sections: Sequence[Section]) -> list[Cells]:
    lines: list[Cells] = []
    for section in sections:
        lines.append((Cell(" " * _MARGIN), Cell(section.title, "key")))
        lines += [(Cell(" " * (_MARGIN + _INDENT)), *cells) for cells in section.lines]
        lines.append(_NOTHING)
    return lines[:-1]
