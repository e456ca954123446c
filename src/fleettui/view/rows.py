"""Rows of the fleet's table: a line per machine, below it its GPUs, copies and reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, NamedTuple

from fleettui.model.gpu import GpuCard
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot, Reason
from fleettui.view.cells import Cell, Cells, dimmed, fit_cells, join_cells
from fleettui.view.column_cells import SEVERITY_TONES, is_note_short, is_severe
from fleettui.view.columns import Column
from fleettui.view.copies import copy_line_text, ordered_copies
from fleettui.view.flags import flag_cells
from fleettui.view.layout import Layout
from fleettui.view.machine_view import MachineView
from fleettui.view.sorting import SortOrder, sort_machines
from fleettui.view.text import cell_width, clean
from fleettui.view.trouble import trouble_cells

RowKind = Literal["machine", "gpu", "model", "reason"]
_BELOW = "      "
"""Indent of what stands below a machine's cards."""
_NAME_MIN = 16


class Row(NamedTuple):
    """One line of the table, as wide as its layout."""

    key: str
    """Stable while the thing exists; of a machine's own line the machine's name."""
    kind: RowKind
    machine: str
    cells: Cells
    """Runs from left to right, gaps included; exactly the layout's width."""


def fleet_rows(
    fleet: FleetSnapshot,
    now: float,
    layout: Layout,
    expanded: Collection[str] = (),
    sort_key: str | None = None,
    *,
    is_descending: bool = False,
) -> list[Row]:
    """All rows. Whoever draws often caches `machine_rows` per machine by (seq, second of `now`, layout)."""
    rows: list[Row] = []
    for snapshot in sorted_machines(fleet, now, sort_key, is_descending=is_descending):
        rows += machine_rows(snapshot, now, layout, is_expanded=snapshot.name in expanded)
    return rows


def sorted_machines(
    fleet: FleetSnapshot, now: float, sort_key: str | None = None, *, is_descending: bool = False
) -> list[MachineSnapshot]:
    """Machines in natural order of their names, or by a column; equals stay in natural order."""
    order = SortOrder() if sort_key is None else SortOrder(sort_key, is_descending)
    return sort_machines(fleet.machines, order, now)


def machine_rows(
    snapshot: MachineSnapshot, now: float, layout: Layout, *, is_expanded: bool = False
) -> tuple[Row, ...]:
    """The rows of one machine; they depend on the arguments alone, on `now` by its whole second."""
    now = float(int(now))
    view = MachineView(snapshot, now, layout, is_expanded)
    rows = [Row(snapshot.name, "machine", snapshot.name, _finish(_machine_cells(view), layout))]
    if is_expanded:
        rows += [
            Row(
                f"{snapshot.name}/gpu/{card.index}",
                "gpu",
                snapshot.name,
                _finish(_gpu_cells(view, card), layout),
            )
            for card in (snapshot.gpu.cards if snapshot.gpu is not None else ())
        ]
        rows += _model_rows(view)
    for index, reason in enumerate(_reasons_below(view)):
        rows.append(
            Row(f"{snapshot.name}/reason/{index}", "reason", snapshot.name, _reason_cells(view, reason))
        )
    return tuple(rows)


def count_rows(snapshot: MachineSnapshot, layout: Layout, *, is_expanded: bool = False) -> int:
    """How many rows `machine_rows` would give, without building them."""
    view = MachineView(snapshot, 0.0, layout, is_expanded)
    below = len(_reasons_below(view))
    if not is_expanded:
        return 1 + below
    cards = len(snapshot.gpu.cards) if snapshot.gpu is not None else 0
    return 1 + cards + len(snapshot.loaded) + below


def _machine_cells(view: MachineView) -> Cells:
    """Columns side by side; what keeps a machine from answering goes across them up to its age."""
    layout = view.layout
    if view.is_answering:
        return _in_columns(layout, lambda column, width: column.machine_cells(view, width))
    last = layout.place_of("age") if view.age_s is not None else None
    first = next((place for place in layout.places if place.column.key not in {"machine", "health"}), None)
    cells: list[Cell] = []
    for place in layout.places:
        if place.column.key not in {"machine", "health"}:
            break
        cells += _fitted(view, place.column, place.width)
        cells.append(Cell(" " * layout.gap))
    if first is None:
        return tuple(cells)
    end = last.start - layout.gap if last is not None else layout.width - 1
    cells += fit_cells(
        trouble_cells(view, end - first.start), end - first.start, "left", layout.glyphs.ellipsis
    )
    if last is not None:
        cells.append(Cell(" " * layout.gap))
        cells += _fitted(view, last.column, last.width)
        for place in layout.places:
            if place.start > last.start:
                cells.append(Cell(" " * layout.gap))
                cells += _flags_only(view, place.column, place.width)
    return tuple(cells)


def _flags_only(view: MachineView, column: Column, width: int) -> Cells:
    """The note of a machine that does not answer: its flags; the reason stands across the row already."""
    cells: Cells = ()
    if column.key == "note":
        cells = join_cells(flag_cells(view.snapshot, view.now, view.layout.glyphs), "  ")
    return fit_cells(cells, width, "left", view.layout.glyphs.ellipsis)


def _fitted(view: MachineView, column: Column, width: int) -> Cells:
    return fit_cells(column.machine_cells(view, width), width, column.align, view.layout.glyphs.ellipsis)


def _gpu_cells(view: MachineView, card: GpuCard) -> Cells:
    cells = _in_columns(view.layout, lambda column, width: column.gpu_cells(view, card, width))
    return dimmed(cells) if view.is_gpu_stale else cells


def _in_columns(layout: Layout, cells_of: Callable[[Column, int], Cells]) -> Cells:
    cells: list[Cell] = []
    for place in layout.places:
        if cells:
            cells.append(Cell(" " * layout.gap))
        column = place.column
        cells += fit_cells(cells_of(column, place.width), place.width, column.align, layout.glyphs.ellipsis)
    return tuple(cells)


def _model_rows(view: MachineView) -> list[Row]:
    """A line for each copy with everything known about it; a long name pushes the rest to the right."""
    snapshot, layout = view.snapshot, view.layout
    rows = []
    for index, copy in enumerate(ordered_copies(snapshot.loaded)):
        name = clean(copy.name)
        cells = (
            Cell(_BELOW),
            Cell(name + " " * (_name_width(layout) - cell_width(name)), "plain"),
            Cell(f"  {copy_line_text(copy, view.now)}", "warn" if copy.state == "stopping" else "dim"),
        )
        shown = dimmed(cells) if view.is_engine_stale else cells
        key = f"{snapshot.name}/model/{copy.engine}/{copy.name}/{index}"
        rows.append(Row(key, "model", snapshot.name, _finish(shown, layout)))
    return rows


def _name_width(layout: Layout) -> int:
    """Columns for names of copies: what is said of them starts where VRAM stands, on every machine."""
    place = layout.place_of("vram")
    start = place.start if place is not None else 0
    return max(start - len(_BELOW) - 2, _NAME_MIN)


def _reasons_below(view: MachineView) -> tuple[Reason, ...]:
    """Reasons with a line of their own: all of an expanded machine; the worst where no note shows it."""
    reasons = view.snapshot.reasons
    if not reasons or view.snapshot.trust != "approved":
        return ()
    if view.snapshot.health == "offline":
        return reasons[1:] if view.is_expanded else ()
    if view.is_expanded:
        return reasons
    place = view.layout.place_of("note")
    has_place = place is not None and not is_note_short(view, place.width)
    return () if has_place or not is_severe(reasons[0]) else reasons[:1]


def _reason_cells(view: MachineView, reason: Reason) -> Cells:
    layout = view.layout
    signs = {
        "offline": layout.glyphs.offline,
        "unhealthy": layout.glyphs.unhealthy,
        "degraded": layout.glyphs.degraded,
    }
    sign = signs.get(reason.severity, layout.glyphs.dot)
    tone = SEVERITY_TONES[reason.severity]
    return _finish((Cell(_BELOW), Cell(f"{sign} ", tone), Cell(clean(reason.text), tone)), layout)


def _finish(cells: Cells, layout: Layout) -> Cells:
    """Exactly the layout's width, in the layout's signs."""
    if layout.glyphs.is_ascii:
        cells = tuple(Cell(layout.glyphs.plain(cell.text), cell.tone) for cell in cells)
    return fit_cells(cells, layout.width, "left", layout.glyphs.ellipsis)
