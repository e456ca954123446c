"""Figures of a whole machine, for columns, their order and the filter language."""

from __future__ import annotations

from fleettui.model.readings import DiskUse, MemoryReading
from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, total

DISK_FULL_PERCENT = 95
"""As in docs/health.md."""


def is_answering(snapshot: MachineSnapshot) -> bool:
    """True when its row shows values; what another said last is no value of now."""
    return snapshot.trust == "approved" and snapshot.health not in {"offline", "unknown"}


def percent_of(part: Maybe[float], whole: Maybe[float]) -> Maybe[float]:
    """The share of a whole, percent."""
    if isinstance(part, Unknown) or isinstance(whole, Unknown) or whole <= 0:
        return Unknown("share not known")
    return part * 100 / whole


def mean_utilisation(snapshot: MachineSnapshot) -> Maybe[float]:
    """Percent, mean over the cards that report one; what a faulty card reports is no load."""
    known = [
        card.utilisation_percent
        for card in (snapshot.gpu.cards if snapshot.gpu is not None else ())
        if card.fault is None and not isinstance(card.utilisation_percent, Unknown)
    ]
    return sum(known) / len(known) if known else Unknown("no utilisation known")


def hottest_c(snapshot: MachineSnapshot) -> Maybe[int]:
    """Temperature of the hottest card, °C."""
    known = [
        card.temperature_c
        for card in (snapshot.gpu.cards if snapshot.gpu is not None else ())
        if not isinstance(card.temperature_c, Unknown)
    ]
    return max(known) if known else Unknown("no temperature known")


def total_power_w(snapshot: MachineSnapshot) -> Maybe[float]:
    """Watts of all cards together, without implausible figures."""
    cards = snapshot.gpu.cards if snapshot.gpu is not None else ()
    return total(card.power_w for card in cards if "power_w" not in card.suspect)


def fullest_disk_percent(snapshot: MachineSnapshot) -> Maybe[float]:
    """Fullness of the fullest disk as df counts it; images that are full by nature left out."""
    disks = snapshot.disks.disks if snapshot.disks is not None else ()
    found = [disk_percent(disk) for disk in disks if not disk.device.startswith("/dev/loop")]
    known = [percent for percent in found if not isinstance(percent, Unknown)]
    return max(known) if known else Unknown("no disk known")


def disk_percent(disk: DiskUse) -> Maybe[float]:
    """Fullness of one file system as df counts it: used / (used + free for users)."""
    return percent_of(disk.used_kib, disk.used_kib + disk.free_kib)


def swap_used_kib(memory: MemoryReading) -> Maybe[int]:
    """KiB of swap in use."""
    if isinstance(memory.swap_total_kib, Unknown) or isinstance(memory.swap_free_kib, Unknown):
        return Unknown("swap not read")
    return max(0, memory.swap_total_kib - memory.swap_free_kib)


def net_rates(snapshot: MachineSnapshot) -> tuple[Maybe[float], Maybe[float]]:
    """Bytes a second received and sent, all cards together: bridges and bonds carry the same bytes again."""
    interfaces = (
        [item for item in snapshot.net.interfaces if item.is_counted] if snapshot.net is not None else []
    )
    return total(i.rx_bytes_s for i in interfaces), total(i.tx_bytes_s for i in interfaces)
