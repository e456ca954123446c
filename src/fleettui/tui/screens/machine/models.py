"""The Models tab: loaded, declared, installed, how they differ, and who else is on the GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.screens.machine.section_pane import SectionPane
from fleettui.view.layout import Layout
from fleettui.view.machine_page import Section, models_page
from fleettui.view.machine_planned import planned_lines
from fleettui.view.model_drift import Drift, find_other_digests
from fleettui.view.tables import Line

_COMPARE_AGAIN_S = 10.0
"""What is installed elsewhere changes rarely, and looking through 300 machines takes milliseconds."""


class ModelsPane(SectionPane):
    """What the machine serves."""

    def __init__(self, machine_name: str) -> None:
        super().__init__(machine_name)
        self._compared: tuple[object, float] | None = None
        self._other_digests: tuple[Drift, ...] = ()

    def sections_of(
        self, machine: MachineSnapshot, fleet: FleetSnapshot, now: float, layout: Layout
    ) -> Sequence[Section]:
        installed = tuple(engine.installed for engine in machine.engines)
        last = self._compared
        if last is None or last[0] != installed or not 0 <= now - last[1] < _COMPARE_AGAIN_S:
            self._compared = (installed, now)
            self._other_digests = find_other_digests(machine, fleet.machines)
        return models_page(machine, now, layout, self._other_digests, self._planned(machine, fleet, layout))

    def _planned(self, machine: MachineSnapshot, fleet: FleetSnapshot, layout: Layout) -> list[Line]:
        plan, roles = self.fleet_app.plans.plan_now(fleet), fleet.catalog.roles
        return planned_lines(machine.name, plan, roles, layout.width)
