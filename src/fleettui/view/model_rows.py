"""Rows of the Models screen: a line for each model; expanded, below it a line for each copy and machine."""

from __future__ import annotations

from typing import Literal, NamedTuple

from fleettui.model.unknown import known_or
from fleettui.view.cells import Cell, Cells, fit_cells, text_of, width_of
from fleettui.view.list_lines import in_signs
from fleettui.view.model_copy_lines import BELOW, holding_lines
from fleettui.view.model_holdings import Holding, HoldingState
from fleettui.view.model_layout import ModelLayout, ModelPlace, at_places, centered
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_words import (
    brief_spare_text,
    expiry_cells,
    gpu_share_cell,
    note_cells,
    note_parts,
    sign_of,
    spare_text,
    vram_cell,
)
from fleettui.view.text import clean

_LIST_ORDER: tuple[HoldingState, ...] = (
    "partly", "on_gpu", "loaded", "loading", "in_ram", "sleeping", "stopping", "missing", "unread", "cloud",
    "installed",
)  # fmt: skip
COUNTDOWN_S = 60.0
"""Nearer expiries are shown in seconds."""


class ModelRow(NamedTuple):
    """One line of the table, as wide as its layout."""

    key: str
    """Stable while the thing exists; of a model's own line the key of the `ModelLine`."""
    kind: Literal["model", "note", "copy"]
    model: str
    """Key of the `ModelLine`."""
    machine: str | None
    """Where Enter leads; None on the line of a model."""
    cells: Cells


def model_rows(
    line: ModelLine, now: float, layout: ModelLayout, *, is_expanded: bool = False
) -> tuple[ModelRow, ...]:
    """The rows of one model; they depend on the arguments alone, on `now` by its whole second."""
    now = float(int(now))
    cells = in_signs(_model_cells(line, now, layout, is_expanded=is_expanded), layout)
    rows = [ModelRow(line.key, "model", line.key, None, cells)]
    if is_expanded:
        rows += [
            ModelRow(f"{line.key}\n", "note", line.key, None, cells) for cells in _notes_below(line, layout)
        ]
        for holding in _ordered(line.holdings):
            rows += [
                ModelRow(copy_key(line.key, holding.machine, index), "copy", line.key, holding.machine, cells)
                for index, cells in enumerate(holding_lines(line, holding, now, layout))
            ]
    return tuple(rows)


def is_line_ticking(line: ModelLine, now: float) -> bool:
    """True when the line must be drawn again each second although nothing new came."""
    expires_at = line.figures.expires_at
    return line.figures.old_copies > 0 or (expires_at is not None and expires_at - now < COUNTDOWN_S)


def count_model_rows(line: ModelLine, layout: ModelLayout, *, is_expanded: bool = False) -> int:
    """How many rows `model_rows` would give, without building them."""
    if not is_expanded:
        return 1
    copies = sum(max(1, len(holding.copies)) for holding in line.holdings)
    return 1 + len(_notes_below(line, layout)) + copies


def outline_rows(line: ModelLine, layout: ModelLayout) -> tuple[ModelRow, ...]:
    """The rows of an expanded model with nothing drawn in them: for places that nobody sees."""
    rows = [ModelRow(line.key, "model", line.key, None, ())]
    rows += [ModelRow(f"{line.key}\n", "note", line.key, None, ()) for _ in _notes_below(line, layout)]
    for holding in _ordered(line.holdings):
        rows += [
            ModelRow(copy_key(line.key, holding.machine, index), "copy", line.key, holding.machine, ())
            for index in range(max(1, len(holding.copies)))
        ]
    return tuple(rows)


def copy_key(line: str, machine: str, index: int = 0) -> str:
    """Key of the row of a model on a machine; of a second copy there the index is 1."""
    return f"{line}\n{machine}\n{index}"


# -- a model's own line -----------------------------------------------------------------------------


def _model_cells(line: ModelLine, now: float, layout: ModelLayout, *, is_expanded: bool) -> Cells:
    pieces = []
    for place in layout.places:
        cells = _figure(place, line, now, layout, is_expanded=is_expanded)
        pieces.append((place.start, fit_cells(cells, place.width, place.align, layout.glyphs.ellipsis)))
    if layout.is_matrix:
        by_machine = {holding.machine: holding for holding in line.holdings}
        for column in layout.machines:
            holding = by_machine.get(column.machine)
            if holding is not None:
                sign = holding_sign(holding, layout)
                pieces.append((column.start, centered(sign, column.width)))
    return at_places(pieces, layout)


def holding_sign(holding: Holding, layout: ModelLayout) -> Cell:
    """One column: the state, the number of copies where there are more; dim where it is old."""
    sign = sign_of(holding.state, layout.glyphs, is_live=holding.is_live)
    return Cell(str(len(holding.copies)), sign.tone) if 1 < len(holding.copies) < 10 else sign


def _figure(
    place: ModelPlace, line: ModelLine, now: float, layout: ModelLayout, *, is_expanded: bool
) -> Cells:
    figures, glyphs = line.figures, layout.glyphs
    if place.key == "model":
        mark = glyphs.expanded if is_expanded else glyphs.collapsed
        has_copies = figures.copies > 0
        return (Cell(f" {mark} ", "faint"), Cell(line.name, "strong" if has_copies else "plain"))
    if place.key == "copies":
        return (Cell(str(figures.copies)),) if figures.copies else ()
    if place.key == "vram":
        if not figures.copies:
            return ()
        return (vram_cell(figures.vram_bytes, is_least=figures.has_unknown_vram),)
    if place.key == "gpu":
        return _share_cells(line)
    if place.key == "expiry":
        return expiry_cells(figures, now, place.width)
    if place.key == "installed":
        return (Cell(str(figures.installed), "plain"),) if figures.installed else ()
    if place.key == "declared":
        return _declared_cells(line)
    if place.key == "machines":
        return _list_cells(line, layout, place.width)
    return note_cells(note_parts(line), place.width, glyphs)


def _notes_below(line: ModelLine, layout: ModelLayout) -> list[Cells]:
    """What the lines of the machines do not say: duplicates, where the note's column has no room for it."""
    figures, place = line.figures, layout.place_of("note")
    brief = brief_spare_text(figures)
    if not figures.spare_copies or (not brief and layout.place_of("copies") is not None):
        return []
    note = () if place is None else note_cells(note_parts(line), place.width, layout.glyphs)
    if brief and brief in text_of(note):
        return []
    text = spare_text(figures)
    if len(BELOW) + len(text) >= layout.width:
        text = brief
    return [in_signs((Cell(BELOW), Cell(text)), layout)]


def _share_cells(line: ModelLine) -> Cells:
    figures = line.figures
    if not figures.copies:
        return ()
    return (gpu_share_cell(figures.gpu_percent),)


def _declared_cells(line: ModelLine) -> Cells:
    figures = line.figures
    if not figures.declared:
        return ()
    if not figures.missing:
        return (Cell(str(figures.declared)),)
    return (Cell(f"{figures.declared - figures.missing}/{figures.declared}", "warn"),)


def _list_cells(line: ModelLine, layout: ModelLayout, width: int) -> Cells:
    """`● ada  ● hopper  ✗ bora  +4`: copies first, then what is missing, then disks; none is cut."""
    cells: list[Cell] = []
    used = 0
    holdings = _ordered(line.holdings)
    for index, holding in enumerate(holdings):
        name = clean(holding.machine)[len(layout.prefix) :]
        sign = holding_sign(holding, layout)
        is_dim = not holding.is_live or holding.state in {"installed", "cloud"}
        piece = (Cell("  " if cells else ""), sign, Cell(f" {name}", "dim" if is_dim else "plain"))
        rest = len(holdings) - index - 1
        tail = f"  +{rest}" if rest else ""
        if used + width_of(piece) + len(tail) > width:
            more = f"  +{rest + 1}" if cells else f"+{rest + 1}"
            cells.append(Cell(more, "dim"))
            break
        cells += piece
        used += width_of(piece)
    return tuple(cells)


def _ordered(holdings: tuple[Holding, ...]) -> list[Holding]:
    """Copies first, most VRAM first; what is old behind what is of now."""
    return sorted(
        holdings,
        key=lambda holding: (
            not holding.is_live and holding.is_loaded,
            not holding.is_loaded,
            -known_or(holding.vram_bytes, 0),
            _LIST_ORDER.index(holding.state),
        ),
    )
