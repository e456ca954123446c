"""What a machine says of itself beside GPUs, in JSON: memory beyond total and used, and `system`."""

from __future__ import annotations

from typing import Any

from fleettui.model.readings import BlockDevice, MemoryReading, SystemReading
from fleettui.model.unknown import Maybe, T, Unknown
from fleettui.view.figures import swap_used_kib

Document = dict[str, Any]

_KIB_IN_GIB = 1 << 20


def memory_document(memory: MemoryReading | None) -> Document:
    """Keys of `telemetry`. `ram_free_gb` is what may still be used: below a limit, too."""
    if memory is None:
        keys = ("ram_available_gb", "ram_free_gb", "ram_free_up_to_gb", "ram_limit_gb", "swap_used_gb")
        return dict.fromkeys((*keys, "swap_total_gb", "zfs_arc_gb", "memory_stalled_percent"))
    details, limit = memory.details, memory.limit
    return {
        "ram_available_gb": _gib(memory.available_kib),
        "ram_free_gb": _gib(memory.free_kib),
        "ram_free_up_to_gb": _gib(memory.up_to_kib),
        "ram_limit_gb": None if limit is None else _gib(memory.usable_kib),
        "swap_used_gb": _gib(swap_used_kib(memory)),
        "swap_total_gb": _gib(memory.swap_total_kib),
        "zfs_arc_gb": None if details is None else _gib(details.arc_kib),
        "memory_stalled_percent": None if details is None else _known(details.stalled_some_percent),
    }


def host_document(system: SystemReading) -> Document:
    """Keys of `system`; null where not read, and `container` also where there is none."""
    devices = system.block_devices
    return {
        "os": _known(system.os),
        "kernel": _known(system.kernel),
        "arch": _known(system.arch),
        "cpu": _known(system.cpu_model),
        "cores": _known(system.cores),
        "core_limit": system.core_limit,
        "container": system.container,
        "container_runtime": _known(system.container_runtime),
        "boot_id": _known(system.boot_id),
        "clock_skew_s": _known(system.clock_skew_s),
        "block_devices": None if isinstance(devices, Unknown) else [_device(device) for device in devices],
    }


def _device(device: BlockDevice) -> Document:
    return {
        "name": device.name,
        "size_bytes": device.size_bytes,
        "rotational": _known(device.is_rotational),
        "model": _known(device.model),
        "transport": _known(device.transport),
        "mounts": list(device.mounts),
    }


def _known(value: Maybe[T]) -> T | None:
    return None if isinstance(value, Unknown) else value


def _gib(kib: Maybe[int]) -> float | None:
    return None if isinstance(kib, Unknown) else round(kib / _KIB_IN_GIB, 1)
