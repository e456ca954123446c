"""Which cards hold which copy, looked at anew only when processes or engines said something new."""

from __future__ import annotations

from operator import is_

from fleettui.model.gpu import GpuReading, ProcessesReading
from fleettui.model.readings import CopyPlace, EngineReading
from fleettui.model.residency import find_places
from fleettui.model.unknown import Unknown


def _essence(engine: EngineReading) -> tuple[object, ...]:
    """What decides about places: expiries and uses move all the time and do not."""
    if isinstance(engine.loaded, Unknown):
        return (engine.port,)
    return (engine.port, *[(copy.name, copy.digest, copy.vram_bytes) for copy in engine.loaded])


class Places:
    """The places found last, and what they were made of."""

    def __init__(self) -> None:
        self._found: tuple[CopyPlace, ...] = ()
        self._processes: ProcessesReading | None = None
        self._engines: tuple[EngineReading, ...] = ()
        self._card_count = 0
        self._copies: list[tuple[object, ...]] = []

    def find(
        self, gpu: GpuReading | None, processes: ProcessesReading | None, engines: tuple[EngineReading, ...]
    ) -> tuple[CopyPlace, ...]:
        """Places of the copies; the same object while nothing of it changed."""
        if gpu is None or processes is None:
            return self._found
        is_known = len(gpu.cards) == self._card_count and len(engines) == len(self._engines)
        is_same = is_known and processes is self._processes
        if is_same and all(map(is_, engines, self._engines)):
            return self._found
        is_known = is_known and processes == self._processes
        copies = list(map(_essence, engines))
        is_known = is_known and copies == self._copies
        self._processes, self._engines, self._copies = processes, engines, copies
        self._card_count = len(gpu.cards)
        if is_known:
            return self._found
        found = find_places(gpu, processes, engines)
        self._found = self._found if found == self._found else found
        return self._found
