"""The Timeline tab: what happened to one machine."""

from __future__ import annotations

from fleettui.model.snapshot import FleetSnapshot, MachineSnapshot
from fleettui.tui.screens.machine.pane import MachinePane
from fleettui.tui.widgets.event_pane import EventPane


class TimelinePane(MachinePane, EventPane):
    """The list of the Events screen without the other machines; also of one that is no longer declared."""

    def __init__(self, machine_name: str) -> None:
        super().__init__(machine_name)
        self.only = machine_name

    def show_machine(self, machine: MachineSnapshot | None, fleet: FleetSnapshot, now: float) -> None:
        """Paint what changed."""
        self.show_events(now)

    def take_focus(self) -> None:
        self.event_list.focus()
