"""What lines of all lists have in common: as wide as the list, in signs that the terminal has."""

from __future__ import annotations

from typing import Protocol

from fleettui.view.cells import Cell, Cells, fit_cells
from fleettui.view.glyphs import Glyphs
from fleettui.view.text import cell_width


class ListLayout(Protocol):
    """Of any list."""

    @property
    def width(self) -> int:
        """Columns of a line."""

    @property
    def glyphs(self) -> Glyphs:
        """Signs that the terminal has."""


def in_signs(cells: Cells, layout: ListLayout) -> Cells:
    """In the signs of the layout, exactly as wide as it."""
    glyphs = layout.glyphs
    if glyphs.is_ascii:
        cells = tuple(Cell(glyphs.plain(cell.text), cell.tone) for cell in cells)
    return fit_cells(cells, layout.width, "left", glyphs.ellipsis)


def heading_cells(text: str, layout: ListLayout) -> Cells:
    """`── without a place ─────`: a line between parts of a list."""
    rule, said = layout.glyphs.rule, f" {text} "
    end = rule * max(0, layout.width - 5 - cell_width(said))
    return in_signs((Cell(f" {rule}{rule}", "faint"), Cell(said, "dim"), Cell(end, "faint")), layout)
