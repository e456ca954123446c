"""Rows of the fleet's table: a line per machine, below it its GPUs, copies and reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from fleettui.model.gpu import GpuCard
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot, Reason
from fleettui.view.cells import Cell, Cells, dimmed, fit_cells, join_cells
from fleettui.view.column_cells import SEVERITY_TONES, is_note_short, is_severe
from fleettui.view.columns import Column
from fleettui.view.copies import copy_line_text, ordered_copies
from fleettui.view.copy_work import work_cell
from fleettui.view.flags import fitting_flags, flag_cells
from fleettui.view.gpu_processes import lines_below, unplaced_lines
from fleettui.view.layout import Layout, Place
from fleettui.view.list_lines import in_signs
from fleettui.view.machine_view import MachineView, TrendOf
from fleettui.view.on_card import has_room_for_others
from fleettui.view.sorting import SortOrder, sort_machines
from fleettui.view.text import cell_width, clean
from fleettui.view.trouble import trouble_cells

RowKind = Literal["machine", "gpu", "process", "model", "flag", "reason"]
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


def model_of(row: Row) -> str | None:
    """The model that a copy's row is about; None of every other row."""
    if row.kind != "model":
        return None
    _, _, rest = row.key.removeprefix(f"{row.machine}/model/").partition("/")  # behind the engine
    return rest.rpartition("/")[0] or None


def fleet_rows(
    fleet: FleetSnapshot,
    now: float,
    layout: Layout,
    expanded: Collection[str] = (),
    sort_key: str | None = None,
    *,
    is_descending: bool = False,
    trend_of: TrendOf | None = None,
) -> list[Row]:
    """All rows. Whoever draws often caches `machine_rows` per machine by (seq, second of `now`, layout)."""
    rows: list[Row] = []
    for snapshot in sorted_machines(fleet, now, sort_key, is_descending=is_descending):
        is_expanded = snapshot.name in expanded
        rows += machine_rows(snapshot, now, layout, is_expanded=is_expanded, trend_of=trend_of)
    return rows


def sorted_machines(
    fleet: FleetSnapshot, now: float, sort_key: str | None = None, *, is_descending: bool = False
) -> list[MachineSnapshot]:
    """Machines in natural order of their names, or by a column; equals stay in natural order."""
    order = SortOrder() if sort_key is None else SortOrder(sort_key, is_descending)
    return sort_machines(fleet.machines, order, now)


def machine_rows(
    snapshot: MachineSnapshot,
    now: float,
    layout: Layout,
    *,
    is_expanded: bool = False,
    trend_of: TrendOf | None = None,
) -> tuple[Row, ...]:
    """The rows of one machine; they depend on the arguments alone, on `now` by its whole second."""
    now = float(int(now))
    view = MachineView(snapshot, now, layout, is_expanded, trend_of)
    name = snapshot.name
    rows = [Row(name, "machine", name, in_signs(_machine_cells(view), layout))]
    if is_expanded:
        for card in _cards(snapshot):
            key = f"{name}/gpu/{card.index}"
            rows.append(Row(key, "gpu", name, in_signs(_gpu_cells(view, card), layout)))
            rows += _process_rows(view, f"{name}/process/{card.index}", _lines_below(view, card))
        rows += _process_rows(view, f"{name}/process", unplaced_lines(view, _name_width(layout)))
        rows += _model_rows(view)
    if _has_flags_below(view):
        cells = join_cells(flag_cells(snapshot, now, layout.glyphs), "  ")
        rows.append(Row(f"{name}/flags", "flag", name, in_signs((Cell(_BELOW), *cells), layout)))
    for index, reason in enumerate(_reasons_below(view)):
        rows.append(Row(f"{name}/reason/{index}", "reason", name, _reason_cells(view, reason)))
    return tuple(rows)


def count_rows(snapshot: MachineSnapshot, now: float, layout: Layout, *, is_expanded: bool = False) -> int:
    """How many rows `machine_rows` would give, without building them."""
    return len(_row_keys(MachineView(snapshot, float(int(now)), layout, is_expanded)))


def outline_rows(
    snapshot: MachineSnapshot, now: float, layout: Layout, *, is_expanded: bool = False
) -> tuple[Row, ...]:
    """The same rows as `machine_rows` with nothing in them, for those that nobody sees."""
    keys = _row_keys(MachineView(snapshot, float(int(now)), layout, is_expanded))
    blank = (Cell(" " * layout.width),)
    return tuple([Row(key, kind, snapshot.name, blank) for key, kind in keys])


def _row_keys(view: MachineView) -> list[tuple[str, RowKind]]:
    """Key and kind of each row that `machine_rows` gives."""
    snapshot, name = view.snapshot, view.snapshot.name
    keys: list[tuple[str, RowKind]] = [(name, "machine")]
    if view.is_expanded:
        has_processes = snapshot.processes is not None and bool(snapshot.processes.processes)
        for card in _cards(snapshot):
            keys.append((f"{name}/gpu/{card.index}", "gpu"))
            count = len(_lines_below(view, card)) if has_processes else 0
            keys += [(f"{name}/process/{card.index}/{index}", "process") for index in range(count)]
        count = len(unplaced_lines(view, 0)) if has_processes else 0
        keys += [(f"{name}/process/{index}", "process") for index in range(count)]
        copies = enumerate(ordered_copies(snapshot.loaded))
        keys += [(f"{name}/model/{copy.engine}/{copy.name}/{index}", "model") for index, copy in copies]
    if _has_flags_below(view):
        keys.append((f"{name}/flags", "flag"))
    keys += [(f"{name}/reason/{index}", "reason") for index in range(len(_reasons_below(view)))]
    return keys


def _cards(snapshot: MachineSnapshot) -> tuple[GpuCard, ...]:
    return snapshot.gpu.cards if snapshot.gpu is not None else ()


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
        cells, _ = fitting_flags(view.snapshot, view.now, view.layout.glyphs, width)
    return fit_cells(cells, width, "left", view.layout.glyphs.ellipsis)


def _fitted(view: MachineView, column: Column, width: int) -> Cells:
    return fit_cells(column.machine_cells(view, width), width, column.align, view.layout.glyphs.ellipsis)


def _gpu_cells(view: MachineView, card: GpuCard) -> Cells:
    layout = view.layout
    cells = _in_columns(layout, lambda column, width: column.gpu_cells(view, card, width), layout.card_places)
    return dimmed(cells) if view.is_gpu_stale else cells


def _in_columns(
    layout: Layout, cells_of: Callable[[Column, int], Cells], places: Sequence[Place] | None = None
) -> Cells:
    cells: list[Cell] = []
    gap = Cell(" " * layout.gap)
    for place in layout.places if places is None else places:
        if cells:
            cells.append(gap)
        column = place.column
        cells += fit_cells(cells_of(column, place.width), place.width, column.align, layout.glyphs.ellipsis)
    return tuple(cells)


def _lines_below(view: MachineView, card: GpuCard) -> list[Cells]:
    """Processes of others that have no room on the card's own line."""
    return [] if has_room_for_others(view, card) else lines_below(view, card, _name_width(view.layout))


def _process_rows(view: MachineView, key: str, lines: Iterable[Cells]) -> list[Row]:
    """Below their card: the words stand where those of copies do."""
    rows = []
    for index, line in enumerate(lines):
        cells = (Cell(_BELOW), *line)
        shown = dimmed(cells) if view.is_gpu_stale else cells
        rows.append(Row(f"{key}/{index}", "process", view.snapshot.name, in_signs(shown, view.layout)))
    return rows


def _model_rows(view: MachineView) -> list[Row]:
    """A line for each copy with everything known about it; a long name pushes the rest to the right."""
    snapshot, layout = view.snapshot, view.layout
    rows = []
    for index, copy in enumerate(ordered_copies(snapshot.loaded)):
        name = clean(copy.name)
        cells: Cells = (
            Cell(_BELOW),
            Cell(name + " " * (_name_width(layout) - cell_width(name)), "plain"),
            Cell(f"  {copy_line_text(copy, view.now)}", "warn" if copy.state == "stopping" else "dim"),
        )
        work = work_cell(snapshot, copy, view.now)
        if work.text:
            cells = (*cells, Cell(f"   {work.text}", work.tone))
        shown = dimmed(cells) if view.is_engine_stale else cells
        key = f"{snapshot.name}/model/{copy.engine}/{copy.name}/{index}"
        rows.append(Row(key, "model", snapshot.name, in_signs(shown, layout)))
    return rows


def _name_width(layout: Layout) -> int:
    """Columns for names of copies: what is said of them starts where VRAM stands, on every machine."""
    place = layout.place_of("vram")
    start = place.start if place is not None else 0
    return max(start - len(_BELOW) - 2, _NAME_MIN)


def _has_flags_below(view: MachineView) -> bool:
    """True for an expanded machine whose note has no room for all that its flags say."""
    snapshot = view.snapshot
    if not view.is_expanded or (snapshot.maintenance is None and snapshot.drain is None):
        return False
    place = view.layout.place_of("note")
    return place is None or not fitting_flags(snapshot, view.now, view.layout.glyphs, place.width)[1]


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
    return in_signs((Cell(_BELOW), Cell(f"{sign} ", tone), Cell(clean(reason.text), tone)), layout)
