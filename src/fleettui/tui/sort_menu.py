"""The menu of what a list can be sorted by."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.tui.widgets.painting import Line
from fleettui.view.cells import Cell
from fleettui.view.glyphs import Glyphs
from fleettui.view.sorting import Sortable, SortOrder


def sort_menu(sorts: Sequence[Sortable], order: SortOrder, glyphs: Glyphs) -> list[Line]:
    """A line for each sort, the present one with its direction."""
    width = max(len(sort.title) for sort in sorts)
    lines = []
    for sort in sorts:
        is_present = sort.key == order.column
        arrow = (glyphs.descending if order.is_descending else glyphs.ascending) if is_present else " "
        title = Cell(f" {sort.title:<{width}}  ", "strong" if is_present else "plain")
        lines.append(Line(sort.key, (title, Cell(f"{arrow} ", "accent"))))
    return lines
