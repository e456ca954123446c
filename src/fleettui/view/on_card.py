"""What lies on a card: copies, processes of engines, processes of others; or what is wrong with it."""

from __future__ import annotations

from fleettui.model.gpu import GpuCard
from fleettui.model.unknown import Unknown
from fleettui.view.cells import NOTHING, Cell, Cells, dimmed, join_cells, width_of
from fleettui.view.copies import short_name
from fleettui.view.gpu_processes import others_cells, runner_cells
from fleettui.view.machine_view import MachineView
from fleettui.view.text import clean
from fleettui.view.units import gib_text


def gpu_models(view: MachineView, card: GpuCard, width: int) -> Cells:
    """Copies that processes prove to lie on the card, with what they take there; processes of engines that no
    copy explains; processes of others. Where no copy lies, a fault: here is more room than in the note."""
    if card.fault is not None and not view.shares_on(card.index):
        return (Cell(clean(card.fault.text), "bad"),)
    parts = _engine_parts(view, card)
    joined = join_cells(parts, ", ")
    if width_of(joined) > width:  # names say more than a figure and half a name
        joined = join_cells([part[:1] for part in parts], ", ")
    if has_room_for_others(view, card):
        joined = join_cells([joined, others_cells(view, card)], ", ")
    return dimmed(joined) if view.is_gpu_stale else joined


def gpu_note(view: MachineView, card: GpuCard, width: int) -> Cells:
    """A fault in words where copies take its place among the models; what lies there where models have no
    column."""
    has_models = view.layout.has("models")
    if card.fault is not None and (view.shares_on(card.index) or not has_models):
        return (Cell(clean(card.fault.text), "bad"),)
    if has_models or not has_room_for_others(view, card):
        return NOTHING
    others = others_cells(view, card)
    return dimmed(others) if view.is_gpu_stale else others


def has_room_for_others(view: MachineView, card: GpuCard) -> bool:
    """True when the card's own line has processes of others whole; else each has a line below it."""
    if card.fault is not None:
        return False
    parts: list[Cells] = [others_cells(view, card)]
    places = {place.column.key: place for place in view.layout.card_places}
    if "models" in places:
        parts += _engine_parts(view, card)
        return width_of(join_cells(parts, ", ")) <= places["models"].width
    return "note" in places and width_of(parts[0]) <= places["note"].width


def _engine_parts(view: MachineView, card: GpuCard) -> list[Cells]:
    """A group for each copy on the card and each process of an engine, the name first."""
    copies: list[Cells] = [
        (
            Cell(short_name(share.copy), "plain"),
            Cell("" if isinstance(share.used_mib, Unknown) else f" {gib_text(share.used_mib)}", "dim"),
        )
        for share in view.shares_on(card.index)
    ]
    return copies + runner_cells(view, card)
