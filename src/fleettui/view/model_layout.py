"""Columns of the Models screen for a width: figures, then the machines as a matrix or as a list, a note."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fleettui.view.cells import Align, Cell, Cells, fit_cells
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.matrix_columns import (
    NOTE_COMFORT,
    NOTE_MIN,
    MachineColumn,
    common_prefix,
    place_machines,
    width_of_matrix,
)
from fleettui.view.text import cell_width, clean, clip

INDENT = 3
"""Columns before a model's name, for the mark that expands it."""
_MODEL_MIN, _MODEL_MAX = 14, 44
_LIST_MIN, _LIST_COMFORT = 12, 24
"""The least that a list of machines takes; what it keeps when columns that are good to know come."""
ROOMY = 100
"""From here columns stand two blanks apart."""


class ModelColumn(NamedTuple):
    """A column of figures."""

    key: str
    title: str
    description: str
    """For docs and help."""
    width: int
    priority: int
    """0 is kept longest when the terminal is narrow."""
    align: Align = "right"


COLUMNS: tuple[ModelColumn, ...] = (
    ModelColumn("model", "model", "Name; below it the machines that have it", _MODEL_MIN, 0, "left"),
    ModelColumn("copies", "copies", "Copies that are loaded now, on machines that answer", 6, 3),
    ModelColumn("vram", "VRAM", "Graphics memory of all its copies in GiB; a + where one does not say", 9, 1),
    ModelColumn("gpu", "on GPU", "Share of the copies that lies on GPUs; the rest is in RAM", 6, 4),
    ModelColumn(
        "expiry", "expires", "When the first copy's keep-alive ends, and on which machine", 8, 2, "left"
    ),
    ModelColumn("installed", "installed", "Machines that have it on disk", 9, 6),
    ModelColumn(
        "declared", "declared", "Machines whose file names it; `2/3`: one of the three lacks it", 8, 7
    ),
)
_EXPIRY_WIDE, _EXPIRY_WIDE_FROM = 19, 180
"""Has place for the machine too; from that width on."""


class ModelPlace(NamedTuple):
    """One column at its place."""

    key: str
    title: str
    start: int
    width: int
    align: Align


class ModelLayout(NamedTuple):
    """How the table is drawn. Keep one until width or machines change, and compare it with `is`."""

    width: int
    places: tuple[ModelPlace, ...]
    machines: tuple[MachineColumn, ...]
    """Empty: machines are listed by name in the place `machines`."""
    gap: int
    interval_s: float
    glyphs: Glyphs = UNICODE
    prefix: str = ""
    """What the names of all machines begin with and is said once, above them."""

    @property
    def is_matrix(self) -> bool:
        """Every machine has a column."""
        return bool(self.machines)

    def place_of(self, key: str) -> ModelPlace | None:
        """Where a column stands; None when it is not shown."""
        return next((place for place in self.places if place.key == key), None)

    def column_at(self, x: int) -> str | None:
        """Key of the column under a screen column, for clicks on the header."""
        if self.machine_at(x) is not None:
            return None
        found = None
        for place in self.places:
            if x >= place.start:
                found = place.key
        return found

    def machine_at(self, x: int) -> str | None:
        """The machine whose column of the matrix is under a screen column."""
        for column in self.machines:
            if column.start - 1 <= x < column.start + column.width:
                return column.machine
        return None

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the columns that are shown."""
        return tuple([place.key for place in self.places])


def make_model_layout(
    width: int,
    machines: Sequence[str],
    models: Iterable[str] = (),
    *,
    interval_s: float = 2.0,
    glyphs: Glyphs = UNICODE,
) -> ModelLayout:
    """The layout for a width. `machines`: all of the fleet, in order; `models`: names, the longest decides
    the first column."""
    gap = 2 if width >= ROOMY else 1
    room = max(1, width - 1)
    longest = max((cell_width(name) for name in models), default=0) + INDENT
    most = max(_MODEL_MIN, min(_MODEL_MAX, room // 3 if width >= 60 else room - 19))
    model_width = min(max(longest, _MODEL_MIN), most, room)
    widths = {"model": model_width}
    left = room - model_width
    matrix = width_of_matrix(machines)
    for column in sorted(COLUMNS[1:], key=lambda item: item.priority):
        reserved = 0 if column.priority <= 2 else _LIST_MIN if column.priority <= 4 else _LIST_COMFORT
        if column.priority > 4 and matrix <= left:  # what they count is seen in the matrix
            reserved = max(reserved, matrix)
        if column.width + gap > left - reserved:
            break
        widths[column.key] = column.width
        left -= column.width + gap
    expiry = widths.get("expiry")
    if expiry is not None and width >= _EXPIRY_WIDE_FROM and left > _EXPIRY_WIDE + NOTE_COMFORT:
        widths["expiry"] = _EXPIRY_WIDE
        left -= _EXPIRY_WIDE - expiry
    places: list[ModelPlace] = []
    x = 0
    for column in COLUMNS:
        if column.key in widths:
            places.append(ModelPlace(column.key, column.title, x, widths[column.key], column.align))
            x += widths[column.key] + gap
    prefix, columns = place_machines(machines, x, room - x)
    if columns:
        x = columns[-1].start + columns[-1].width + gap
        if room - x >= NOTE_MIN:
            places.append(ModelPlace("note", "note", x, room - x, "left"))
    elif room - x >= _LIST_MIN:
        prefix = common_prefix([clean(name) for name in machines])
        places += _list_and_note(machines, prefix, x, room - x, gap)
    return ModelLayout(width, tuple(places), columns, gap, interval_s, glyphs, prefix)


def _list_and_note(machines: Sequence[str], prefix: str, x: int, room: int, gap: int) -> list[ModelPlace]:
    names = sum(cell_width(clean(name)) - cell_width(prefix) + 4 for name in machines)
    note = max(0, min(room // 2, 60))
    list_width = min(room, max(_LIST_MIN, names))
    if room - list_width - gap < NOTE_MIN:
        list_width = room - note - gap if note >= NOTE_MIN else room
    title = f"machines {prefix}…" if prefix else "machines"
    places = [ModelPlace("machines", title, x, list_width, "left")]
    rest = room - list_width - gap
    if rest >= NOTE_MIN:
        places.append(ModelPlace("note", "note", x + list_width + gap, rest, "left"))
    return places


def prefix_line(left: Cells, layout: ModelLayout) -> Cells:
    """The line above the header: what is said there anyway, and over the matrix what its titles leave out."""
    if not layout.prefix or not layout.machines:
        return left
    start, end = layout.machines[0].start, layout.machines[-1].start + layout.machines[-1].width
    glyphs = layout.glyphs
    rule = glyphs.rule * max(0, end - start - cell_width(layout.prefix) - 1)
    over: Cells = (Cell(layout.prefix, "title"), Cell(" " if rule else ""), Cell(rule, "faint"))
    over = fit_cells(over, end - start, "left", glyphs.ellipsis)
    return at_places([(0, fit_cells(left, start - 1, "left", glyphs.ellipsis)), (start, over)], layout)


def model_header(layout: ModelLayout, sort_key: str | None = None, *, is_descending: bool = False) -> Cells:
    """The header line; the column that orders the table carries an arrow."""
    glyphs = layout.glyphs
    pieces: list[tuple[int, Cells]] = []
    for place in layout.places:
        title = " " * INDENT + place.title if place.key == "model" else glyphs.plain(place.title)
        if place.key == sort_key or (place.key == "note" and sort_key == "spare"):
            arrow = glyphs.descending if is_descending else glyphs.ascending
            shown = f"{title} {arrow}"
            title = shown if cell_width(shown) <= place.width else clip(title, place.width - 1, "") + arrow
        cells = fit_cells((Cell(title, "title"),), place.width, place.align, glyphs.ellipsis)
        pieces.append((place.start, cells))
    pieces += [
        (column.start, centered(Cell(column.title, "title"), column.width)) for column in layout.machines
    ]
    return at_places(pieces, layout)


def centered(cell: Cell, width: int) -> Cells:
    """A short cell in the middle of its column, towards the left."""
    spare = max(0, width - cell_width(cell.text))
    left = spare // 2
    return (Cell(" " * left), cell, Cell(" " * (spare - left)))


def at_places(pieces: Iterable[tuple[int, Cells]], layout: ModelLayout) -> Cells:
    """Cells at their columns, exactly the layout's width; `pieces` fit their places, in any order."""
    cells: list[Cell] = []
    x = 0
    for start, piece in sorted(pieces, key=lambda item: item[0]):
        if start > x:
            cells.append(Cell(" " * (start - x)))
            x = start
        cells += piece
        x += sum(cell_width(cell.text) for cell in piece)
    return fit_cells(cells, layout.width, "left", layout.glyphs.ellipsis)
