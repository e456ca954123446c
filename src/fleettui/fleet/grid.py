"""The grid of moments at which machines are asked: one timer for all that are asked at the same one.

Machines that are asked together answer together, and the process wakes up less often. A timer for each
machine took a fiftieth of the collector's CPU.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

TOO_SOON = 0.1
"""Of an interval: a point as near as that is left out."""


class Turn:
    """One call at the next point of the grid."""

    __slots__ = ("tick",)

    def __init__(self, tick: Callable[[], None]) -> None:
        self.tick: Callable[[], None] | None = tick

    def cancel(self) -> None:
        """Not this time."""
        self.tick = None


class TickGrid:
    """Calls whoever took a turn, at whole multiples of an interval plus a phase."""

    def __init__(self) -> None:
        self._points: dict[tuple[float, float, int], list[Turn]] = {}
        """Who waits for a point: of which interval and phase, and the how manieth since 1970."""

    def take_turn(self, tick: Callable[[], None], now: float, interval_s: float, phase_s: float) -> Turn:
        """Have `tick` called once at the next point. `now`: epoch seconds."""
        number = int((now - phase_s) // interval_s) + 1
        if number * interval_s + phase_s - now < interval_s * TOO_SOON:
            number += 1
        point = (interval_s, phase_s, number)
        turns = self._points.get(point)
        if turns is None:
            turns = self._points[point] = []
            delay_s = number * interval_s + phase_s - now
            asyncio.get_running_loop().call_later(delay_s, self._reach, point)
        turn = Turn(tick)
        turns.append(turn)
        return turn

    def _reach(self, point: tuple[float, float, int]) -> None:
        for turn in self._points.pop(point):
            if turn.tick is None:
                continue
            try:
                turn.tick()
            except Exception:
                # A defect of ours on one machine must not end the asking of all others.
                log.exception("a machine cannot be asked")
