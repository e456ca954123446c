"""The line above the fleet's table: which machines it shows, how many are tagged, a sort without a column."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fleettui.view.cells import Cell, Cells, fit_cells, join_cells, width_of
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.layout import Layout
from fleettui.view.sorting import SortOrder, sort_named
from fleettui.view.text import cell_width, clean, clip
from fleettui.view.units import count

_FILTER = " filter "
_FILTER_MIN = 8
"""Columns that the text of the filter keeps."""


def list_state(
    filter_text: str,
    matching: int,
    total: int,
    tagged: Collection[str],
    shown: Collection[str],
    order: SortOrder,
    layout: Layout,
) -> Cells:
    """`filter free>24 · 3 of 9 machines · 2 tagged`; nothing where there is nothing to say.

    `tagged`, `shown`: names; a tagged machine that the filter hides is still tagged, and said to be. The
    last parts go first where the line is short.
    """
    glyphs, parts = layout.glyphs, _parts(matching, total, tagged, shown, order, layout)
    separator = f" {glyphs.dot} "
    text, least = clean(filter_text), 0
    if text:
        least = len(_FILTER) + len(separator) + min(_FILTER_MIN, cell_width(text))
    else:
        parts = parts[1:]
    while len(parts) > 1 and least + width_of(join_cells(parts, separator)) + 2 > layout.width:
        parts.pop()
    cells = (Cell(" "), *join_cells(parts, separator))
    if text:
        room = layout.width - width_of(cells) - len(_FILTER) - len(separator)
        start = (Cell(_FILTER, "dim"), Cell(clip(text, max(1, room), glyphs.ellipsis), "accent"))
        cells = (*start, Cell(separator, "faint"), *cells[1:])
    return fit_cells(cells, layout.width, "left", glyphs.ellipsis) if parts else ()


def _parts(
    matching: int,
    total: int,
    tagged: Collection[str],
    shown: Collection[str],
    order: SortOrder,
    layout: Layout,
) -> list[Cells]:
    """The most important first; the first one belongs to a filter."""
    parts: list[Cells] = [
        (Cell(f"{matching} of {count(total, 'machine')}", "plain" if matching else "warn"),)
    ]
    if tagged:
        hidden = len(set(tagged).difference(shown))
        more = (Cell(f" ({hidden} not shown)", "warn"),) if hidden else ()
        parts.append((Cell(f"{len(tagged)} tagged", "accent"), *more))
    sort = sort_named(order.column)
    if sort is not None and not layout.has(sort.column):
        arrow = layout.glyphs.descending if order.is_descending else layout.glyphs.ascending
        parts.append((Cell(f"by {sort.title} {arrow}", "dim"),))
    return parts


def no_match(filter_text: str, width: int, glyphs: Glyphs = UNICODE) -> Cells:
    """In place of the rows when the filter leaves none."""
    cells: Sequence[Cell] = (
        Cell("   no machine matches "), Cell(clean(filter_text), "accent"), Cell("  Esc shows all", "dim")
    )  # fmt: skip
    return fit_cells(cells, width, "left", glyphs.ellipsis)
