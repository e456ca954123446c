"""System, memory, disks and network of one machine."""

from __future__ import annotations

from fleettui.model.engines import ENGINE_TITLES
from fleettui.model.gpu import GpuReading
from fleettui.model.readings import BlockDevice, MemoryReading, SystemReading
from fleettui.model.unknown import Maybe, Unknown, known_or
from fleettui.view.bars import bar_cells
from fleettui.view.cells import NOTHING, Cell, Cells
from fleettui.view.figures import DISK_FULL_PERCENT, disk_percent, swap_used_kib
from fleettui.view.machine_view import MachineView
from fleettui.view.tables import Line, fields, table
from fleettui.view.text import clean
from fleettui.view.units import DASH, disk_size, duration, kib_gib, rate

_KIB_IN_GIB = 1 << 20
_BAR_WIDTH = 12
_BAR_FROM = 55
"""From here a bar has room beside the figures."""


def system_lines(view: MachineView) -> list[Line]:
    """System, driver, container runtime, engines, processor, main memory, disks as devices."""
    system, cpu, memory = view.snapshot.system, view.snapshot.cpu, view.snapshot.memory
    rows: list[tuple[str, Cells]] = []
    if system is not None:
        rows += _system_rows(system)
    rows += _driver_rows(view.snapshot.gpu)
    if system is not None:
        rows += _container_rows(system)
    rows += _engine_rows(view)
    if system is not None:
        rows += _processor_rows(system)
    if cpu is not None:
        load = "" if isinstance(cpu.load, Unknown) else "  load " + " ".join(f"{v:.2f}" for v in cpu.load)
        busy = DASH if isinstance(cpu.busy_percent, Unknown) else f"{cpu.busy_percent:.0f} %"
        up = "" if isinstance(cpu.uptime_s, Unknown) else f"  up {duration(cpu.uptime_s)}"
        rows.append(("CPU", (Cell(busy), Cell(load + up, "dim"))))
    if memory is not None:
        rows += _memory_rows(memory)
    if system is not None:
        rows += _device_rows(system.block_devices)
    return fields(rows)


def _system_rows(system: SystemReading) -> list[tuple[str, Cells]]:
    inside = () if system.container is None else (f"in {clean(system.container)}",)
    return [
        ("system", _known_or_dash(_words(system.os, *inside))),
        ("kernel", _known_or_dash(_words(system.kernel, system.arch))),
    ]


def _driver_rows(gpu: GpuReading | None) -> list[tuple[str, Cells]]:
    """Driver of each vendor's cards; CUDA as far as NVIDIA's supports it."""
    if gpu is None or not gpu.cards:
        return []
    rows: list[tuple[str, Cells]] = []
    for vendor, title in (("nvidia", "NVIDIA"), ("amd", "AMD")):
        drivers = {card.driver for card in gpu.cards if card.vendor == vendor}
        known = sorted(clean(driver) for driver in drivers if not isinstance(driver, Unknown))
        if not drivers:
            continue
        cuda = "" if vendor == "amd" or gpu.condition is None else known_or(gpu.condition.cuda, "")
        about = f"{title} {', '.join(known) or DASH}"
        cells = (Cell(about), Cell(f"  CUDA up to {clean(cuda)}" if cuda else "", "dim"))
        rows.append(("" if rows else "driver", cells))
    return rows


def _container_rows(system: SystemReading) -> list[tuple[str, Cells]]:
    """What runs containers here."""
    runtime = system.container_runtime
    told = (
        (Cell(DASH, "unknown"), Cell(f"  {clean(runtime.reason)}", "dim"))
        if isinstance(runtime, Unknown)
        else (Cell(clean(runtime)),)
    )
    return [("containers", told)]


def _engine_rows(view: MachineView) -> list[tuple[str, Cells]]:
    """Versions of the engines that answer."""
    rows: list[tuple[str, Cells]] = []
    for engine in view.snapshot.engines:
        title = ENGINE_TITLES.get(engine.kind, engine.kind)
        version = DASH if isinstance(engine.version, Unknown) else clean(engine.version)
        cells = (Cell(f"{title} {version}"), Cell(f"  port {engine.port}", "dim"))
        rows.append(("" if rows else "engines", cells))
    return rows


def _processor_rows(system: SystemReading) -> list[tuple[str, Cells]]:
    cores = "" if isinstance(system.cores, Unknown) else f"{system.cores} threads"
    limit = "" if system.core_limit is None else f"limit {system.core_limit:g}"
    processor = ", ".join(word for word in (_words(system.cpu_model), cores, limit) if word)
    rows: list[tuple[str, Cells]] = [("processor", _known_or_dash(processor))]
    skew_s = system.clock_skew_s
    if not isinstance(skew_s, Unknown) and abs(skew_s) >= 1:
        side = "ahead of" if skew_s > 0 else "behind"
        rows.append(("clock", (Cell(f"{abs(skew_s):.0f} s {side} this computer's", "warn"),)))
    return rows


def _memory_rows(memory: MemoryReading) -> list[tuple[str, Cells]]:
    """Use and swap; below, what changes the meaning of the figure: limits, caches, tasks that wait."""
    details = memory.details
    swap = f"  swap {kib_gib(swap_used_kib(memory))}/{kib_gib(memory.swap_total_kib)}"
    if memory.swap_total_kib == 0:
        swap = ""
    elif details is not None and known_or(details.zram_kib, 0) > 0:
        swap += " (zram)"
    use = f"{kib_gib(memory.used_kib)}/{kib_gib(memory.total_kib)} GiB"
    rows: list[tuple[str, Cells]] = [("RAM", (Cell(use), Cell(swap, "dim")))]
    rows += [("", (Cell(text, "dim"),)) for text in _memory_notes(memory)]
    return rows


def _memory_notes(memory: MemoryReading) -> list[str]:
    notes = []
    for limit in memory.limits:
        free = max(0, limit.limit_kib - limit.used_kib)
        whose = "login sessions only: limit" if limit.is_session else "limit"
        notes.append(f"{whose} {_gib(limit.limit_kib)} GiB, {_gib(free)} GiB of it free")
    if memory.is_available_low:
        notes.append("container memory: available may be too low")
    details = memory.details
    if details is None:
        return notes
    shrinkable = known_or(details.arc_shrinkable_kib, 0)
    if not isinstance(details.arc_kib, Unknown):
        can = f", {_gib(shrinkable)} GiB of it can shrink" if shrinkable else ""
        notes.append(f"ZFS ARC {_gib(details.arc_kib)} GiB{can}")
    if memory.limit is not None and not isinstance(details.limit_cache_kib, Unknown):
        notes.append(f"page cache {_gib(details.limit_cache_kib)} GiB counts against the limit and can go")
    if not isinstance(memory.up_to_kib, Unknown):
        notes.append(f"{_gib(memory.free_kib)} GiB free, up to {_gib(memory.up_to_kib)} GiB if caches shrink")
    if known_or(details.stalled_some_percent, 0.0) >= 1:
        notes.append(f"tasks waited for memory {details.stalled_some_percent:.0f} % of the last 10 s")
    return notes


def _gib(kib: Maybe[int]) -> str:
    return DASH if isinstance(kib, Unknown) else f"{kib / _KIB_IN_GIB:.1f}"


def _device_rows(devices: Maybe[tuple[BlockDevice, ...]]) -> list[tuple[str, Cells]]:
    """Disks of one kind in one row: `4 × 7.7 TB SSD SAMSUNG MZQL2`."""
    kinds: dict[str, list[str]] = {}
    for device in () if isinstance(devices, Unknown) else devices:
        kind = " ".join((disk_size(device.size_bytes), _drive(device), known_or(device.model, "")))
        kinds.setdefault(kind.strip(), []).append(device.name)
    rows: list[tuple[str, Cells]] = []
    for kind, names in kinds.items():
        count = f"{len(names)} × " if len(names) > 1 else ""
        title = "" if rows else "devices"
        rows.append((title, (Cell(f"{count}{clean(kind)}"), Cell(f"  {clean(' '.join(names))}", "dim"))))
    return rows


def _drive(device: BlockDevice) -> str:
    if isinstance(device.is_rotational, Unknown):
        return "disk"
    return "HDD" if device.is_rotational else "SSD"


def _known_or_dash(text: str) -> Cells:
    return (Cell(text) if text else Cell(DASH, "unknown"),)


def _words(*values: Maybe[str]) -> str:
    return ", ".join(clean(value) for value in values if not isinstance(value, Unknown))


def disk_lines(view: MachineView) -> list[Line]:
    rows = []
    bar_width = _BAR_WIDTH if view.layout.width >= _BAR_FROM else 0
    for disk in view.snapshot.disks.disks if view.snapshot.disks is not None else ():
        full = known_or(disk_percent(disk), 0.0)
        limits = (DISK_FULL_PERCENT - 15.0, float(DISK_FULL_PERCENT))
        rows.append(
            (
                (Cell(clean(disk.mount)),),
                bar_cells(full / 100, bar_width, limits, view.layout.glyphs) if bar_width else NOTHING,
                (Cell(f"{full:.0f} %", "warn" if full > DISK_FULL_PERCENT else "plain"),),
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
                (Cell("" if item.is_counted else "not in the sum", "dim"),),
            )
            for item in (view.snapshot.net.interfaces if view.snapshot.net is not None else ())
        ],
    )
