"""System, memory, disks and network of one machine."""

from __future__ import annotations

from fleettui.model.unknown import Maybe, Unknown
from fleettui.view.cells import Cell, Cells
from fleettui.view.machine_view import MachineView
from fleettui.view.tables import Line, fields, table
from fleettui.view.text import clean
from fleettui.view.units import DASH, duration, kib_gib, rate


def machine_lines(view: MachineView) -> list[Line]:
    """System, processor and main memory."""
    system, cpu, memory = view.snapshot.system, view.snapshot.cpu, view.snapshot.memory
    rows: list[tuple[str, Cells]] = []
    if system is not None:
        rows.append(("system", (Cell(_words(system.os, system.kernel, system.arch)),)))
        cores = "" if isinstance(system.cores, Unknown) else f"{system.cores} threads"
        rows.append(("processor", (Cell(", ".join(w for w in (_words(system.cpu_model), cores) if w)),)))
    if cpu is not None:
        load = "" if isinstance(cpu.load, Unknown) else "  load " + " ".join(f"{v:.2f}" for v in cpu.load)
        busy = DASH if isinstance(cpu.busy_percent, Unknown) else f"{cpu.busy_percent:.0f} %"
        up = "" if isinstance(cpu.uptime_s, Unknown) else f"  up {duration(cpu.uptime_s)}"
        rows.append(("CPU", (Cell(busy), Cell(load + up, "dim"))))
    if memory is not None:
        swap_used: Maybe[int] = Unknown()
        if not isinstance(memory.swap_total_kib, Unknown) and not isinstance(memory.swap_free_kib, Unknown):
            swap_used = memory.swap_total_kib - memory.swap_free_kib
        swap = (
            ""
            if memory.swap_total_kib == 0
            else f"  swap {kib_gib(swap_used)}/{kib_gib(memory.swap_total_kib)}"
        )
        rows.append(
            ("RAM", (Cell(f"{kib_gib(memory.used_kib)}/{kib_gib(memory.total_kib)} GiB"), Cell(swap, "dim")))
        )
    return fields(rows)


def _words(*values: Maybe[str]) -> str:
    return ", ".join(clean(value) for value in values if not isinstance(value, Unknown))


def disk_lines(view: MachineView) -> list[Line]:
    rows = []
    for disk in view.snapshot.disks.disks if view.snapshot.disks is not None else ():
        size = disk.used_kib + disk.free_kib
        full = disk.used_kib * 100 / size if size else 0.0
        rows.append(
            (
                (Cell(clean(disk.mount)),),
                (Cell(f"{full:.0f} %", "warn" if full > 95 else "plain"),),
                (Cell(f"{kib_gib(disk.free_kib)} of {kib_gib(disk.total_kib)} GiB free", "dim"),),
                (Cell(clean(disk.device), "dim"),),
            )
        )
    return table((), rows)


def net_lines(view: MachineView) -> list[Line]:
    glyphs = view.layout.glyphs
    return table(
        (),
        [
            (
                (Cell(clean(item.name)),),
                (Cell(f"{glyphs.down} {rate(item.rx_bytes_s)}", "dim"),),
                (Cell(f"{glyphs.up} {rate(item.tx_bytes_s)}", "dim"),),
            )
            for item in (view.snapshot.net.interfaces if view.snapshot.net is not None else ())
        ],
    )
