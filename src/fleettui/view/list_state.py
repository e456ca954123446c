"""The line above the fleet's table: which machines it shows, how many are tagged, a sort without a column."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fleettui.view.cells import Cell, Cells, fit_cells, join_cells, width_of
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.layout import Layout
from fleettui.view.sorting import SortOrder, sort_named
from fleettui.view.text import clean, clip
from fleettui.view.units import count

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
    keys: str = "",
) -> Cells:
    """`filter free>24 · 3 of 9 machines · 2 tagged`; nothing where there is nothing to say.

    `tagged`, `shown`: names; a tagged machine that the filter hides is still tagged, and said to be.
    `keys`: what ends the filter, as in `Esc clears`.
    """
    glyphs, parts = layout.glyphs, _parts(matching, total, tagged, shown, order, layout)
    if not filter_text:
        cells = join_cells(parts[1:], f" {glyphs.dot} ")
        return fit_cells((Cell(" "), *cells), layout.width, "left", glyphs.ellipsis) if cells else ()
    if keys:
        parts.append((Cell(keys, "dim"),))
    separator = f" {glyphs.dot} "
    while True:
        rest = join_cells(parts, separator)
        room = layout.width - width_of(rest) - len(" filter ") - len(separator) - 1
        if room >= min(_FILTER_MIN, len(filter_text)) or len(parts) == 1:
            break
        parts.pop()
    text = clip(clean(filter_text), max(1, room), glyphs.ellipsis)
    cells = (Cell(" filter ", "dim"), Cell(text, "accent"), Cell(separator, "faint"), *rest)
    return fit_cells(cells, layout.width, "left", glyphs.ellipsis)


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
