"""How a fleet begins: connections in groups, ticks apart from each other, and when all had their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleettui.fleet.poller import MachinePoller

STARTS_AT_ONCE, START_PAUSE_S = 16, 0.015
"""Connections begin in groups: no more log in at once anyway, and 256 in one moment hold up the screen."""

MACHINES_PER_PHASE, PHASES, PHASE_S = 64, 5, 0.08
"""More machines than this tick a little later: asking 256 in the same moment would hold up the screen."""

FIRST_ROUND_S = 10.0
"""After that snapshots are stored even when some machine has not answered once."""


def phase_of(number: int) -> float:
    """Seconds by which the machine of that number ticks later than the first."""
    return number // MACHINES_PER_PHASE % PHASES * PHASE_S


async def start_in_groups(pollers: Mapping[str, MachinePoller]) -> None:
    """Start all that are there now; one that is removed or replaced meanwhile is left alone."""
    for count, (name, poller) in enumerate(tuple(pollers.items()), 1):
        if pollers.get(name) is poller:
            poller.start()
        if count % STARTS_AT_ONCE == 0:
            await asyncio.sleep(START_PAUSE_S)


class FirstRound:
    """Machines that were not asked yet would mislead `--route`; slow ones do not hold the storing up."""

    def __init__(self, pollers: Mapping[str, MachinePoller], clock: Callable[[], float]) -> None:
        self._pollers = pollers
        self._clock = clock
        self._began_at = 0.0
        self._is_over = False

    def begin(self) -> None:
        self._began_at = self._clock()

    @property
    def is_over(self) -> bool:
        """Every machine answered or failed once, or had time enough."""
        if not self._is_over:
            waited_s = self._clock() - self._began_at
            self._is_over = waited_s > FIRST_ROUND_S or all(p.is_settled for p in self._pollers.values())
        return self._is_over
