"""Columns of the Models screen for a width: figures, then the machines as a matrix or as a list, a note."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from fleettui.view.cells import Align, Cell, Cells, fit_cells
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.text import cell_width, clean, clip

INDENT = 3
"""Columns before a model's name, for the mark that expands it."""
NOTE_MIN, NOTE_COMFORT = 26, 58
_MODEL_MIN, _MODEL_MAX = 14, 44
_LIST_MIN, _LIST_COMFORT = 12, 24
"""The least that a list of machines takes; what it keeps when columns that are good to know come."""
_READABLE = 4
MACHINE_MAX = 8
"""Columns of a machine in the matrix at most, the gap not counted."""
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


class MachineColumn(NamedTuple):
    """One machine of the matrix."""

    machine: str
    title: str
    """Its name, shortened to the column."""
    start: int
    width: int


class ModelLayout(NamedTuple):
    """How the table is drawn. Keep one until width or machines change, and compare it with `is`."""

    width: int
    places: tuple[ModelPlace, ...]
    machines: tuple[MachineColumn, ...]
    """Empty: machines are listed by name in the place `machines`."""
    gap: int
    interval_s: float
    glyphs: Glyphs = UNICODE

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
    for column in sorted(COLUMNS[1:], key=lambda item: item.priority):
        reserved = 0 if column.priority <= 2 else _LIST_MIN if column.priority <= 4 else _LIST_COMFORT
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
    columns = _place_machines(machines, x, room - x)
    if columns:
        x = columns[-1].start + columns[-1].width + gap
        if room - x >= NOTE_MIN:
            places.append(ModelPlace("note", "note", x, room - x, "left"))
    elif room - x >= _LIST_MIN:
        places += _list_and_note(machines, x, room - x, gap)
    return ModelLayout(width, tuple(places), columns, gap, interval_s, glyphs)


def _list_and_note(machines: Sequence[str], x: int, room: int, gap: int) -> list[ModelPlace]:
    names = sum(cell_width(clean(name)) + 4 for name in machines)
    note = max(0, min(room // 2, 60))
    list_width = min(room, max(_LIST_MIN, names))
    if room - list_width - gap < NOTE_MIN:
        list_width = room - note - gap if note >= NOTE_MIN else room
    places = [ModelPlace("machines", "machines", x, list_width, "left")]
    rest = room - list_width - gap
    if rest >= NOTE_MIN:
        places.append(ModelPlace("note", "note", x + list_width + gap, rest, "left"))
    return places


def _place_machines(machines: Sequence[str], x: int, room: int) -> tuple[MachineColumn, ...]:
    """A column for each machine where all fit. Names one can read come before comfort for the note, a note
    before names of two or three letters."""
    names = [clean(name) for name in machines]
    if not names:
        return ()
    most = min(MACHINE_MAX, max(map(cell_width, names)))
    with_note = room - NOTE_MIN - 2
    for space, least in (
        (room - NOTE_COMFORT - 2, _READABLE),
        (with_note, _READABLE),
        (room, _READABLE),
        (with_note, 2),
        (room, 2),
    ):
        for width in range(min(most, space // len(names) - 1), min(least, most) - 1, -1):
            titles = short_names(names, width)
            if titles is not None and (width > 2 or all(title.isdigit() for title in titles)):
                return tuple(
                    [
                        MachineColumn(machine, title, x + place * (width + 1), width)
                        for place, (machine, title) in enumerate(zip(machines, titles, strict=True))
                    ]
                )
    return ()


def short_names(names: Collection[str], width: int) -> list[str] | None:
    """Names that fit a width and are still told apart; None where that cannot be: `gpu-07` is `g07`."""
    found = [_short_name(name, width) for name in names]
    return found if len(set(found)) == len(names) else None


def _short_name(name: str, width: int) -> str:
    """The start of a name and the number at its end, which tells machines of a rack apart."""
    if cell_width(name) <= width:
        return name
    number = name[len(name.rstrip("0123456789")) :]
    if not number or len(number) >= width:
        return clip(number or name, width, "").rstrip("-_. ") if len(number) <= width else number[-width:]
    return clip(name[: -len(number)], width - len(number), "").rstrip("-_. ") + number


def model_header(layout: ModelLayout, sort_key: str | None = None, *, is_descending: bool = False) -> Cells:
    """The header line; the column that orders the table carries an arrow."""
    glyphs = layout.glyphs
    pieces: list[tuple[int, Cells]] = []
    for place in layout.places:
        title = " " * INDENT + place.title if place.key == "model" else place.title
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


def in_signs(cells: Cells, layout: ModelLayout) -> Cells:
    """Exactly the layout's width, in the layout's signs."""
    if layout.glyphs.is_ascii:
        cells = tuple(Cell(layout.glyphs.plain(cell.text), cell.tone) for cell in cells)
    if sum(cell_width(cell.text) for cell in cells) == layout.width:
        return cells
    return fit_cells(cells, layout.width, "left", layout.glyphs.ellipsis)
