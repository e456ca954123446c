"""The columns of the fleet's table, one entry each: the dashboard, `status` and the docs read them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fleettui.model.gpu import GpuCard
from fleettui.model.order import natural_key
from fleettui.model.record import dataclass
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, T, Unknown, total
from fleettui.model.vram import free_vram
from fleettui.view import column_cells as cells
from fleettui.view import gpu_cells as gpu
from fleettui.view.cells import Align, Cells
from fleettui.view.figures import fullest_disk_percent, hottest_c, mean_utilisation, net_rates, total_power_w
from fleettui.view.machine_view import MachineView
from fleettui.view.on_card import gpu_models, gpu_note
from fleettui.view.units import PERCENT_WIDTH

MachineCells = Callable[[MachineView, int], Cells]
"""(machine, width) -> cells; the row pads and cuts."""
GpuCells = Callable[[MachineView, GpuCard, int], Cells]
SortKey = Callable[[MachineSnapshot, float], Any]
"""(machine, now) -> what it is ordered by; None: unknown, comes last in either direction."""

_HEALTH_ORDER = {"unhealthy": 0, "offline": 1, "degraded": 2, "unknown": 3, "healthy": 4}


EXTRA = 9
"""Priority of the first column that is merely good to know."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    key: str
    title: str
    description: str
    """For docs and help."""
    min_width: int
    priority: int
    """0 is kept longest when the terminal is narrow."""
    machine_cells: MachineCells
    gpu_cells: GpuCells
    order: SortKey | None
    """None: ordered as `sorts_as`."""
    align: Align = "left"
    max_width: int = 0
    weight: int = 0
    """Share of spare room; 0 keeps `min_width`."""
    roomy_width: int = 0
    """`min_width` from `layout.ROOMY` columns on; 0: the same."""
    comfort: int = 0
    """Width that columns of priority 8 and more must leave to this one; 0: `min_width`."""
    is_descending_first: bool = False
    """Sorting starts with the largest."""
    sorts_as: str = ""
    """Key of the column that has the figures of this one."""


def known_value(value: Maybe[T]) -> T | None:
    """The value to order by, None where it is unknown."""
    return None if isinstance(value, Unknown) else value


COLUMNS: tuple[Column, ...] = (
    Column(
        "machine", "machine", "Name of the machine; below it its GPUs", 14, 0,
        cells.machine_name, gpu.gpu_name, lambda s, _: natural_key(s.name),
    ),
    Column(
        "health", "health", "healthy, degraded, unhealthy, offline, unknown; a flag: maintenance or drain",
        13, 0, cells.health, gpu.gpu_heat, lambda s, _: _HEALTH_ORDER[s.health],
    ),
    Column(
        "vram", "VRAM", "Used and total VRAM in GiB, all GPUs together; `shared` where CPU and GPU share it",
        20, 0, gpu.vram, gpu.gpu_vram, lambda s, _: known_value(free_vram(s).sum_mib),
        max_width=34, weight=1, comfort=28, is_descending_first=True,
    ),
    Column(
        "gpu", "GPU", "Utilisation, mean over the GPUs", 4, 1,
        gpu.utilisation, gpu.gpu_utilisation, lambda s, _: known_value(mean_utilisation(s)),
        align="right", roomy_width=PERCENT_WIDTH, is_descending_first=True,
    ),
    Column(
        "trend", "trend", "Utilisation of the last 5 minutes, mean over the GPUs", 8, 6,
        gpu.trend, gpu.gpu_trend, None, max_width=24, weight=1, comfort=12, sorts_as="gpu",
    ),
    Column(
        "temp", "temp", "Temperature of the hottest GPU", 6, 9,
        gpu.temperature, gpu.gpu_temperature, lambda s, _: known_value(hottest_c(s)),
        align="right", is_descending_first=True,
    ),
    Column(
        "power", "power", "Power of all GPUs", 6, 10,
        gpu.power, gpu.gpu_power, lambda s, _: known_value(total_power_w(s)),
        align="right", is_descending_first=True,
    ),
    Column(
        "models", "models", "Copies with GiB and time to expiry; on a GPU's line what lies there",
        18, 2, gpu.models, gpu_models, lambda s, _: len(s.loaded), max_width=60, weight=6, comfort=36,
        is_descending_first=True,
    ),
    Column(
        "cpu", "CPU", "Processor load, all cores", 4, 4, cells.cpu, cells.blank_gpu,
        lambda s, _: known_value(s.cpu.busy_percent) if s.cpu is not None else None,
        align="right", roomy_width=PERCENT_WIDTH, is_descending_first=True,
    ),
    Column(
        "ram", "RAM", "Used and total main memory in GiB", 9, 5, cells.ram, cells.blank_gpu,
        lambda s, _: known_value(s.memory.used_kib) if s.memory is not None else None,
        align="right", is_descending_first=True,
    ),
    Column(
        "disk", "disk", "Fullest disk", 4, 11, cells.disk, cells.blank_gpu,
        lambda s, _: known_value(fullest_disk_percent(s)),
        align="right", roomy_width=PERCENT_WIDTH, is_descending_first=True,
    ),
    Column(
        "net", "net MB/s", "Bytes received and sent, all interfaces", 13, 12, cells.net, cells.blank_gpu,
        lambda s, _: known_value(total(net_rates(s))), align="right", is_descending_first=True,
    ),
    Column(
        "age", "age", "Since when the machine was last heard", 5, 3, cells.age, cells.blank_gpu,
        lambda s, now: None if s.last_seen is None else -s.last_seen, align="right",
        is_descending_first=True,
    ),
    Column(
        "note", "note", "Flags and the most severe reason", 20, 7, cells.note, gpu_note,
        lambda s, _: (not s.reasons, s.reasons[0].code if s.reasons else ""),
        max_width=60, weight=3, comfort=30,
    ),
)  # fmt: skip
"""In the order of the table."""
