"""The Events screen: what happened in the fleet, newest first."""

from __future__ import annotations

from textual.app import ComposeResult

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.live import LiveScreen
from fleettui.tui.widgets.event_pane import EventPane
from fleettui.view.text import clean


class FleetTimeline(EventPane):
    """Of all machines."""

    title = "Events"
    keeps_filter = True


class EventsScreen(LiveScreen):
    """The fleet's timeline. Newest first: what just happened stands at one place, under the eye that comes
    to the screen, and stays there however high the terminal is."""

    BINDINGS = bindings_for("events")

    def __init__(self) -> None:
        super().__init__()
        self.pane = FleetTimeline()
        """The timeline."""

    def compose_body(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.event_list.focus()

    @property
    def current_machine(self) -> str | None:
        """The machine of the event under the cursor, as long as it is declared."""
        event = self.pane.cursor_event
        if event is None or self.fleet_app.snapshot.find(event.machine) is None:
            return None
        return event.machine

    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed."""
        self.pane.show_events(now)

    # Actions

    def action_open(self) -> None:
        name, event = self.current_machine, self.pane.cursor_event
        if name is not None:
            self.fleet_app.look_into(name)
        elif event is not None and event.machine:
            self.notify(f"{clean(event.machine)} is no longer declared", markup=False)

    def on_cursor_view_opened(self) -> None:
        self.action_open()
