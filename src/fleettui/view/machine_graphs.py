"""Which graphs a machine has: its own series, and those of each card."""

from __future__ import annotations

from typing import NamedTuple

from fleettui.model.gpu import GpuCard
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, known_or
from fleettui.model.vram import card_memory
from fleettui.view.bars import Limits, tone_for
from fleettui.view.cells import Cells, Tone
from fleettui.view.figures import DISK_FULL_PERCENT, fullest_disk_percent, net_rates, percent_of
from fleettui.view.history_graphs import (
    CELSIUS,
    MB_S,
    PERCENT,
    RAM_GIB,
    VRAM_GIB,
    WATTS,
    Graph,
    graph_lines,
)
from fleettui.view.history_span import History
from fleettui.view.layout import Layout
from fleettui.view.machine_view import MachineView

_NOT_REPORTED = Unknown("not reported")


class GraphRoom(NamedTuple):
    """Where the samples are, and how many lines graphs may take."""

    history: History
    machine_rows: int
    gpu_rows: int


_MOST_MACHINE, _MOST_GPU = 3, 4
"""Lines of one graph at most."""
_HOST_SERIES = 5


def room_for(history: History, page_height: int, card_count: int, *, is_wide: bool) -> GraphRoom:
    """Most of the page, shared by all graphs; side by side each column has its own."""
    if is_wide:
        return GraphRoom(history, page_height * 2 // 5, page_height * 2 // 3)
    rows = page_height * 3 // 5
    graphs = _HOST_SERIES + 2 * card_count
    return GraphRoom(history, rows * _HOST_SERIES // graphs, rows * 2 * card_count // graphs)


class Graphs(NamedTuple):
    """Lines of all graphs of one machine."""

    machine: list[Cells]
    cards: list[Cells]


def make_graphs(snapshot: MachineSnapshot, now: float, layout: Layout, room: GraphRoom) -> Graphs:
    """Milliseconds of work, so keep them until a sample is added."""
    view = MachineView(snapshot, now, layout)
    return Graphs(_machine_lines(view, room), _card_lines(view, room))


def _machine_lines(view: MachineView, room: GraphRoom) -> list[Cells]:
    """CPU, memory, the fullest disk, network."""
    snapshot, limits = view.snapshot, view.layout.thresholds
    memory, disks = snapshot.memory, snapshot.disks
    graphs: list[Graph] = []
    if snapshot.cpu is not None:
        busy = snapshot.cpu.busy_percent
        graphs.append(Graph("CPU", "cpu", PERCENT, busy, _tone(busy, limits.utilisation), 100.0))
    if memory is not None:
        tone = _tone(percent_of(memory.used_kib, memory.total_kib), limits.memory)
        top = None if isinstance(memory.total_kib, Unknown) else float(memory.total_kib)
        graphs.append(Graph("memory", "ram", RAM_GIB, memory.used_kib, tone, top))
    if disks is not None and disks.disks:
        full = fullest_disk_percent(snapshot)
        is_full = known_or(full, 0.0) > DISK_FULL_PERCENT
        graphs.append(Graph("disk", "disk", PERCENT, full, "warn" if is_full else "plain", 100.0))
    if snapshot.net is not None:
        received, sent = net_rates(snapshot)
        graphs.append(Graph("net in", "rx", MB_S, received))
        graphs.append(Graph("net out", "tx", MB_S, sent))
    height = max(1, min(_MOST_MACHINE, room.machine_rows // _HOST_SERIES))
    return _draw(view, room, graphs, height, is_stale=view.is_source_stale("cpu", "memory"))


def _card_lines(view: MachineView, room: GraphRoom) -> list[Cells]:
    """Utilisation and VRAM of each card; temperature and power too where there is room for all four."""
    cards = view.snapshot.gpu.cards if view.snapshot.gpu is not None else ()
    if not cards:
        return []
    has_four = room.gpu_rows >= 2 * 4 * len(cards)
    count = (4 if has_four else 2) * len(cards)
    graphs = [graph for card in cards for graph in _card_graphs(view, card)[: 4 if has_four else 2]]
    height = max(1, min(_MOST_GPU, room.gpu_rows // count))
    return _draw(view, room, graphs, height, is_stale=view.is_gpu_stale)


def _card_graphs(view: MachineView, card: GpuCard) -> tuple[Graph, ...]:
    limits, memory = view.layout.thresholds, card_memory(view.snapshot, card)
    use = card.utilisation_percent if card.fault is None else _NOT_REPORTED
    used = memory.used_mib
    full = _tone(percent_of(used, memory.total_mib), limits.memory)
    heat, watts = card.temperature_c, card.power_w
    is_odd = "power_w" in card.suspect
    return (
        Graph(f"GPU {card.index}", "utilisation", PERCENT, use, _tone(use, limits.utilisation), 100.0, card),
        Graph("VRAM", "vram", VRAM_GIB, used, full, _top(memory.total_mib), card, is_part=True),
        Graph(
            "temp", "temperature", CELSIUS, heat, _tone(heat, limits.temperature), 100.0, card, is_part=True
        ),
        Graph(
            "power",
            "power",
            WATTS,
            watts,
            "warn" if is_odd else "plain",
            _top(card.power_limit_w),
            card,
            is_part=True,
        ),
    )


def _top(whole: Maybe[float]) -> float | None:
    return None if isinstance(whole, Unknown) or whole <= 0 else float(whole)


def _tone(value: Maybe[float], limits: Limits) -> Tone:
    """Plain below the first limit: what is as usual needs no colour."""
    tone = tone_for(value, limits)
    return "plain" if tone == "good" else tone


def _draw(
    view: MachineView, room: GraphRoom, graphs: list[Graph], height: int, *, is_stale: bool
) -> list[Cells]:
    layout = view.layout
    return graph_lines(graphs, room.history, layout.width, height, layout.glyphs, is_stale=is_stale)
