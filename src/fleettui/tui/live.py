"""Screens that show the fleet as it is now."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.screen import Screen

from fleettui.decide.addresses import script_address
from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import BY_ID
from fleettui.tui.asking import ask_on
from fleettui.tui.offers import is_offered
from fleettui.tui.widgets.footer import Footer
from fleettui.tui.widgets.prompt import Prompt, Question
from fleettui.view.cells import Cells
from fleettui.view.origin import origin_cells
from fleettui.view.pause import pause_cells

if TYPE_CHECKING:
    from fleettui.tui.app import FleetApp


class LiveScreen(Screen[None]):
    """A screen that is handed snapshots while it is on top, and the newest one when it comes back."""

    DEFAULT_CSS = """
    LiveScreen { background: $background; color: $tone-plain; }
    """

    machine_name: str | None = None
    """The one machine it is about; None: about all."""
    is_drain = False
    """It shows a drain."""
    _had_machine: bool | None = None

    @property
    def fleet_app(self) -> FleetApp:
        """The app, with its type."""
        return cast("FleetApp", self.app)

    @abstractmethod
    def compose_body(self) -> ComposeResult:
        """What stands above the footer."""

    def compose(self) -> ComposeResult:
        yield from self.compose_body()
        yield Prompt()
        yield Footer()

    @property
    def current_machine(self) -> str | None:
        """The machine that keys about one machine act on: under the cursor, or the screen's own."""
        return self.machine_name

    @property
    def current_model(self) -> str | None:
        """The model under the cursor, by a name that can be routed."""
        return None

    def address_of(self, name: str) -> str:
        """`hostname:port` of a machine's engine, for scripts; empty for one that is not declared."""
        machine = self.fleet_app.snapshot.find(name)
        return "" if machine is None else script_address(machine)

    @property
    def chosen_machines(self) -> tuple[str, ...]:
        """The machines that group actions act on: the tagged ones, else the current one."""
        return () if self.current_machine is None else (self.current_machine,)

    @abstractmethod
    def show_snapshot(self, snapshot: FleetSnapshot, now: float) -> None:
        """Paint what changed. Also called each second, so that ages go on."""

    def paint(self, snapshot: FleetSnapshot, now: float) -> None:
        """Show the snapshot; offers that depend on there being a machine follow."""
        self.show_snapshot(snapshot, now)
        self.query_one(Footer).show_badge(snapshot)
        self.note_cursor()

    def pause_cells(self, snapshot: FleetSnapshot, now: float) -> Cells:
        """What the first line says of a pause, and of a server that is asked instead; nothing while machines
        are asked from here."""
        app = self.fleet_app
        if app.service.origin:
            return origin_cells(app.service.origin, self.size.width)
        if not app.service.is_paused:
            return ()
        return pause_cells(snapshot.paused_at, now, app.look.utc_offset_s, self.size.width)

    def note_refresh(self) -> None:
        """The operator asked for new values: lines may take new places."""

    def note_cursor(self) -> None:
        """Keys that need a machine come and go with it."""
        has_machine = self.current_machine is not None
        if has_machine != self._had_machine:
            self._had_machine = has_machine
            self.refresh_bindings()

    def on_cursor_view_cursor_moved(self) -> None:
        self.note_cursor()

    def on_screen_resume(self) -> None:
        """Whatever was on top is gone: catch up."""
        self.fleet_app.painter.paint_now()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What does not apply is neither run nor listed."""
        look = self.fleet_app.look
        has_machine = self.current_machine is not None
        return is_offered(action, has_machine=has_machine, is_readonly=look.is_readonly, hidden=look.hidden)

    def key_of(self, action: str) -> str:
        """The key of an action as it is bound now."""
        look = self.fleet_app.look
        own = look.keys.get(action)
        return look.glyph_set.plain(own.partition(",")[0] if own else BY_ID[action].label)

    # One line to type in

    def ask(self, question: Question) -> None:
        """Let the operator type a line; the footer waits below."""
        ask_on(self, question)
