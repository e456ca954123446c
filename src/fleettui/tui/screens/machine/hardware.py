"""The Hardware tab: health, utilisation now and in the last hour, devices, system."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.screens.machine.history_of import HistoryOf
from fleettui.tui.screens.machine.section_pane import SectionPane
from fleettui.view.layout import Layout
from fleettui.view.machine_graphs import GraphRoom, room_for
from fleettui.view.machine_page import Section, hardware_page


class HardwarePane(SectionPane):
    """What the machine is made of and how busy it is."""

    def sections_of(
        self, machine: MachineSnapshot, fleet: FleetSnapshot, now: float, layout: Layout
    ) -> Sequence[Section]:
        return hardware_page(machine, now, layout, fleet.problems, self._graph_room(machine))

    def _graph_room(self, machine: MachineSnapshot) -> GraphRoom | None:
        history = self.fleet_app.service.history
        if history is None:
            return None
        cards = len(machine.gpu.cards) if machine.gpu is not None else 0
        window = HistoryOf(history, self.machine_name)
        return room_for(window, self.page_height, cards, is_wide=self.is_wide)
