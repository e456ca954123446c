"""What a machine says of itself beside GPUs, in JSON: memory beyond total and used, and `system`."""

from __future__ import annotations

from fleettui.model.readings import BlockDevice, MemoryReading, SystemReading
from fleettui.model.unknown import Unknown
from fleettui.view.figures import swap_used_kib
from fleettui.view.json_values import KIB_IN_GIB, Document, gib, known


def memory_document(memory: MemoryReading | None) -> Document:
    """Keys of `telemetry`. `ram_free_gb` is what may still be used: below a limit, too."""
    if memory is None:
        keys = ("ram_available_gb", "ram_free_gb", "ram_free_up_to_gb", "ram_limit_gb", "swap_used_gb")
        return dict.fromkeys((*keys, "swap_total_gb", "zfs_arc_gb", "memory_stalled_percent"))
    details, limit = memory.details, memory.limit
    return {
        "ram_available_gb": gib(memory.available_kib, KIB_IN_GIB),
        "ram_free_gb": gib(memory.free_kib, KIB_IN_GIB),
        "ram_free_up_to_gb": gib(memory.up_to_kib, KIB_IN_GIB),
        "ram_limit_gb": None if limit is None else gib(memory.usable_kib, KIB_IN_GIB),
        "swap_used_gb": gib(swap_used_kib(memory), KIB_IN_GIB),
        "swap_total_gb": gib(memory.swap_total_kib, KIB_IN_GIB),
        "zfs_arc_gb": None if details is None else gib(details.arc_kib, KIB_IN_GIB),
        "memory_stalled_percent": None if details is None else known(details.stalled_some_percent),
    }


def host_document(system: SystemReading) -> Document:
    """Keys of `system`; null where not read, and `container` also where there is none."""
    devices = system.block_devices
    return {
        "os": known(system.os),
        "kernel": known(system.kernel),
        "arch": known(system.arch),
        "cpu": known(system.cpu_model),
        "cores": known(system.cores),
        "core_limit": system.core_limit,
        "container": system.container,
        "container_runtime": known(system.container_runtime),
        "boot_id": known(system.boot_id),
        "clock_skew_s": known(system.clock_skew_s),
        "block_devices": None if isinstance(devices, Unknown) else [_device(device) for device in devices],
    }


def _device(device: BlockDevice) -> Document:
    return {
        "name": device.name,
        "size_bytes": device.size_bytes,
        "rotational": known(device.is_rotational),
        "model": known(device.model),
        "transport": known(device.transport),
        "mounts": list(device.mounts),
    }
