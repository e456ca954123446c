"""Cells: runs of text with a tone. Front ends decide what colour a tone has; a tone never stands alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from fleettui.view.text import cell_width, clip

Tone = Literal[
    "plain",
    "strong",  # names
    "dim",  # stale, secondary
    "faint",  # edges, separators
    "good",
    "warn",
    "bad",
    "accent",  # chips, what the operator decided
    "title",  # headers
    "key",  # a key to press
    "match",  # what was looked for
    "unknown",  # the dash of a value nobody read
    "bar_good",
    "bar_warn",
    "bar_bad",
    "bar_dim",  # bar of stale values
]
Align = Literal["left", "right"]

_DIMMED: dict[Tone, Tone] = {
    "bar_good": "bar_dim",
    "bar_warn": "bar_dim",
    "bar_bad": "bar_dim",
    "bar_dim": "bar_dim",
    "faint": "faint",
}


class Cell(NamedTuple):
    """One run of text."""

    text: str
    tone: Tone = "plain"


Cells = tuple[Cell, ...]
NOTHING: Cells = ()


def dimmed(cells: Iterable[Cell]) -> Cells:
    """The same text in the tones of old news."""
    return tuple(Cell(text, _DIMMED.get(tone, "dim")) for text, tone in cells)


def width_of(cells: Iterable[Cell]) -> int:
    """Columns that the cells take."""
    width = 0
    for text, _ in cells:  # in line for plain text: each row asks this a hundred times
        width += len(text) if text.isascii() else cell_width(text)
    return width


def text_of(cells: Iterable[Cell]) -> str:
    """The text without tones."""
    return "".join(cell.text for cell in cells)


def fit_cells(cells: Sequence[Cell], width: int, align: Align = "left", ellipsis: str = "…") -> Cells:
    """Exactly `width` columns: padded, or cut with an ellipsis."""
    used = width_of(cells)
    if used == width:
        return tuple(cells)
    if used < width:
        blank = Cell(" " * (width - used))
        return (blank, *cells) if align == "right" else (*cells, blank)
    return _cut(cells, width, ellipsis)


def _cut(cells: Sequence[Cell], width: int, ellipsis: str) -> Cells:
    kept: list[Cell] = []
    left = width
    for index, cell in enumerate(cells):
        taken = cell_width(cell.text)
        rest = sum(cell_width(item.text) for item in cells[index + 1 :])
        if taken <= left and (rest == 0 or taken + min(rest, cell_width(ellipsis)) <= left):
            kept.append(cell)
            left -= taken
            continue
        if left > 0:
            kept.append(Cell(clip(cell.text + " " * rest, left, ellipsis), cell.tone))
        return tuple(kept)
    return tuple(kept)


def join_cells(parts: Iterable[Sequence[Cell]], separator: str, tone: Tone = "faint") -> Cells:
    """Groups of cells with a separator between those that are not empty."""
    joined: list[Cell] = []
    for part in parts:
        if not part:
            continue
        if joined:
            joined.append(Cell(separator, tone))
        joined.extend(part)
    return tuple(joined)
