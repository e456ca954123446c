"""The mark of a tagged machine: in the left margin of its rows, so that no column moves."""

from __future__ import annotations

from fleettui.view.cells import Cell, Cells
from fleettui.view.glyphs import Glyphs


def tagged_cells(cells: Cells, glyphs: Glyphs) -> Cells:
    """The same row with the mark in its first column, which every row leaves blank."""
    if not cells or not cells[0].text.startswith(" "):
        return cells
    first = cells[0]
    return (Cell(glyphs.tagged, "accent"), Cell(first.text[1:], first.tone), *cells[1:])
