"""The dashboard's application: holds the newest snapshot and hands it to the screen on top."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import SystemCommand
from textual.message import Message
from textual.screen import Screen

from fleettui.model.snapshot import FleetSnapshot
from fleettui.tui.actions import bindings_for
from fleettui.tui.asking import ask_on
from fleettui.tui.command_line import command_question
from fleettui.tui.dialog import LiveDialog
from fleettui.tui.draining import DrainKeys
from fleettui.tui.live import LiveScreen
from fleettui.tui.maintenance import MaintenanceKeys
from fleettui.tui.memory import Memory, texts_in
from fleettui.tui.offers import Offer, actions_now, is_offered
from fleettui.tui.painter import Painter
from fleettui.tui.palette import PaletteCommands
from fleettui.tui.port import FleetPort, Look
from fleettui.tui.remembering import APP, RememberingApp, recall
from fleettui.tui.route_key import RouteKey
from fleettui.tui.screens.help.screen import HelpScreen
from fleettui.tui.screens.menu.screen import MenuScreen
from fleettui.tui.screens.pending.screen import PendingScreen
from fleettui.tui.shell import ShellKey
from fleettui.tui.top_screens import TOP_SCREENS
from fleettui.tui.widgets.painting import Line
from fleettui.view.text import clean

if TYPE_CHECKING:
    from fleettui.tui.planning import FleetPlans

INTERVALS_S = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0)
"""What `+` and `-` step through."""


class SnapshotArrived(Message):
    """The service published a snapshot. A newer one replaces it in the queue, so a slow screen skips."""

    def __init__(self, snapshot: FleetSnapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, SnapshotArrived)


class FleetApp(RememberingApp):
    """One subscriber of the fleet service; what the operator does comes back as the next snapshot."""

    BINDINGS = bindings_for("everywhere")
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[Any]] = {PaletteCommands}
    MODES: ClassVar[dict[str, Any]] = dict(TOP_SCREENS)
    DEFAULT_MODE = "fleet"

    def __init__(
        self,
        service: FleetPort,
        look: Look | None = None,
        clock: Callable[[], float] = time.time,
        memory: Memory | None = None,
    ) -> None:
        self.service = service
        self.clock = clock
        self.snapshot = service.snapshot
        """The newest snapshot that reached the app."""
        super().__init__(look, memory, service.ui_state, clock)
        self.painter = Painter(self._paint, self.set_timer, terminal=self)
        self.maintenance = MaintenanceKeys(self)
        self.drains = DrainKeys(self)
        self.shell = ShellKey(self)
        self.route = RouteKey(self)
        self._unsubscribe: Callable[[], None] | None = None
        self._commands = texts_in(self.memory.part(APP), "commands")
        """Lines of commands typed so far, oldest first."""

    @cached_property
    def plans(self) -> FleetPlans:
        """Plans of the fleet as it is."""
        from fleettui.tui.planning import FleetPlans

        return FleetPlans(self)

    def on_mount(self) -> None:
        self._unsubscribe = self.service.subscribe(self._take_snapshot)
        self.snapshot = self.service.snapshot  # of a fleet without machines no other may ever come
        self.set_interval(1.0, self.painter.request)

    def on_unmount(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()

    def _take_snapshot(self, snapshot: FleetSnapshot) -> None:
        self.post_message(SnapshotArrived(snapshot))

    def on_snapshot_arrived(self, message: SnapshotArrived) -> None:
        """The newest snapshot waits here for its turn to be painted."""
        self.snapshot = message.snapshot
        self.painter.request()

    def _paint(self) -> None:
        if not self.is_running:  # the way out takes the widgets away one by one
            return
        screen = self.screen_stack[-1] if self.screen_stack else None
        if isinstance(screen, LiveScreen) and screen.is_mounted:  # under a modal nothing is painted
            screen.paint(self.snapshot, self.clock())
        elif isinstance(screen, LiveDialog) and screen.is_mounted:
            screen.show_snapshot(self.snapshot, self.clock())

    def open_machine(self, name: str, tab: str | None = None) -> None:
        """Show everything known of a machine: that tab of it, else the first."""
        from fleettui.tui.screens.machine.screen import MachineScreen

        screen = self.screen
        if not isinstance(screen, MachineScreen) or screen.machine_name != name:
            self.push_screen(MachineScreen(name, tab))
        elif tab is not None:
            screen.call_later(screen.show_tab, tab)

    def look_into(self, name: str) -> None:
        """Show a machine; of one whose key waits for a decision there is nothing to see but that."""
        machine = self.snapshot.find(name)
        if machine is not None and machine.trust in {"pending", "key_changed"}:
            self.open_pending(name)
        elif machine is not None:
            self.open_machine(name)

    def open_drain(self, names: tuple[str, ...], text: str = "") -> None:
        """Show what a drain of these machines would do, or how far it is. `text`: reason and end."""
        from fleettui.tui.screens.drain.screen import DrainScreen

        self.push_screen(DrainScreen(names, text))

    def open_pending(self, name: str | None = None) -> None:
        """Show the machines that wait for a decision, with the cursor on that one."""
        self.push_screen(PendingScreen(name))

    @property
    def live_screen(self) -> LiveScreen | None:
        """The screen on top, or the one that a dialog or the palette lies on."""
        return next(
            (screen for screen in reversed(self.screen_stack) if isinstance(screen, LiveScreen)), None
        )

    def show_top_screen(self, name: str) -> None:
        """Go to one of the top screens; whatever lies on it there is closed when it is there already."""
        self.memory.note(APP, screen=name)
        if self.current_mode != name:
            self.switch_mode(name)
        else:
            while len(self.screen_stack) > 1:
                self.pop_screen()

    def choose(
        self, title: str, lines: Sequence[Line], current: str | None, on_choice: Callable[[str], None]
    ) -> None:
        """Let the operator choose a line by its key."""

        def chosen(key: str | None) -> None:
            if key is not None:
                on_choice(key)

        self.push_screen(MenuScreen(title, lines, current), chosen)

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What does not apply is neither run nor listed."""
        screen = self.live_screen
        applies = {
            "theme": self.has_color,
            "undo": bool(self.maintenance.last or self.drains.last),
            "drain": screen is None or not screen.is_drain,
            "undrain": screen is not None and any(map(self.drains.is_flagged, screen.chosen_machines)),
        }
        if not applies.get(action, True):
            return False
        has_machine = screen is not None and screen.current_machine is not None
        look = self.look
        return is_offered(action, has_machine=has_machine, is_readonly=look.is_readonly, hidden=look.hidden)

    def action_show_fleet(self) -> None:
        self.show_top_screen("fleet")

    def action_show_models(self) -> None:
        self.show_top_screen("models")

    def action_show_route(self) -> None:
        self.show_top_screen("route")

    async def action_route(self, model: str = "") -> None:
        await self.route.go(model)

    def action_show_plan(self) -> None:
        self.show_top_screen("plan")

    def action_show_events(self) -> None:
        self.show_top_screen("events")

    def action_command(self) -> None:
        if (screen := self.live_screen) is not None:
            self.ask_command(screen)

    def ask_command(self, screen: Screen[Any]) -> None:
        """Let the operator type a command that applies on that screen."""
        ask_on(screen, command_question(actions_now(screen), self._commands, self.run_offer))

    def run_offer(self, offer: Offer, text: str) -> None:
        """Run an action that was named, with what was typed behind its name."""
        self.memory.note(APP, commands=list(self._commands))
        self.run_worker(offer.run(text), group="commands", exit_on_error=True)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: every declared action that applies now."""
        for offer in actions_now(screen):
            if offer.action.is_command:
                run = partial(self.run_offer, offer, "")
                yield SystemCommand(offer.action.title.capitalize(), offer.action.description, run)

    def action_logs(self) -> None:
        screen = self.live_screen
        if screen is not None and screen.current_machine is not None:
            self.open_machine(screen.current_machine, "logs")

    def action_maintenance(self, text: str = "") -> None:
        if (screen := self.live_screen) is not None:
            self.maintenance.command(screen.chosen_machines, text)

    def action_maintenance_reason(self) -> None:
        if (screen := self.live_screen) is not None:
            self.maintenance.ask(screen.chosen_machines)

    def action_drain(self, text: str = "") -> None:
        if (screen := self.live_screen) is not None:
            self.drains.open(screen.chosen_machines, text)

    def action_undrain(self, text: str = "") -> None:
        if (screen := self.live_screen) is not None:
            self.drains.ask_undrain(screen.chosen_machines, text)

    def action_undo(self) -> None:
        (self.drains if self.drains.last else self.maintenance).undo()

    def action_shell(self) -> None:
        screen = self.live_screen
        if screen is not None and screen.current_machine is not None:
            self.shell.open(screen.current_machine)

    def action_pending(self, name: str = "") -> None:
        screen = self.live_screen
        here = screen.current_machine if screen is not None else None
        self.open_pending(name or here)

    def action_help(self) -> None:
        self.push_screen(HelpScreen(actions_now(self.screen), self.look.glyph_set))

    def action_refresh(self) -> None:
        screen = self.live_screen
        self.service.poll_now(screen.machine_name if screen is not None else None)
        if screen is not None:
            screen.note_refresh()

    def action_copy_address(self) -> None:
        screen = self.live_screen
        names = screen.chosen_machines if screen is not None else ()
        found = [name for name in names if self.snapshot.find(name) is not None]
        if screen is not None and found:
            addresses = [screen.address_of(name) for name in found]
            self.copy_to_clipboard("\n".join(addresses))
            what = f"the address of {found[0]}" if len(found) == 1 else f"{len(found)} addresses"
            self.notify(clean("  ".join(addresses)), title=f"Copied {clean(what)}", markup=False)

    def action_pause(self) -> None:
        self.service.set_paused(not self.service.is_paused)
        self.painter.paint_now()

    def action_faster(self) -> None:
        self._change_interval(
            max((s for s in INTERVALS_S if s < self.service.interval_s), default=INTERVALS_S[0])
        )

    def action_slower(self) -> None:
        self._change_interval(
            min((s for s in INTERVALS_S if s > self.service.interval_s), default=INTERVALS_S[-1])
        )

    def _change_interval(self, seconds: float) -> None:
        self.service.set_interval(seconds)
        self.painter.paint_now()


async def run_dashboard(service: FleetPort, look: Look | None = None) -> int:
    """Run the dashboard, and the service with it, until the operator leaves; answers the exit code."""
    import asyncio

    # The screen comes up while machines are still being asked.
    starting = asyncio.create_task(service.start())
    app = None
    try:
        app = FleetApp(service, look, memory=await recall(service.ui_state))
        await app.run_async()
    finally:
        if app is not None:
            await app.save_memory()
        if not starting.done():
            starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await service.stop()
    return app.return_code or 0
