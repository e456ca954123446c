"""Looking for a text in lines of cells."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fleettui.view.cells import Cell, Cells, text_of


def pattern_of(needle: str) -> re.Pattern[str]:
    """Finds a text as it is written, capitals or not."""
    return re.compile(re.escape(needle), re.IGNORECASE)


def mark_cells(cells: Sequence[Cell], pattern: re.Pattern[str]) -> Cells:
    """The same text; what the pattern finds has the tone of a match."""
    spans = [found.span() for found in pattern.finditer(text_of(cells)) if found.end() > found.start()]
    if not spans:
        return tuple(cells)
    marked: list[Cell] = []
    at = 0
    for cell in cells:
        end, start = at + len(cell.text), at
        for first, last in spans:
            low, high = max(first, start), min(last, end)
            if low >= high:
                continue
            if low > start:
                marked.append(Cell(cell.text[start - at : low - at], cell.tone))
            marked.append(Cell(cell.text[low - at : high - at], "match"))
            start = high
        if start < end:
            marked.append(Cell(cell.text[start - at :], cell.tone))
        at = end
    return tuple(marked)
