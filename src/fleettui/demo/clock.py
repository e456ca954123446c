"""Time of the demo fleet: simulated seconds that follow the wall clock, faster, or stand still."""

from __future__ import annotations

import asyncio
import math
import time


class DemoClock:
    """Maps wall time to simulated seconds. A frozen clock moves only by `advance`."""

    def __init__(self, speed: float = 1.0, is_frozen: bool = False, start_s: float = 0.0):
        self.speed = speed
        self.is_frozen = is_frozen
        self._offset_s = start_s
        self._started = time.monotonic()
        self._started_wall = time.time()
        self._moved = asyncio.Event()

    def now(self) -> float:
        """Simulated seconds."""
        if self.is_frozen:
            return self._offset_s
        return self._offset_s + (time.monotonic() - self._started) * self.speed

    def advance(self, seconds: float) -> None:
        """Jumps ahead and wakes everyone who waits."""
        self._offset_s += seconds
        self._moved.set()
        self._moved = asyncio.Event()

    def wall_at(self, simulated_s: float) -> float:
        """Epoch seconds of a simulated moment: the same for the same moment while the clock runs.

        A frozen clock keeps its distance to the present instead, so that a time left stays the same
        however long one looks.
        """
        if self.is_frozen:
            return time.time() + simulated_s - self._offset_s
        return self._started_wall + (simulated_s - self._offset_s) / self.speed

    async def wait_until(self, simulated_s: float) -> None:
        """Returns when that moment may have come, or the clock has jumped."""
        moved = self._moved
        if math.isinf(simulated_s) or self.is_frozen:
            await moved.wait()
            return
        delay = max(0.0, (simulated_s - self.now()) / self.speed)
        try:
            async with asyncio.timeout(delay + 0.001):
                await moved.wait()
        except TimeoutError:
            pass
