"""When to paint: the newest snapshot only, at most four times a second."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from textual.timer import Timer

MIN_GAP_S = 0.25
"""Between two paints. Faster than the eye compares numbers, slow enough for a terminal over SSH."""


class Painter:
    """Calls `paint` for any number of requests, never twice within the gap, and never forgets the last."""

    def __init__(
        self,
        paint: Callable[[], None],
        call_later: Callable[[float, Callable[[], None]], Timer],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._paint = paint
        self._call_later = call_later
        self._clock = clock
        self._painted_at = -MIN_GAP_S
        self._pending: Timer | None = None
        self.count = 0
        """Paints so far."""

    def request(self) -> None:
        """Something changed: paint now, or as soon as the gap has passed."""
        if self._pending is not None:
            return
        wait_s = self._painted_at + MIN_GAP_S - self._clock()
        if wait_s > 0:
            self._pending = self._call_later(wait_s, self.paint_now)
        else:
            self.paint_now()

    def paint_now(self) -> None:
        """Paint without asking for the gap: the operator did something and looks at it."""
        if self._pending is not None:
            self._pending.stop()
            self._pending = None
        self._painted_at = self._clock()
        self.count += 1
        self._paint()
