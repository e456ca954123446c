"""Below a model's line: what each machine has of it, each figure under the column that sums it."""

from __future__ import annotations

from fleettui.model.readings import LoadedModel
from fleettui.model.unknown import Unknown
from fleettui.view.cells import Cell, Cells, Tone, dimmed, fit_cells
from fleettui.view.copies import copy_parts, expiry_cell
from fleettui.view.glyphs import Glyphs
from fleettui.view.list_lines import in_signs
from fleettui.view.model_holdings import Holding, HoldingState, copy_state
from fleettui.view.model_layout import ModelLayout, at_places
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_words import (
    BRIEF_WORDS,
    STATE_WORDS,
    gpu_share_cell,
    holding_note,
    sign_of,
    vram_cell,
)
from fleettui.view.text import clean
from fleettui.view.units import bytes_gib

BELOW = "     "
"""Indent."""
_ROOM_FOR_DISK = 30
"""Columns from which the size on disk is said."""


def holding_lines(line: ModelLine, holding: Holding, now: float, layout: ModelLayout) -> list[Cells]:
    """A line for each copy on a machine, one for a machine without."""
    copies: tuple[LoadedModel | None, ...] = holding.copies or (None,)
    rows = []
    for index, copy in enumerate(copies):
        state = holding.state if copy is None else copy_state(copy)
        pieces = _copy_pieces(holding, copy, state, now, layout)
        start = _text_start(layout, has_figures=copy is not None)
        room = layout.width - 1 - start
        if room > 0:
            said = _said(line, holding, copy, now, room, layout.glyphs, is_first=index == 0)
            pieces.append((start, fit_cells(said, room, "left", layout.glyphs.ellipsis)))
        cells = at_places(pieces, layout)
        if not holding.is_live:
            cells = dimmed(cells)
        rows.append(in_signs(cells, layout))
    return rows


def _copy_pieces(
    holding: Holding, copy: LoadedModel | None, state: HoldingState, now: float, layout: ModelLayout
) -> list[tuple[int, Cells]]:
    """Machine and figures, each below the column of the model's line that sums them."""
    ellipsis = layout.glyphs.ellipsis
    pieces: list[tuple[int, Cells]] = []
    for place in layout.places:
        cells: Cells = ()
        if place.key == "model":
            sign = sign_of(state, layout.glyphs, is_live=holding.is_live)
            cells = (Cell(BELOW), sign, Cell(f" {clean(holding.machine)}"))
        elif copy is None:
            continue
        elif place.key == "vram":
            cells = (vram_cell(copy.vram_bytes),)
        elif place.key == "gpu":
            cells = (gpu_share_cell(copy.gpu_percent),)
        elif place.key == "expiry":
            cells = (expiry_cell(copy, now),)
        if cells:
            pieces.append((place.start, fit_cells(cells, place.width, place.align, ellipsis)))
    return pieces


def _text_start(layout: ModelLayout, *, has_figures: bool) -> int:
    """Behind the figures; where nothing stands there, a machine without a copy uses their place."""
    after = [place.start for place in layout.places if place.key in {"installed", "declared", "machines"}]
    after += [column.start for column in layout.machines[:1]]
    after += [place.start for place in layout.places if place.key == "note"]
    if after:
        return min(after)
    if has_figures:
        return layout.width
    return layout.places[1].start if len(layout.places) > 1 else layout.width


def _said(
    line: ModelLine,
    holding: Holding,
    copy: LoadedModel | None,
    now: float,
    room: int,
    glyphs: Glyphs,
    *,
    is_first: bool,
) -> Cells:
    """`loaded · ctx 32768 · 70.6B · Q4_K_M · declared · same tag, other digest 365c0bd3c000`."""
    state = holding.state if copy is None else copy_state(copy)
    words = STATE_WORDS[state]
    if len(words) > room:
        words = BRIEF_WORDS.get(state, words)
    size = holding.installed_bytes
    if copy is not None:
        words += _in_ram(copy)
    elif size is not None and not isinstance(size, Unknown) and room >= _ROOM_FOR_DISK:
        words += f", {bytes_gib(size)} GiB on disk"
    cells: list[Cell] = [Cell(words, _word_tone(state))]
    if holding.flag and is_first:
        cells.append(Cell(f" {glyphs.flag} {holding.flag}", "accent"))
    parts = [] if copy is None else [part for part in copy_parts(copy, now)[3:] if part]
    if parts:
        cells.append(Cell(f" · {' · '.join(parts)}", "dim"))
    note = holding_note(holding, line, now) if is_first else ""
    if note:
        cells.append(Cell(f" · {note}", "warn" if holding.drift else "dim"))
    return tuple(cells)


def _in_ram(copy: LoadedModel) -> str:
    """`, 3.3 of 19.3 GiB in RAM` of a copy that is not wholly on GPUs."""
    size, vram = copy.size_bytes, copy.vram_bytes
    if isinstance(size, Unknown) or isinstance(vram, Unknown) or vram >= size or copy.gpu_percent == 100:
        return ""
    return f", {bytes_gib(size - vram)} of {bytes_gib(size)} GiB in RAM"


def _word_tone(state: HoldingState) -> Tone:
    """Words in calmer tones than their sign."""
    if state in {"partly", "stopping", "missing"}:
        return "warn"
    return "accent" if state == "loading" else "plain"
