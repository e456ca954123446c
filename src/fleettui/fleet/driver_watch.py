"""Watches the drivers of the fleet: notes for machines that are not as most of their kind are."""

from __future__ import annotations

from fleettui.decide.skew import DriverVersions, find_skew, versions_of
from fleettui.model.gpu import GpuReading
from fleettui.model.snapshot import Reason


class DriverWatch:
    """Driver and CUDA of each machine; compares them only when one changed."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[object, object]] = {}
        """What the versions were last read from: the same objects while nothing changed."""
        self._versions: dict[str, DriverVersions] = {}
        self._notes: dict[str, Reason] = {}
        self._is_news = False

    def look_at(self, name: str, reading: GpuReading | None) -> None:
        """A new snapshot of a machine; nearly always there is nothing new in it."""
        if reading is None or not reading.cards:
            return  # a machine without cards now keeps the driver it had
        parts = (reading.cards[0].driver, reading.condition)
        seen = self._seen.get(name)
        if seen is not None and seen[0] is parts[0] and seen[1] is parts[1]:
            return
        self._seen[name] = parts
        versions = versions_of(reading)
        if versions is not None and versions != self._versions.get(name):
            self._versions[name] = versions
            self._is_news = True

    def forget(self, name: str) -> None:
        """The machine is gone."""
        self._seen.pop(name, None)
        if self._versions.pop(name, None) is not None:
            self._is_news = True

    def changed_notes(self) -> dict[str, tuple[Reason, ...]]:
        """The notes of machines for which they changed since the last call."""
        if not self._is_news:
            return {}
        self._is_news = False
        before, self._notes = self._notes, find_skew(self._versions)
        return {
            name: (self._notes[name],) if name in self._notes else ()
            for name in {**before, **self._notes}
            if before.get(name) != self._notes.get(name)
        }
