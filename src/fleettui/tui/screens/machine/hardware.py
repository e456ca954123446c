"""The Hardware tab: health, utilisation now and in the last hour, devices, system."""

from __future__ import annotations

from collections.abc import Sequence

from fleettui.decide.drain.sources import find_copies
from fleettui.decide.profile_drift import profile_differences
from fleettui.model.drain import DrainStatus
from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.screens.machine.history_of import HistoryOf
from fleettui.tui.screens.machine.section_pane import SectionPane
from fleettui.view.layout import Layout
from fleettui.view.machine_graphs import Graphs, make_graphs, room_for
from fleettui.view.machine_page import Section, hardware_page


class HardwarePane(SectionPane):
    """What the machine is made of and how busy it is."""

    def __init__(self, machine_name: str) -> None:
        super().__init__(machine_name)
        self._graphs: Graphs | None = None
        self._graphs_made_for: object = None
        self._drain: DrainStatus | None = None

    def show_machine(self, machine: MachineSnapshot | None, fleet: FleetSnapshot, now: float) -> None:
        """With its drain as it was read last."""
        drain = None
        if machine is not None and machine.drain is not None:
            watch = self.fleet_app.drains.watch
            watch.look([machine.name])
            drain = watch.status_of(machine.name)
        if drain is not self._drain:
            self._drain, self._shown_for = drain, None
        super().show_machine(machine, fleet, now)

    def sections_of(
        self, machine: MachineSnapshot, fleet: FleetSnapshot, now: float, layout: Layout
    ) -> Sequence[Section]:
        book = self.fleet_app.service.profiles
        profile = None if book is None else book.latest.get(machine.name)
        return hardware_page(
            machine,
            now,
            layout,
            fleet.problems,
            self._graphs_of(machine, fleet.interval_s, now, layout),
            profile,
            () if profile is None else profile_differences(machine, profile),
            self._drain,
            () if machine.drain is None else [(item.copy, item.missing) for item in find_copies(machine)],
        )

    def _graphs_of(
        self, machine: MachineSnapshot, interval_s: float, now: float, layout: Layout
    ) -> Graphs | None:
        """Drawn anew with each reading; while none comes time still moves them, once an interval."""
        history = self.fleet_app.service.history
        if history is None:
            return None
        made_for = (machine.seq, layout, self.page_height, now // max(interval_s, history.step_s))
        if made_for != self._graphs_made_for:
            self._graphs_made_for = made_for
            cards = len(machine.gpu.cards) if machine.gpu is not None else 0
            window = HistoryOf(history, self.machine_name)
            room = room_for(window, self.page_height, cards, is_wide=self.is_wide)
            self._graphs = make_graphs(machine, now, layout, room)
        return self._graphs
