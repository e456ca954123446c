"""Figures of a whole machine, for columns and their order."""

from __future__ import annotations

from fleettui.model.snapshot import MachineSnapshot
from fleettui.model.unknown import Maybe, Unknown, total


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
    known = []
    for disk in snapshot.disks.disks if snapshot.disks is not None else ():
        size = disk.used_kib + disk.free_kib
        if size > 0 and not disk.device.startswith("/dev/loop"):
            known.append(disk.used_kib * 100 / size)
    return max(known) if known else Unknown("no disk known")


def net_rates(snapshot: MachineSnapshot) -> tuple[Maybe[float], Maybe[float]]:
    """Bytes a second received and sent, all cards together: bridges and bonds carry the same bytes again."""
    interfaces = (
        [item for item in snapshot.net.interfaces if item.is_counted] if snapshot.net is not None else []
    )
    return total(i.rx_bytes_s for i in interfaces), total(i.tx_bytes_s for i in interfaces)
