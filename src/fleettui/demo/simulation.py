"""The simulated fleet: seeded, so that the same seed and time give the same readings."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.demo.fleet_plan import plan_fleet
from fleettui.demo.machine import SimulatedMachine

DEFAULT_MACHINES = 8
DEFAULT_SEED = 7


class Simulation:
    """All machines. Time is simulated seconds since the start; nothing moves unless it is told to."""

    def __init__(
        self,
        machines: int = DEFAULT_MACHINES,
        seed: int = DEFAULT_SEED,
        *,
        cards_each: int | None = None,
        beside: Sequence[tuple[str, str]] = (),
        has_traffic: bool = True,
        is_instant: bool = False,
    ):
        self.seed = seed
        self.now = 0.0
        self.machines = {
            plan.name: SimulatedMachine(plan, seed, has_traffic=has_traffic, is_instant=is_instant)
            for plan in plan_fleet(machines, seed, cards_each, beside)
        }

    def advance(self, seconds: float) -> None:
        """Moves all machines on."""
        self.at(self.now + seconds)

    def at(self, time_s: float) -> None:
        """Moves all machines on to a time; going back is not possible."""
        self.now = max(self.now, time_s)
        for machine in self.machines.values():
            machine.advance_to(self.now)

    def is_away(self, name: str) -> bool:
        """True while the machine's schedule has it switched off."""
        absence = self.machines[name].plan.absence
        if absence is None or self.now < absence.first_s:
            return False
        return (self.now - absence.first_s) % absence.period_s < absence.length_s
