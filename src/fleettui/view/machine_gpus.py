"""GPUs and GPU processes of one machine in full."""

from __future__ import annotations

from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.gpu import GpuCard, GpuProcess, MigInstance, cards_of_uuids
from fleettui.model.gpu_users import engine_kind_of, is_declared_kind
from fleettui.model.readings import LoadedModel
from fleettui.model.unknown import Unknown
from fleettui.model.vram import card_memory
from fleettui.view.bars import bar_cells, fraction_of, tone_for
from fleettui.view.cells import NOTHING, Cell, Cells, dimmed
from fleettui.view.copies import short_name
from fleettui.view.gpu_cells import short_gpu_name
from fleettui.view.gpu_condition import card_details, xid_lines
from fleettui.view.layout import NARROW
from fleettui.view.machine_view import MachineView
from fleettui.view.process_command import short_command
from fleettui.view.tables import Line, table
from fleettui.view.text import clean
from fleettui.view.units import DASH, gib_text, percent_prose

_BAR_WIDTH = 18
_UNIT_FROM = 50
"""Narrower, utilisation needs the room."""


def gpu_lines(view: MachineView) -> list[Line]:
    """A line for each card with every figure, its MIG instances below it; then what is odd about them."""
    gpu = view.snapshot.gpu
    if gpu is None:
        return []
    head = ("", "GPU", "", "VRAM", "free", "use", "temp", "power", "fan", "state")
    rows: list[tuple[Cells, ...]] = []
    for card in gpu.cards:
        rows.append(_gpu_row(view, card))
        rows += [_instance_row(view, part) for part in card.mig]
    lines = table(head, rows, frozenset({3, 4, 5, 6, 7, 8}), view.layout.width)
    if view.is_gpu_stale:
        lines = [dimmed(line) for line in lines]
    for card in gpu.cards:
        lines += [(Cell(text, "warn"),) for text in _remarks(view, card)]
        lines += [(Cell(text, "dim"),) for text in card_details(gpu, card)]
    for fault in gpu.faults:
        where = "" if isinstance(fault.bus_id, Unknown) else f"{clean(fault.bus_id)}: "
        lines.append((Cell(f"{where}{clean(fault.text)}", "bad"),))
    lines += xid_lines(view, gpu)
    if gpu.problem is not None and gpu.problem.detail:
        lines.append((Cell(clean(gpu.problem.detail), "dim"),))
    return lines


def _instance_row(view: MachineView, part: MigInstance) -> tuple[Cells, ...]:
    limits = view.layout.thresholds
    bar_width = _BAR_WIDTH if view.layout.width >= NARROW else 0
    fraction = fraction_of(part.used_mib, part.total_mib)
    name = Cell(f"{view.layout.glyphs.dot} MIG {clean(part.profile)}", "dim")
    return (
        NOTHING,
        (name,),
        bar_cells(fraction, bar_width, limits.memory, view.layout.glyphs) if bar_width else NOTHING,
        (Cell(f"{gib_text(part.used_mib)}/{gib_text(part.total_mib)}{_unit(view)}"),),
        (Cell(gib_text(part.free_mib)),),
        *(NOTHING,) * 5,
    )


def _unit(view: MachineView) -> str:
    return " GiB" if view.layout.width >= _UNIT_FROM else ""


def _gpu_row(view: MachineView, card: GpuCard) -> tuple[Cells, ...]:
    limits = view.layout.thresholds
    bar_width = _BAR_WIDTH if view.layout.width >= NARROW else 0
    memory = card_memory(view.snapshot, card)
    fraction = fraction_of(memory.used_mib, memory.total_mib)
    shared = " shared" if card.is_unified else ""
    mig = f" {view.layout.glyphs.dot} MIG" if card.is_mig else ""
    limit = "" if isinstance(card.power_limit_w, Unknown) else f"/{card.power_limit_w:.0f}"
    mark = "!" if "power_w" in card.suspect else ""
    watts = DASH if isinstance(card.power_w, Unknown) else f"{card.power_w:.0f}{mark}{limit} W"
    heat = DASH if isinstance(card.temperature_c, Unknown) else f"{card.temperature_c} °C"
    return (
        (Cell(str(card.index), "dim"),),
        (Cell(short_gpu_name(card.name) + mig),),
        bar_cells(fraction, bar_width, limits.memory, view.layout.glyphs) if bar_width else NOTHING,
        (Cell(f"{gib_text(memory.used_mib)}/{gib_text(memory.total_mib)}{_unit(view)}{shared}"),),
        (Cell(gib_text(memory.free_mib)),),
        (
            Cell(
                percent_prose(card.utilisation_percent),
                tone_for(card.utilisation_percent, limits.utilisation),
            ),
        ),
        (Cell(heat, tone_for(card.temperature_c, limits.temperature)),),
        (Cell(watts, "dim"),),
        (Cell(percent_prose(card.fan_percent), "dim"),),
        (Cell(DASH if isinstance(card.pstate, Unknown) else clean(card.pstate), "dim"),),
    )


def _remarks(view: MachineView, card: GpuCard) -> list[str]:
    remarks = []
    if card.fault is not None:
        remarks.append(f"GPU {card.index}: {clean(card.fault.text)}")
    if card.index in view.snapshot.machine.disabled_gpus:
        remarks.append(f"GPU {card.index}: disabled in the file")
    if card.suspect:
        remarks.append(f"GPU {card.index}: implausible {', '.join(card.suspect)}")
    if card.is_mig and not card.mig:
        remarks.append(f"GPU {card.index}: MIG is on, its instances are not known")
    return remarks


def process_lines(view: MachineView) -> list[Line]:
    """Each compute process with its card, memory, user, what it is, and its command."""
    snapshot = view.snapshot
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    status = snapshot.sources.get("processes")
    if snapshot.processes is None and cards and status is not None and status.state == "unsupported":
        return [(Cell(clean(status.error or "no process list here"), "dim"),)]
    if snapshot.processes is None:
        return []
    if not snapshot.processes.processes:
        return [(Cell("none", "dim"),)] if cards else []
    index_of = {uuid: str(index) for uuid, index in cards_of_uuids(cards).items()}
    copy_of = {share.pid: share.copy for share in view.shares}
    rows: list[tuple[Cells, ...]] = []
    for process in snapshot.processes.processes:
        is_placed = not isinstance(process.gpu_uuid, Unknown)
        gpu = index_of.get(str(process.gpu_uuid), DASH) if is_placed else DASH
        memory = DASH if isinstance(process.used_mib, Unknown) else f"{gib_text(process.used_mib)} GiB"
        command = process.name if isinstance(process.command, Unknown) else process.command
        whose = _whose(view, process, copy_of.get(process.pid))
        user = DASH if isinstance(process.user, Unknown) else clean(process.user)
        rows.append(
            (
                (Cell(gpu, "dim"),),
                (Cell(str(process.pid), "dim"),),
                (Cell(memory),),
                (Cell(user),),
                (whose,),
                (Cell(short_command(clean(command)), "dim"),),
            )
        )
    return table(("GPU", "pid", "VRAM", "user", "what", "command"), rows, frozenset({1, 2}))


def _whose(view: MachineView, process: GpuProcess, copy: LoadedModel | None) -> Cell:
    """The copy it holds, the engine it belongs to, or that it belongs to none."""
    if copy is not None:
        return Cell(short_name(copy))
    kind = engine_kind_of(process)
    if kind is None:
        return Cell("no engine", "dim")
    title = ENGINE_TITLES.get(kind, kind)
    return (
        Cell(title, "dim")
        if is_declared_kind(view.snapshot, kind)
        else Cell(f"{title}, not declared", "warn")
    )
