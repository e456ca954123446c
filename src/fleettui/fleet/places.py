"""Which cards hold which copy, looked at anew only when processes or engines said something new."""

from __future__ import annotations

from operator import is_

from fleettui.model.gpu import GpuReading, ProcessesReading
from fleettui.model.readings import CopyPlace, EngineReading
from fleettui.model.residency import find_places


class Places:
    """The places found last, and what they were made of."""

    def __init__(self) -> None:
        self._found: tuple[CopyPlace, ...] = ()
        self._processes: ProcessesReading | None = None
        self._engines: tuple[EngineReading, ...] = ()
        self._card_count = 0

    def find(
        self, gpu: GpuReading | None, processes: ProcessesReading | None, engines: tuple[EngineReading, ...]
    ) -> tuple[CopyPlace, ...]:
        """Places of the copies; the same object while nothing of it changed."""
        if gpu is None or processes is None:
            return self._found
        if (
            processes is self._processes
            and len(gpu.cards) == self._card_count
            and len(engines) == len(self._engines)
            and all(map(is_, engines, self._engines))
        ):
            return self._found
        self._processes, self._engines, self._card_count = processes, engines, len(gpu.cards)
        found = find_places(gpu, processes, engines)
        self._found = self._found if found == self._found else found
        return self._found
