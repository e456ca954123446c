"""What stands around the table of models: summary, filter and sort, legend, and why it is empty."""

from __future__ import annotations

from fleettui.model.unknown import Unknown, total
from fleettui.view.cells import Cell, Cells, fit_cells, join_cells, width_of
from fleettui.view.glyphs import UNICODE, Glyphs
from fleettui.view.model_holdings import HoldingState
from fleettui.view.model_layout import ModelLayout
from fleettui.view.model_matrix import ModelLine
from fleettui.view.model_order import model_sort_named
from fleettui.view.model_words import sign_of
from fleettui.view.sorting import SortOrder
from fleettui.view.text import clean, clip
from fleettui.view.units import bytes_gib, count, remaining

_LEGEND: tuple[tuple[HoldingState, str], ...] = (
    ("on_gpu", "on GPU"),
    ("partly", "partly"),
    ("in_ram", "in RAM"),
    ("installed", "installed"),
    ("missing", "declared, not installed"),
    ("unread", "not known"),
    ("cloud", "runs elsewhere"),
)
_OLD = "loaded when last heard"
_FILTER_MIN = 8
"""Columns that the text of the filter keeps."""


def legend_cells(glyphs: Glyphs, width: int) -> Cells:
    """What the signs mean, as many as fit."""
    parts: list[Cells] = []
    signs = [(sign_of(state, glyphs), word) for state, word in _LEGEND]
    for sign, word in [*signs, (sign_of("loaded", glyphs, is_live=False), _OLD)]:
        part: Cells = (sign, Cell(f" {word}", "dim"))
        if width_of(join_cells([*parts, part], "   ")) > width:
            break
        parts.append(part)
    return join_cells(parts, "   ")


def models_summary(lines: tuple[ModelLine, ...], now: float, width: int, glyphs: Glyphs = UNICODE) -> Cells:
    """`12 models · 5 copies · 193.2 GiB in VRAM · 2 duplicates, 48.6 GiB · next to expire: phi3:mini on
    app-host in 1m`; the least important parts go first where the line is short."""
    figures = [line.figures for line in lines]
    copies = sum(item.copies for item in figures)
    spare = sum(item.spare_copies for item in figures)
    missing = sum(item.missing for item in figures)
    parts: list[tuple[int, Cells]] = [(2, (Cell(count(len(lines), "model")),))]
    parts.append((0, (Cell(count(copies, "copy", "copies")),)))
    if copies:
        more = "+" if any(item.has_unknown_vram for item in figures) else ""
        vram = total(item.vram_bytes for item in figures if item.copies)
        gib = bytes_gib(vram if isinstance(vram, Unknown) else round(vram))
        parts.append(
            (1, (Cell(f"{gib}{'' if isinstance(vram, Unknown) else more} GiB"), Cell(" in VRAM", "dim")))
        )
    if spare:
        sizes = total(item.spare_bytes for item in figures if item.spare_copies)
        text = count(spare, "duplicate")
        if not isinstance(sizes, Unknown) and sizes:
            text += f", {bytes_gib(round(sizes))} GiB"
        parts.append((3, (Cell(text),)))
    if missing:
        parts.append((2, (Cell(f"{missing} not installed", "warn"),)))
    first = min(
        (line for line in lines if line.figures.expires_at is not None),
        key=lambda line: (line.figures.expires_at, line.key),
        default=None,
    )
    if first is not None and first.figures.expires_at is not None:
        left = remaining(first.figures.expires_at - int(now))
        where = clean(first.figures.expires_on)
        parts.append(
            (4, (Cell("next to expire ", "dim"), Cell(first.name), Cell(f" on {where} in {left}", "dim")))
        )
    while True:
        cells = join_cells([part for _, part in parts], f" {glyphs.dot} ")
        if width_of(cells) <= width or len(parts) == 1:
            return cells
        worst = max(priority for priority, _ in parts)
        parts.remove(next(part for part in reversed(parts) if part[0] == worst))


def models_state(
    filter_text: str, matching: int, total_lines: int, order: SortOrder, layout: ModelLayout
) -> Cells:
    """`filter llama · 2 of 7 models · Esc shows all`, `by next expiry ▴` of a sort whose column is not shown;
    nothing where there is nothing to say."""
    glyphs = layout.glyphs
    parts: list[Cells] = []
    sort = model_sort_named(order.column)
    if filter_text:
        text = f"{matching} of {count(total_lines, 'model')}"
        parts.append((Cell(text, "plain" if matching else "warn"),))
    if sort is not None and layout.place_of(sort.column) is None:
        arrow = glyphs.descending if order.is_descending else glyphs.ascending
        parts.append((Cell(f"by {sort.title} {arrow}", "dim"),))
    if filter_text:
        rest = join_cells(parts, f" {glyphs.dot} ")
        room = layout.width - width_of(rest) - len(" filter ") - 4
        parts.insert(
            0,
            (
                Cell("filter ", "dim"),
                Cell(clip(clean(filter_text), max(_FILTER_MIN, room), glyphs.ellipsis), "accent"),
            ),
        )
    if not parts:
        return ()
    return fit_cells(
        (Cell(" "), *join_cells(parts, f" {glyphs.dot} ")), layout.width, "left", glyphs.ellipsis
    )


def no_model(filter_text: str, layout: ModelLayout, *, has_models: bool, has_machines: bool) -> Cells:
    """In place of the rows when there are none."""
    cells: Cells
    if has_models:
        cells = (
            Cell("   no model matches "),
            Cell(clean(filter_text), "accent"),
            Cell("  Esc shows all", "dim"),
        )
    elif has_machines:
        cells = (Cell("   no machine has or declares a model, as far as is known", "dim"),)
    else:
        cells = (Cell("   no machine is declared", "dim"),)
    return fit_cells(cells, layout.width, "left", layout.glyphs.ellipsis)
