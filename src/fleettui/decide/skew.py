"""Drivers that differ across the fleet: a note on the machines that are not as most of their kind are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from fleettui.model.gpu import GpuReading
from fleettui.model.record import dataclass
from fleettui.model.snapshot import Reason
from fleettui.model.unknown import Unknown

MIN_MACHINES = 3
"""Two machines that differ have no majority."""


@dataclass(frozen=True, slots=True)
class DriverVersions:
    """The driver of a machine's cards."""

    vendor: str
    driver: str
    cuda: str | None = None


def versions_of(reading: GpuReading | None) -> DriverVersions | None:
    """Versions that the machine's first card and the tool tell; None without cards."""
    if reading is None or not reading.cards or isinstance(reading.cards[0].driver, Unknown):
        return None
    card = reading.cards[0]
    cuda = reading.condition.cuda if reading.condition is not None else None
    return DriverVersions(card.vendor, str(card.driver), None if isinstance(cuda, Unknown) else cuda)


def find_skew(versions: Mapping[str, DriverVersions]) -> dict[str, Reason]:
    """The note for each machine whose driver, or CUDA, is not that of most machines of its vendor."""
    notes: dict[str, Reason] = {}
    for vendor in {item.vendor for item in versions.values()}:
        group = {name: item for name, item in versions.items() if item.vendor == vendor}
        drivers = {name: item.driver for name, item in group.items()}
        for name, text in _differing("driver", drivers).items():
            notes[name] = Reason("note", "driver_skew", text)
        cudas = {name: item.cuda for name, item in group.items() if item.cuda is not None}
        for name, text in _differing("CUDA", cudas).items():
            # Another driver mostly brings another CUDA; that is said once.
            notes.setdefault(name, Reason("note", "cuda_skew", text))
    return notes


def _differing(what: str, versions: Mapping[str, str]) -> dict[str, str]:
    """A text for each machine that differs from what more than half of them have."""
    if len(versions) < MIN_MACHINES:
        return {}
    (usual, count), *_ = Counter(versions.values()).most_common(1)
    if count * 2 <= len(versions):
        return {}
    return {
        name: f"{what} {version} here, {usual} on {count} of {len(versions)} machines"
        for name, version in versions.items()
        if version != usual
    }
