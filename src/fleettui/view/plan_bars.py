"""A GPU as a bar: the roles planned on it stacked in proportion to what they need, each with its name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from fleettui.view.cells import Cell, Cells, Tone
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.text import cell_width, clean

_LABEL_LEAST = 3
"""Columns of a part below which no name stands in it."""
_AROUND = 5
"""Columns of the part and of blanks around a name in it: with fewer it would look like another part."""
_BAR_TONES: tuple[Tone, Tone] = ("bar_good", "accent")
_NAME_TONES: tuple[Tone, Tone] = ("good", "accent")


class Part(NamedTuple):
    """One copy in the bar."""

    role: str
    label: str
    """With its figure, where there is room for it."""
    need_gb: float


class StackedBar(NamedTuple):
    """The bar, and which of its parts have no name in it."""

    cells: Cells
    unnamed: tuple[str, ...]


def stacked_bar(parts: Sequence[Part], memory_gb: int, width: int, glyphs: Glyphs = UNICODE) -> StackedBar:
    """A framed bar of `width` columns in all. Every part has a column at least, however little it needs.

    Names stand behind the parts where all of them have room there with their figures, else in the parts that
    are wide enough.
    """
    inner = max(0, width - 2)
    widths = _widths([part.need_gb for part in parts], memory_gb, inner)
    free = inner - sum(widths)
    are_behind = _are_beside([part.label for part in parts], free)
    cells: list[Cell] = [Cell(glyphs.bar_left, "faint")]
    unnamed: list[Part] = []
    for number, (part, columns) in enumerate(zip(parts, widths, strict=True)):
        edge = int(number > 0 and columns > 1)  # parts stay apart without colours too
        name = "" if are_behind else _label(part, columns - edge - _AROUND)
        if not name:
            unnamed.append(part)
        cells.append(Cell(glyphs.bar_right * edge, "faint"))
        cells += _filled(name, columns - edge, _BAR_TONES[number % 2], glyphs.bar_parts[-1])
    labels, roles = [part.label for part in unnamed], [part.role for part in unnamed]
    texts = next((texts for texts in (labels, roles) if _are_beside(texts, free)), None)
    if texts is not None:
        for text, part in zip(map(clean, texts), unnamed, strict=True):
            tone: Tone = "plain" if len(parts) == 1 else _NAME_TONES[parts.index(part) % 2]
            cells.append(Cell(f" {text}", tone))
            free -= cell_width(text) + 1
        unnamed = []
    cells += [Cell(" " * free), Cell(glyphs.bar_right, "faint")]
    return StackedBar(tuple(cell for cell in cells if cell.text), tuple(part.role for part in unnamed))


def _are_beside(texts: Sequence[str], room: int) -> bool:
    """There is room for all of them, a blank before each."""
    return sum(cell_width(clean(text)) + 1 for text in texts) <= room


def _filled(name: str, columns: int, tone: Tone, block: str) -> Cells:
    if not name:
        return (Cell(block * columns, tone),)
    right = columns - 1 - cell_width(name) - 2
    return (Cell(block, tone), Cell(f" {name} ", "strong"), Cell(block * right, tone))


def _label(part: Part, room: int) -> str:
    """The longest of its names that fits."""
    if room < _LABEL_LEAST:
        return ""
    return next((text for text in (clean(part.label), clean(part.role)) if cell_width(text) <= room), "")


def _widths(needs: Sequence[float], memory_gb: int, inner: int) -> list[int]:
    """Columns of each part, in proportion, none without a column while there are some."""
    if not needs or inner <= 0:
        return [0] * len(needs)
    whole = max(float(memory_gb), sum(needs), 1.0)
    edges, total = [0], 0.0
    for need in needs:
        total += need
        edges.append(max(edges[-1] + 1, round(total / whole * inner)))
    edges = [min(edge, inner) for edge in edges]
    for at in range(len(edges) - 2, 0, -1):  # those at the right end keep a column
        edges[at] = max(0, min(edges[at], edges[at + 1] - 1))
    return [max(0, after - before) for before, after in pairwise(edges)]
