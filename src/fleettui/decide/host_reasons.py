"""What is wrong with a machine itself, beside GPUs and engines, in the operator's words.

No figure that moves with each poll stands in a text: a reason changes only when its matter changes.
"""

from __future__ import annotations

from fleettui.decide.lateness import is_long_late
from fleettui.model.clock import day_and_time
from fleettui.model.readings import DiskUse, MemoryReading, SystemReading
from fleettui.model.snapshot import MachineSnapshot, Reason
from fleettui.model.unknown import Maybe, Unknown, known_or

HOST_SOURCES = ("cpu", "memory", "disks", "net", "system")
_SOURCE_TITLES = {"cpu": "CPU", "memory": "memory", "disks": "disks", "net": "network", "system": "system"}
DISK_LIMIT_PERCENT = 95
MEMORY_LEFT_PERCENT = 5
SWAP_LEFT_PERCENT = 10
STALLED_SOME_PERCENT = 10
"""With hardly any memory available, this share of the time spent waiting for it is the second sign."""
STALLED_FULL_PERCENT = 25
"""All tasks stand still for this share of the time: sure, whatever MemAvailable says."""
RAM_TOLERANCE = 0.1
"""Firmware, graphics and the kernel keep 2 to 8 % of what is built in."""
CLOCK_LIMIT_S = 5
_CLOCK_STEPS = (
    (86_400, "a day"),
    (3600, "an hour"),
    (300, "5 minutes"),
    (60, "a minute"),
    (30, "30 s"),
    (10, "10 s"),
)
_KIB_IN_GIB = 1 << 20


def host_reasons(snapshot: MachineSnapshot) -> list[Reason]:
    """Disks, memory, clock and limits of the machine."""
    reasons = _disk_reasons(snapshot)
    if snapshot.memory is not None:
        reasons += _memory_reasons(snapshot.memory)
        if not snapshot.memory.limits and (snapshot.system is None or snapshot.system.container is None):
            reasons += _declared_reasons(snapshot.machine.ram_gb, snapshot.memory.total_kib)
    if snapshot.system is not None:
        reasons += _clock_reasons(snapshot.system)
        reasons += _limit_reasons(snapshot.system, snapshot.memory)
    return reasons


def _memory_reasons(memory: MemoryReading) -> list[Reason]:
    """Memory that is full by two signs: MemAvailable alone says too little in containers."""
    details, free, usable = memory.details, memory.free_kib, memory.usable_kib
    some = 0.0 if details is None else known_or(details.stalled_some_percent, 0.0)
    full = 0.0 if details is None else known_or(details.stalled_full_percent, 0.0)
    is_short = (
        not isinstance(free, Unknown)
        and not isinstance(usable, Unknown)
        and free * 100 < usable * MEMORY_LEFT_PERCENT
    )
    has_full_swap = is_short and _has_full_swap(memory)
    if is_short and (has_full_swap or some >= STALLED_SOME_PERCENT):
        sign = "swap is used up too" if has_full_swap else "tasks wait for it"
        text = f"memory is full ({sign}): unload models or stop processes"
        return [Reason("degraded", "memory_full", text)]
    if full >= STALLED_FULL_PERCENT:
        text = "all tasks wait for memory a quarter of the time (swapping): unload models or stop processes"
        return [Reason("degraded", "memory_stalled", text)]
    return []


def _declared_reasons(declared_gb: Maybe[float], total_kib: Maybe[int]) -> list[Reason]:
    """RAM of the machine file against MemTotal."""
    if isinstance(declared_gb, Unknown) or isinstance(total_kib, Unknown) or declared_gb <= 0:
        return []
    total_gib = total_kib / _KIB_IN_GIB
    if abs(total_gib - declared_gb) <= declared_gb * RAM_TOLERANCE:
        return []
    step = "is a module missing? else " if total_gib < declared_gb else ""
    text = f"{total_gib:.0f} GiB of RAM, the file declares {declared_gb:g}: {step}correct hardware.ram_gb"
    return [Reason("note", "ram_differs", text)]


def _has_full_swap(memory: MemoryReading) -> bool:
    total, free = known_or(memory.swap_total_kib, 0), memory.swap_free_kib
    return total > 0 and not isinstance(free, Unknown) and free * 100 < total * SWAP_LEFT_PERCENT


def _clock_reasons(system: SystemReading) -> list[Reason]:
    skew_s = known_or(system.clock_skew_s, 0.0)
    if abs(skew_s) <= CLOCK_LIMIT_S:
        return []
    size = next((text for limit_s, text in _CLOCK_STEPS if abs(skew_s) > limit_s), f"{CLOCK_LIMIT_S} s")
    side = "ahead of" if skew_s > 0 else "behind"
    text = f"clock is more than {size} {side} this computer's: set up time synchronisation (chrony, NTP)"
    return [Reason("note", "clock_skew", text)]


def _limit_reasons(system: SystemReading, memory: MemoryReading | None) -> list[Reason]:
    parts = []
    if memory is not None and memory.limits and memory.limit is not None:
        usable, total = known_or(memory.usable_kib, 0), memory.total_kib
        of = "" if isinstance(total, Unknown) else f" of {total / _KIB_IN_GIB:.1f}"
        parts.append(f"{usable / _KIB_IN_GIB:.1f}{of} GiB of memory")
    if system.core_limit is not None:
        of = "" if isinstance(system.cores, Unknown) else f" of {system.cores}"
        parts.append(f"{system.core_limit:g}{of} processors")
    if not parts:
        return []
    return [Reason("note", "host_limits", f"limited to {' and '.join(parts)} (container or cgroup)")]


def host_source_reasons(snapshot: MachineSnapshot, now: float, utc_offset_s: int | None) -> list[Reason]:
    """Sources of the machine itself that failed or answer no more; those with one cause are one reason."""
    reasons = []
    failed: dict[str, list[str]] = {}
    for name in HOST_SOURCES:
        status = snapshot.sources.get(name)
        if status is None:
            continue
        title = _SOURCE_TITLES[name]
        if status.state == "error":
            failed.setdefault(status.error or "cannot be read", []).append(name)
        elif is_long_late(status, now) and status.since is not None:
            text = f"{title}: no answer since {day_and_time(status.since, now, utc_offset_s)}"
            reasons.append(Reason("degraded", f"{name}_late", text))
    for error, names in failed.items():
        titles = ", ".join(_SOURCE_TITLES[name] for name in names)
        reasons.append(Reason("degraded", f"{names[0]}_error", f"{titles}: {error}"))
    return reasons


def used_percent(disk: DiskUse) -> float | None:
    """Fullness as df counts it: used / (used + free for users); None for an empty file system."""
    size = disk.used_kib + disk.free_kib
    return disk.used_kib * 100 / size if size > 0 else None


def _disk_reasons(snapshot: MachineSnapshot) -> list[Reason]:
    """Disks over 95 %, fullest first. Images that are full by nature (loop devices) are left out."""
    full = []
    for disk in snapshot.disks.disks if snapshot.disks is not None else ():
        percent = used_percent(disk)
        if percent is None or percent <= DISK_LIMIT_PERCENT or disk.device.startswith("/dev/loop"):
            continue
        free_gib = disk.free_kib / (1 << 20)
        text = f"disk {disk.mount} is {int(percent)} % full ({free_gib:.1f} GiB free): remove models or files"
        full.append((-percent, Reason("degraded", "disk_full", text)))
    return [reason for _, reason in sorted(full, key=lambda item: item[0])]
